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
import time
import uuid
import webbrowser
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import dask.config
import distributed

from daskscope import analytics, units
from daskscope.client.connection import ask, find_client, is_recorded
from daskscope.client.local_server import EmbeddedServer, find_or_start, find_secret, split_secret, with_secret
from daskscope.client.server import Server, configured_url, find_token
from daskscope.collector.scheduler.claims import WATCH
from daskscope.errors import DaskscopeError, ServerError
from daskscope.model.states import LIVE_STATES

logger = logging.getLogger("daskscope")

UPDATE_S = 2.0
#: Time limit for the first batch of a new recording to arrive, and the interval between checks. It takes 0.2 s.
SHOWN_S = 5.0
SHOWN_POLL_S = 0.05


class Watch:
    """A watched cluster; ``url`` is its page.

    ``close()`` stops watching. It ends the recording only if ``watch()`` started it and nobody else records the cluster.
    """

    def __init__(self, client: distributed.Client, owner: str, page: str, server: EmbeddedServer | None) -> None:
        self._client = client
        self._owner = owner
        self._server = server
        self._stop = threading.Event()
        #: Displays in a notebook that still follow the cluster, and what guards them.
        self._displays: list[Any] = []
        self._display_lock = threading.Lock()
        self.is_still_recorded = False
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

    def wait_shown(self) -> None:
        """Wait until the page shows the cluster. Raise ``DaskscopeError`` if it is recorded in an account this user cannot see."""
        deadline = time.monotonic() + SHOWN_S
        while True:
            try:
                self.summary()
                return
            except ServerError as error:
                if error.status in (401, 403):
                    self.close()
                    place = f"the account {self._api.account} of {self._api.url}"
                    raise DaskscopeError(
                        f"This cluster is recorded in {place}, which you cannot see: {error}"
                    ) from None
                # 404: the first batch is on its way.
                if error.status != 404 or time.monotonic() > deadline:
                    return
            time.sleep(SHOWN_POLL_S)

    def close(self) -> None:
        """Stop watching. ``is_still_recorded`` then says whether the recording goes on, because somebody else started it.

        A server that was started here stops, unless the recording needs it.
        """
        if self._stop.is_set():
            return
        self._stop.set()
        atexit.unregister(self.close)
        with contextlib.suppress(DaskscopeError, OSError):
            if self._client.status == "running":
                left = self._client.sync(analytics.stop_recording, self._client, self._owner)
                self.is_still_recorded = bool(left)
        self._update_displays(SHOWN_S)
        if self._server is not None:
            if self.is_still_recorded:
                self._server.keep()
            else:
                self._server.close()

    def _ipython_display_(self) -> None:
        # Untyped, and only there in a notebook.
        ipython: Any = importlib.import_module("IPython.display")
        content, has_ended = self._html()
        handle = ipython.display(ipython.HTML(content), display_id=True)
        if has_ended or self._stop.is_set():
            return
        with self._display_lock:
            self._displays.append(lambda text: handle.update(ipython.HTML(text)))
            if len(self._displays) == 1:
                threading.Thread(target=self._follow, name="daskscope-watch", daemon=True).start()

    def _follow(self) -> None:
        """Update the displays until the cluster has ended or nobody watches it."""
        while not self._stop.wait(UPDATE_S) and not self._update_displays():
            pass

    def _update_displays(self, timeout: float = 0.0) -> bool:
        """Update the displays, at the latest after ``timeout`` seconds if the cluster has not ended; return whether it has.

        An ended cluster does not change, so its displays are forgotten.
        """
        deadline = time.monotonic() + timeout
        with self._display_lock:
            content, has_ended = self._html() if self._displays else ("", True)
            while not has_ended and not self.is_still_recorded and time.monotonic() < deadline:
                time.sleep(SHOWN_POLL_S)
                content, has_ended = self._html()
            for update in self._displays:
                update(content)
            if has_ended:
                self._displays.clear()
        return has_ended

    def _html(self) -> tuple[str, bool]:
        """Return the link and the summary as HTML, and whether the cluster has ended."""
        has_ended = False
        try:
            found = self.summary()
            rows, has_ended = describe(found), found["state"] not in LIVE_STATES
        except (DaskscopeError, ServerError) as error:
            rows = [("server", str(error))]
        cells = "".join(f"<tr><td>{html.escape(k)}</td><td>{html.escape(v)}</td></tr>" for k, v in rows)
        link, page = html.escape(self.url, quote=True), "page" if has_ended else "live page"
        return f'<p><a href="{link}" target="_blank">Open the {page}</a></p><table>{cells}</table>', has_ended


