"""Live pages: notify open pages of runs with new data."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

from daskscope.server.watched import Watched

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
        #: The clusters that pages show.
        self.watched = Watched()
        #: Clusters whose live view somebody has open.
        self.followed = Watched()

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
