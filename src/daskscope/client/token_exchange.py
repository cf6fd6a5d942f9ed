"""Exchange a person's token for one that can only write to one cluster, and forget the person's.

Every client of a cluster can run code in its scheduler, and read what the process knows: its environment, Dask's configuration, its
objects. So a preloaded recorder holds the configured token only until the server has answered once.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.config

from daskscope.client.local_server import find_secret, split_secret
from daskscope.client.server import Server
from daskscope.collector.delivery.leftovers import MAX_ADOPTED, find_leftovers
from daskscope.collector.delivery.poster import Post, ServerReply, poster
from daskscope.errors import DaskscopeError, ServerError

#: A scheduler waits this long for the server when it starts; afterwards the sender's thread tries again.
START_TIMEOUT = 5.0

CREATE = 'daskscope token create --scope ingest --label "recorder of a scheduler"'
TOO_WIDE = (
    "The token in the scheduler has the scopes {scopes}, and every client of the cluster could read it there. "
    f"Use one that can only record: {CREATE}"
)


class TokenExchange:
    """Posts frames with a token for one cluster. Until it has that token, every post tries to get it."""

    def __init__(self, server: Server, cluster: str, spool: Path, *, only_ingest: bool) -> None:
        self.account = server.account
        #: How to post what earlier recorders left in the spool, by cluster: a cluster that lived while the server was down has no
        #: token of its own yet, and the token of another cluster is refused.
        self.posts: dict[str, Post] = {}
        self._spool = spool
        self._cluster = cluster
        self._only_ingest = only_ingest
        #: With the person's token; None once it is exchanged or refused.
        self._server: Server | None = server
        self._post: Post | None = None
        self._refusal = ServerReply(403, reason="there is no token", code="forbidden")

    def attempt(self, timeout: float = START_TIMEOUT) -> None:
        """Exchange the token. Raise ``ServerError`` without an answer, ``DaskscopeError`` if the token allows too much."""
        server = self._server
        if server is None:
            return
        if not server.token:
            # A server without sign-in that starts later announces its secret then.
            server = replace(server, token=find_secret(server.url))
        try:
            answer = server.call("POST", "ingest-tokens", body={"cluster": self._cluster}, timeout=timeout)
        except ServerError as error:
            if not server.token and find_secret(server.url):
                # It was starting, and has announced its secret since: try again soon.
                raise ServerError(str(error)) from None
            if error.status == 403 and _reply(error).is_refused:
                # The token is valid, but not for recording: it must not stay here. One that is unknown may be known again later.
                self._refuse(_reply(error))
            raise
        scopes = [str(scope) for scope in answer.get("scopes") or () if scope != "ingest"]
        if scopes and self._only_ingest:
            message = TOO_WIDE.format(scopes=", ".join(["ingest", *scopes]))
            self._refuse(ServerReply(403, reason=message, code="forbidden"))
            raise DaskscopeError(message)
        self.account = str(answer["account"])
        self._post, self._server = poster(server.url, str(answer["token"])), None
        self._exchange_for_leftovers(server, timeout)

    def _exchange_for_leftovers(self, server: Server, timeout: float) -> None:
        """Get a token for each cluster whose data waits on this machine. One that is refused keeps waiting."""
        left = find_leftovers(self._spool, server.url.rstrip("/"))
        for cluster in dict.fromkeys(leftover.cluster for leftover in left[:MAX_ADOPTED]):
            try:
                answer = server.call("POST", "ingest-tokens", body={"cluster": cluster}, timeout=timeout)
            except ServerError as error:
                if not error.status:
                    return
                continue
            self.posts[cluster] = poster(server.url, str(answer["token"]))

    def _refuse(self, reply: ServerReply) -> None:
        self._refusal, self._server = reply, None

    def __call__(self, body: bytes) -> ServerReply:
        """Post a body of frames, as ``poster`` does."""
        if self._post is None and self._server is not None:
            try:
                self.attempt()
            except ServerError as error:
                return _reply(error)
            except DaskscopeError:
                return self._refusal
        return self._refusal if self._post is None else self._post(body)


def _reply(error: ServerError) -> ServerReply:
    return ServerReply(error.status, reason=str(error), code=error.code)


def forget(token: str) -> None:
    """Remove a token from the environment and from Dask's configuration of this process."""
    if not token:
        return
    for name, value in [item for item in os.environ.items() if token in (item[1], split_secret(item[1])[1])]:
        _overwrite(name, len(value.encode()))
        del os.environ[name]
        _remove_copies(name, value)
    _remove(dask.config.config, token)


def _overwrite(name: str, length: int) -> None:
    """Overwrite the value of a variable in place: Linux shows the memory of the initial environment in ``/proc/self/environ``."""
    if not sys.platform.startswith("linux"):
        return
    try:
        getenv = ctypes.CDLL(None).getenv
        getenv.restype = ctypes.c_void_p
        address = getenv(name.encode())
        if address:
            ctypes.memset(address, ord("*"), length)
    except (OSError, AttributeError):  # another C library
        pass


def _remove_copies(name: str, text: str) -> None:
    """Remove a variable from copies of the environment: ``wsgiref``, which the dashboard imports, keeps one.

    Looks at all objects of the process, which takes a tenth of a second in a scheduler that starts. A dict of texts is not tracked
    by the garbage collector, but what refers to it is.
    """
    for holder in gc.get_objects():
        for item in gc.get_referents(holder):
            if type(item) is dict and type(value := item.get(name)) is str and value == text:
                del item[name]


def _remove(config: MutableMapping[str, Any], token: str, depth: int = 0) -> None:
    for name, value in list(config.items()):
        if value == token:
            del config[name]
        elif isinstance(value, str) and split_secret(value)[1] == token:
            # The URL of a server without sign-in can contain its secret.
            config[name] = split_secret(value)[0]
        elif isinstance(value, MutableMapping) and depth < 20:
            _remove(value, token, depth + 1)


def shares_process(modules: Mapping[str, Any] = sys.modules) -> bool:
    """Return whether the scheduler runs in the process of a program that created a cluster, such as a LocalCluster."""
    deploy = modules.get("distributed.deploy.spec")
    return bool(getattr(getattr(deploy, "SpecCluster", None), "_instances", None))