def describe(cluster: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows of the summary: state, progress and errors, and busy threads and memory until the cluster has ended."""
    waiting = cluster["tasks_processing"] + cluster["tasks_queued"] + cluster["tasks_unrunnable"]
    threads = cluster["threads"]
    is_live = cluster["state"] in LIVE_STATES
    now = [
        ("threads", f"{units.count(min(cluster['tasks_processing'], threads))} of {units.count(threads)} busy"),
        ("memory", f"{units.nbytes(cluster['memory'])} of {units.nbytes(cluster['memory_limit'])}"),
    ]
    return [
        ("state", ": ".join(filter(None, (cluster["state"], cluster["reason"])))),
        ("tasks", f"{units.count(cluster['n_tasks'])} done, {units.count(waiting)} to do"),
        *(now if is_live else []),
        ("errors", units.count(cluster["n_errors"]) if cluster["n_errors"] else "none"),
    ]


def watch(
    client: distributed.Client | None = None,
    *,
    open_browser: bool = True,
    data: str = "",
    say: Callable[[str], None] = logger.info,
) -> Watch:
    """Open the live page of this client's cluster, and record the cluster as long as it is watched.

    A cluster that is recorded already is shown where it is recorded. Otherwise it is recorded on the configured server; without
    one, on a server of yours that runs on this machine; without that, on a server that is started for it, which stores its data
    in ``data`` (default: the directory of ``daskscope serve``) and ends with this process.
    """
    client = find_client(client)
    if client.asynchronous:
        raise DaskscopeError("watch() needs a client that is not asynchronous.")
    owner = f"watch-{uuid.uuid4().hex}"
    server = None
    page = client.sync(_join, client, owner)
    if not page:
        url = "" if data else configured_url()
        if not url:
            say("starting a server on this machine")
            server = find_or_start(data)
            url = server.url
        page = _start(client, owner, split_secret(url)[0], server)
    watched = Watch(client, owner, page, server)
    watched.wait_shown()
    if open_browser:
        webbrowser.open(watched.url)
    return watched


async def _join(client: distributed.Client, owner: str) -> str:
    """Return the page of a cluster that is recorded already; empty if it is not, or only for a reader."""
    if not await is_recorded(client):
        return ""
    hello = await ask(client, "hello", owner=owner, client=client.id, kind=WATCH)
    if hello is None or hello.get("status") != "OK":
        return ""
    page = analytics.page(hello)
    if hello["server"] and "/clusters/" not in page:
        raise DaskscopeError(
            f"The recorder of this cluster has not reached its server {page} yet. Try again once it runs."
        )
    if page and not hello["server"]:
        raise DaskscopeError(
            f"This cluster is recorded in the directory {page}, so it has no live page. Look at it with: daskscope show {page}"
        )
    return page


def _start(client: distributed.Client, owner: str, url: str, server: EmbeddedServer | None) -> str:
    """Start recording a cluster on a server, and return its page."""
    try:
        with dask.config.set({"daskscope.server": url}):
            chosen = analytics.chosen_settings()
        page: str = client.sync(analytics.start_recording, client, chosen, owner, WATCH)
        return page
    except BaseException:
        if server is not None:
            server.close()
        raise
