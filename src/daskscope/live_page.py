"""Watch a running cluster: find or start a server, record the cluster there, and open its page.

In a notebook, the result shows a link and a summary that is updated while the cluster runs.
"""

from __future__ import annotations

import atexit
import contextlib
import html
import importlib
import logging
import threading
import webbrowser
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

import dask.config
import distributed

from daskscope import analytics, units
from daskscope.client.connection import find_client
from daskscope.client.embedded_server import EmbeddedServer, find_or_start
from daskscope.client.local_servers import find_secret, split_secret, with_secret
from daskscope.client.server import Server, configured_url, find_token
from daskscope.errors import DaskscopeError, ServerError

logger = logging.getLogger("daskscope")

UPDATE_S = 2.0


class Watch:
    """A watched cluster. ``url`` is its page; ``close()`` ends the recording and stops a server that was started for it."""

    def __init__(self, client: distributed.Client, page: str, server: EmbeddedServer | None) -> None:
        self._client = client
        self._server = server
        self._stop = threading.Event()
        base, self.cluster = page.rpartition("/clusters/")[::2]
        root, _, account = base.rpartition("/")
        secret = find_secret(root)
        self.url = with_secret(page, secret) if secret else page
        self._api = Server(root, account, find_token(root, account))
        atexit.register(self.close)

    def __repr__(self) -> str:
        return f"<Watch {self.url}>"

    def summary(self) -> dict[str, Any]:
        """Return the current numbers of the cluster, as the server has them."""
        found: dict[str, Any] = self._api.get(f"clusters/{quote(self.cluster, safe='')}")
        return found

    def close(self) -> None:
        """End the recording, and stop the server if it was started for it. The recorded data stays on disk."""
        if self._stop.is_set():
            return
        self._stop.set()
        atexit.unregister(self.close)
        with contextlib.suppress(DaskscopeError, OSError):
            if self._client.status == "running":
                analytics.unregister(self._client)
        if self._server is not None:
            self._server.close()

    def _ipython_display_(self) -> None:
        # Untyped, and only there in a notebook.
        ipython: Any = importlib.import_module("IPython.display")
        handle = ipython.display(ipython.HTML(self._html()), display_id=True)

        def update() -> None:
            while not self._stop.wait(UPDATE_S):
                handle.update(ipython.HTML(self._html()))

        threading.Thread(target=update, name="daskscope-watch", daemon=True).start()

    def _html(self) -> str:
        link = html.escape(self.url, quote=True)
        try:
            rows = describe(self.summary())
        except (DaskscopeError, ServerError) as error:
            rows = [("server", str(error))]
        cells = "".join(f"<tr><td>{html.escape(k)}</td><td>{html.escape(v)}</td></tr>" for k, v in rows)
        return f'<p><a href="{link}" target="_blank">Open the live page</a></p><table>{cells}</table>'


def describe(cluster: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows of the summary: state, progress, busy threads, memory and errors."""
    waiting = cluster["tasks_processing"] + cluster["tasks_queued"] + cluster["tasks_unrunnable"]
    threads = cluster["threads"]
    return [
        ("state", f"{cluster['status']} {cluster['reason']}".strip()),
        ("tasks", f"{units.count(cluster['n_tasks'])} done, {units.count(waiting)} to do"),
        ("threads", f"{units.count(min(cluster['tasks_processing'], threads))} of {units.count(threads)} busy"),
        ("memory", f"{units.nbytes(cluster['memory'])} of {units.nbytes(cluster['memory_limit'])}"),
        ("errors", units.count(cluster["n_errors"]) if cluster["n_errors"] else "none"),
    ]


def watch(
    client: distributed.Client | None = None,
    *,
    open_browser: bool = True,
    data: str = "",
    say: Callable[[str], None] = logger.info,
) -> Watch:
    """Record this client's cluster on a server and open its live page.

    Uses the configured server; without one, a server of yours that runs on this machine; without that, it starts one, which
    stores its data in ``data`` (default: the directory of ``daskscope serve``) and ends with this process.
    """
    client = find_client(client)
    server = None
    url = "" if data else configured_url()
    if not url:
        say("starting a server on this machine")
        server = find_or_start(data)
        url = server.url
    base, _ = split_secret(url)
    try:
        with dask.config.set({"daskscope.server": base}):
            page = analytics.register(client)
        if not isinstance(page, str) or not urlsplit(page).scheme.startswith("http"):
            raise DaskscopeError(
                "watch() needs a client that is not asynchronous, and a cluster that is recorded by a server."
            )
    except BaseException:
        if server is not None:
            server.close()
        raise
    watched = Watch(client, page, server)
    if open_browser:
        webbrowser.open(watched.url)
    return watched
