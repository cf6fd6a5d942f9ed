"""Live pages: notify open pages of runs with new data, also by way of other servers on the same PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

import psycopg

from daskscope.storage.database import CONNECT_S, Database
from daskscope.storage.postgresql import SILENT_HOST, BoundedConnection, Patience, connect

#: Maximum changed clusters queued for a slow page; it sees the others when it next loads the list.
MAX_BEHIND = 1_000
#: Maximum open pages.
MAX_LISTENERS = 1_000
#: Maximum open pages of one account, so that it cannot lock out the others.
MAX_PER_ACCOUNT = 250


class TooManyListeners(Exception):
    """Too many pages are open."""


class Listener:
    """An open page: the clusters of its account that changed since it last looked."""

    def __init__(self, account: int, user: int, loop: asyncio.AbstractEventLoop) -> None:
        self.account = account
        self.user = user
        self.loop = loop
        self.changed: set[str] = set()
        self.wake = asyncio.Event()
        self.ended = False

    def tell(self, clusters: set[str]) -> None:
        if len(self.changed) < MAX_BEHIND:
            self.changed |= clusters
        self.wake.set()

    def end(self) -> None:
        self.ended = True
        self.wake.set()

    async def changes(self, heartbeat: float) -> AsyncIterator[set[str]]:
        """Yield sets of changed clusters, and an empty set after ``heartbeat`` seconds without a change."""
        while not self.ended:
            try:
                await asyncio.wait_for(self.wake.wait(), heartbeat)
            except asyncio.TimeoutError:
                yield set()
                continue
            self.wake.clear()
            changed, self.changed = self.changed, set()
            if changed:
                yield changed


class Live:
    """All open pages."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: set[Listener] = set()
        #: Forwards announcements to other servers on the same database, if there may be some.
        self.forward: Callable[[set[tuple[int, str]]], None] | None = None
        #: Does the same for streams that end.
        self.forward_end: Callable[[int, int], None] | None = None

    def listen(self, account: int, user: int = 0) -> Listener:
        listener = Listener(account, user, asyncio.get_running_loop())
        with self._lock:
            if self._full(account):
                raise TooManyListeners
            self._listeners.add(listener)
        return listener

    def full(self, account: int) -> bool:
        """Return whether the account cannot open more pages."""
        with self._lock:
            return self._full(account)

    def _full(self, account: int) -> bool:
        mine = sum(other.account == account for other in self._listeners)
        return len(self._listeners) >= MAX_LISTENERS or mine >= MAX_PER_ACCOUNT

    def leave(self, listener: Listener) -> None:
        with self._lock:
            self._listeners.discard(listener)

    def announce(self, runs: set[tuple[int, str]]) -> None:
        """Announce changed runs. The writer calls this from its thread."""
        self.deliver(runs)
        if self.forward is not None and runs:
            self.forward(runs)

    def deliver(self, runs: set[tuple[int, str]]) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            mine = {cluster for account, cluster in runs if account == listener.account}
            if mine:
                _tell(listener, listener.tell, mine)

    def end_streams(self, user: int, account: int = 0) -> None:
        """End the streams of a user, in all accounts or in one. Browsers reconnect, and are refused without access."""
        self.end_own_streams(user, account)
        if self.forward_end is not None:
            self.forward_end(user, account)

    def end_own_streams(self, user: int, account: int) -> None:
        """End the streams that this server has."""
        with self._lock:
            ended = [one for one in self._listeners if one.user == user and account in (0, one.account)]
        for listener in ended:
            _tell(listener, listener.end)

    @property
    def listening(self) -> int:
        return len(self._listeners)

    def close(self) -> None:
        """End every stream."""
        with self._lock:
            listeners = list(self._listeners)
            self._listeners.clear()
        for listener in listeners:
            _tell(listener, listener.end)


def _tell(listener: Listener, what: Callable[..., None], *args: set[str]) -> None:
    try:
        listener.loop.call_soon_threadsafe(what, *args)
    except RuntimeError:
        # Its event loop has ended.
        pass


CHANNEL = "daskscope_changed"
MAX_BYTES = 7_000
RETRY_S = 5.0
LOOK_S = 1.0
#: How long a notification may take to send, and how often a silent connection is checked.
SPEAK_S, CHECK_S = 5, 30.0

Runs = set[tuple[int, str]]


class Relay:
    """Two connections: one listens, one notifies."""

    def __init__(self, database: Database, live: Live) -> None:
        self.address = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        self.live = live
        self.name = secrets.token_hex(4)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._speaking: BoundedConnection | None = None
        self._thread = threading.Thread(target=self._listen, name="daskscope-relay", daemon=True)

    def start(self) -> None:
        self.live.forward, self.live.forward_end = self.tell, self.tell_end
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(LOOK_S + 5)
        if self._speaking is not None:
            self._speaking.close()

    def tell(self, runs: Runs) -> None:
        """Notify the other servers. The writer calls this from its thread; it never fails a batch."""
        self._notify(payloads(self.name, runs))

    def tell_end(self, user: int, account: int) -> None:
        """Tell the other servers to end the streams of a user. Requests call this from their threads."""
        self._notify([json.dumps([self.name, [], [user, account]])])

    def _notify(self, texts: Iterable[str]) -> None:
        with self._lock:
            try:
                if self._speaking is None or self._speaking.closed:
                    self._speaking = self._connect()
                for text in texts:
                    self._speaking.execute("SELECT pg_notify(%s, %s)", (CHANNEL, text))
            except psycopg.Error:
                if self._speaking is not None:
                    self._speaking.close()

    def _listen(self) -> None:
        while not self._stop.is_set():
            try:
                with self._connect() as tx:
                    tx.execute(f"LISTEN {CHANNEL}")
                    checked = time.monotonic()
                    while not self._stop.is_set():
                        for notice in tx.notifies(timeout=LOOK_S):
                            self._heard(notice.payload)
                        if time.monotonic() - checked > CHECK_S:
                            # A listener hears nothing from a server that is gone.
                            tx.execute("SELECT 1")
                            checked = time.monotonic()
            except psycopg.Error:
                self._stop.wait(RETRY_S)

    def _connect(self) -> BoundedConnection:
        # The writer waits for a notification to be sent.
        patience = Patience(SPEAK_S, self._stop)
        return connect(patience, self.address, autocommit=True, **{"connect_timeout": CONNECT_S, **SILENT_HOST})

    def _heard(self, payload: str) -> None:
        speaker, runs, *ended = json.loads(payload)
        if speaker != self.name:
            self.live.deliver({(int(account), str(cluster)) for account, cluster in runs})
            for user, account in ended:
                self.live.end_own_streams(int(user), int(account))


def payloads(speaker: str, runs: Runs) -> Iterator[str]:
    """Split the runs into notifications that are small enough."""
    part: list[tuple[int, str]] = []
    size = 0
    for account, cluster in sorted(runs):
        item = len(json.dumps([account, cluster])) + 2
        if part and size + item > MAX_BYTES:
            yield json.dumps([speaker, part])
            part, size = [], 0
        part.append((account, cluster))
        size += item
    if part:
        yield json.dumps([speaker, part])
