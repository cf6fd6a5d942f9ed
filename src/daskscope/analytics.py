"""Record a cluster for its whole life, and ask a server what all clusters did.

From a client: ``daskscope.analytics.register()``. On the scheduler's machine, without touching any client::

    dask scheduler --preload daskscope.analytics
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dask.config
import distributed

from daskscope.client import credentials
from daskscope.client.calling_code import calling_code, can_send
from daskscope.client.config import settings
from daskscope.client.connection import ask, find_client, install
from daskscope.client.listing import Listing
from daskscope.client.server import Server, configured_url, find_server
from daskscope.client.tokens import create_api_token, list_api_tokens, revoke_api_token
from daskscope.collector.plugin import ClusterPlugin
from daskscope.collector.settings import Settings
from daskscope.errors import DaskscopeError, ServerError

__all__ = [
    "close",
    "create_api_token",
    "dask_setup",
    "explain",
    "list_api_tokens",
    "list_clusters",
    "list_computations",
    "list_errors",
    "list_events",
    "list_exceptions",
    "register",
    "revoke_api_token",
    "unregister",
]

logger = logging.getLogger("daskscope")

OWNER = "register"
#: Clients of this process that send code because they registered.
_sending: set[str] = set()

NOWHERE = (
    "There is nowhere to record to. Set a server, dask.config.set({'daskscope.server': 'http://…'}) or "
    "DASK_DASKSCOPE__SERVER=http://…, or a directory on the scheduler's machine, "
    "dask.config.set({'daskscope.directory': '/path'}) or DASK_DASKSCOPE__DIRECTORY=/path."
)


# ---------------------------------------------------------------- recording


def register(client: distributed.Client | None = None) -> Awaitable[None] | None:
    """Record this client's cluster from now on, until it closes. Calling it again changes nothing.

    With an asynchronous client the result has to be awaited.
    """
    client = find_client(client)
    chosen = _settings(name=dask.config.get("daskscope.name") or _program())
    return client.sync(_register, client, chosen)  # type: ignore[no-any-return]


async def _register(client: distributed.Client, chosen: Settings) -> None:
    if chosen.server:
        cluster = str(client.scheduler_info().get("id", ""))
        chosen = await asyncio.get_running_loop().run_in_executor(None, _with_ingest_token, chosen, cluster)
    await install(client, chosen, OWNER, lasting=True)
    if chosen.code and can_send(client) and client.id not in _sending:
        # Read by this process at each submission; without it no code is ever sent to the scheduler.
        _sending.add(client.id)
        calling_code.acquire()


def _with_ingest_token(chosen: Settings, cluster: str) -> Settings:
    """Trade the user's token for one that may write to this cluster and nothing else: only that one travels."""
    server = Server(chosen.server, chosen.account, credentials.find(chosen.server, chosen.account))
    try:
        answer = server.call("POST", "ingest-tokens", body={"cluster": cluster})
    except ServerError as error:
        if error.status:
            raise
        if server.token:
            # A user's own token never goes to a scheduler, where anybody who may run code there could read it.
            raise ServerError(f"{error} Registering needs the server once, for a token; recording does not.") from None
        # A server without login needs no token, and the recorder itself says that it is away.
        return chosen
    return Settings.of({**chosen.plain(), "token": answer["token"], "account": answer["account"]})


def unregister(client: distributed.Client | None = None) -> Awaitable[None] | None:
    """Stop recording this client's cluster; harmless where it is not recorded."""
    client = find_client(client)
    return client.sync(_unregister, client)  # type: ignore[no-any-return]


async def _unregister(client: distributed.Client) -> None:
    if client.id in _sending:
        _sending.discard(client.id)
        calling_code.release()
    await ask(client, "unsubscribe", reader=OWNER)


async def dask_setup(scheduler: Any) -> None:
    """Entry point of ``dask scheduler --preload daskscope.analytics``. Never raises: that would end the scheduler."""
    try:
        if dask.config.get("daskscope.analytics.disabled"):
            return
        if not isinstance(scheduler, distributed.Scheduler):
            raise DaskscopeError(
                "Preload daskscope.analytics in the scheduler only: it reaches the workers from there."
            )
        plugin = ClusterPlugin(_preloaded(_settings(name=dask.config.get("daskscope.name") or "")))
        plugin.owners.add(OWNER)
        await plugin.start(scheduler)
        if plugin.scheduler is not None:
            scheduler.add_plugin(plugin, idempotent=True)
    except Exception as error:  # noqa: BLE001 (see above)
        text = str(error) if isinstance(error, DaskscopeError) else repr(error)
        logger.warning("daskscope: this cluster is not recorded. %s", text)


