"""Tells waiting pages which runs got something new."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

#: Clusters a slow listener is told of at once, about; it sees the others when it next looks at the list.
MOST_BEHIND = 1_000
#: Pages that may wait at once.
MOST_LISTENERS = 1_000
#: Of them those of one account: it must not keep the others from waiting.
MOST_OF_AN_ACCOUNT = 250


class TooManyListeners(Exception):
    """More pages wait than should."""


class Listener:
    """One page that waits: the clusters of one account that changed since it last looked."""

    def __init__(self, account: int, loop: asyncio.AbstractEventLoop) -> None:
        self.account = account
        self.loop = loop
        self.changed: set[str] = set()
        self.wake = asyncio.Event()
        self.ended = False

    def tell(self, clusters: set[str]) -> None:
        if len(self.changed) < MOST_BEHIND:
            self.changed |= clusters
        self.wake.set()

    def end(self) -> None:
        self.ended = True
        self.wake.set()

    async def changes(self, heartbeat: float) -> AsyncIterator[set[str]]:
        """Sets of clusters that changed; an empty one whenever nothing did for ``heartbeat`` seconds."""
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
    """All pages that wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: set[Listener] = set()
        #: Passes announcements on to other servers on the same database; set where there may be some.
        self.forward: Callable[[set[tuple[int, str]]], None] | None = None

    def listen(self, account: int) -> Listener:
        listener = Listener(account, asyncio.get_running_loop())
        with self._lock:
            if self._full(account):
                raise TooManyListeners
            self._listeners.add(listener)
        return listener

    def full(self, account: int) -> bool:
        """Whether no more pages of an account may wait."""
        with self._lock:
            return self._full(account)

    def _full(self, account: int) -> bool:
        mine = sum(other.account == account for other in self._listeners)
        return len(self._listeners) >= MOST_LISTENERS or mine >= MOST_OF_AN_ACCOUNT

    def leave(self, listener: Listener) -> None:
        with self._lock:
            self._listeners.discard(listener)

    def announce(self, runs: set[tuple[int, str]]) -> None:
        """Called by the writer, from its thread."""
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
        # Its event loop has ended, and nobody listens any more.
        pass