def _preloaded(chosen: Settings) -> Settings:
    """With the token of this machine: it stays here, and the server need not be up yet."""
    if not chosen.server:
        return chosen
    return Settings.of({**chosen.plain(), "token": credentials.find(chosen.server, chosen.account)})


def _program() -> str:
    """What a cluster is called where nobody gave it a name: the script, or that it is a notebook."""
    if "ipykernel" in sys.modules:
        return "notebook"
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else ""
    return "" if name.startswith("-") else name


def _settings(name: str) -> Settings:
    server, directory = configured_url(), dask.config.get("daskscope.directory")
    if not server and not directory:
        raise DaskscopeError(NOWHERE)
    return settings(server=server, directory=str(directory or ""), name=str(name))


# ---------------------------------------------------------------- asking a server


def list_clusters(account: str | None = None, since: str | None = "7 days", user: str | None = None) -> Listing:
    """Clusters of an account, the newest first; ``since=None`` for all history."""
    items = find_server(account).items("clusters", since=since or "all", user=user)
    columns = ("name", "user", "state", "start", "duration", "n_tasks", "n_exceptions", "workers", "url")
    return Listing(items, columns, "No clusters yet. Connect one: daskscope.analytics.register()")


def list_computations(
    cluster_id: str | None = None, scheduler_id: str | None = None, account: str | None = None
) -> Listing:
    """Computations of a cluster, the newest first; either id will do."""
    cluster = _one(cluster_id, scheduler_id)
    items = find_server(account).items("computations", cluster_id=cluster)
    return Listing(items, ("state", "start", "duration", "n_tasks", "n_errors", "code"), "No computations.")


def list_events(cluster_id: str, account: str | None = None) -> Listing:
    """What happened on a cluster: workers that came and went, scaling, stalls, topics on the allow-list."""
    items = find_server(account).items(f"clusters/{quote(cluster_id, safe='')}/events")
    return Listing(items, ("time", "topic", "kind", "worker", "detail"), "No events.")


def list_exceptions(
    account: str | None = None,
    since: str | None = "7 days",
    user: str | None = None,
    cluster_id: str | None = None,
    scheduler_id: str | None = None,
) -> Listing:
    """Failures of an account or a cluster, the newest first, with their tracebacks."""
    cluster = cluster_id or scheduler_id
    items = find_server(account).items("exceptions", since=since or "all", user=user, cluster_id=cluster)
    return Listing(items, ("time", "user", "type", "message", "prefix", "count"), "Nothing failed.")


def list_errors(account: str | None = None, since: str | None = None, state: str | None = None) -> Listing:
    """Failures that are the same, grouped: how often, since when, on how many clusters, whose."""
    items = find_server(account).items("errors", since=since, state=state)
    return Listing(
        items, ("state", "type", "message", "count", "n_clusters", "first_seen", "last_seen"), "Nothing failed."
    )


def explain(cluster_id: str, account: str | None = None) -> dict[str, Any]:
    """Why that cluster is still running: the ``answer`` in a sentence, its ``evidence``, and ``advice``."""
    result: dict[str, Any] = find_server(account).get(f"clusters/{quote(cluster_id, safe='')}/explain")
    return result


def close(cluster_id: str, account: str | None = None) -> None:
    """Ask a cluster to shut down: its recorder is told with the next batch it sends, a few seconds from now.

    Best effort: a cluster whose ``daskscope.analytics.close.allow`` is off does not listen.
    """
    find_server(account).call("POST", f"clusters/{quote(cluster_id, safe='')}/close", body={})


def _one(cluster_id: str | None, scheduler_id: str | None) -> str:
    if not (cluster_id or scheduler_id):
        raise ValueError("Name a cluster: cluster_id= or scheduler_id=.")
    return str(cluster_id or scheduler_id)
