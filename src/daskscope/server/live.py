"""Tell open pages that a cluster has changed, and recorders that somebody looks at theirs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field

# Remember which clusters somebody looks at: their recorders send often, all others do not.
#
# A page of a cluster asks for it again whenever it changes, and a watched cluster changes every two seconds. So a cluster is
# watched for a while after each request for it, from a page or a program.

#: How long a request for a cluster counts. A page in the background asks once a minute, and need not be lively.
WATCHED_S = 30.0
#: How often to notify other servers of the same cluster.
FORWARD_S = 10.0
MAX_WATCHED = 10_000


@dataclass
class Watched:
    """Clusters by account, and when they were last asked for."""

    clock: Callable[[], float] = time.monotonic
    #: Notifies other servers on the same database, if there may be some.
    forward: Callable[[int, str], None] | None = None
    _until: dict[tuple[int, str], float] = field(default_factory=dict)
    _notified: dict[tuple[int, str], float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, account: int, cluster: str) -> None:
        """Note that somebody asked this server for a cluster."""
        self.heard(account, cluster)
        now, run = self.clock(), (account, cluster)
        with self._lock:
            is_due = self.forward is not None and now - self._notified.get(run, -FORWARD_S) >= FORWARD_S
            if is_due:
                self._notified[run] = now
        if is_due and self.forward is not None:
            self.forward(account, cluster)

    def heard(self, account: int, cluster: str) -> None:
        """Note that somebody asked any server for a cluster."""
        with self._lock:
            if len(self._until) >= MAX_WATCHED:
                now = self.clock()
                self._until = {run: until for run, until in self._until.items() if until > now}
                self._notified.clear()
            if len(self._until) < MAX_WATCHED:
                self._until[account, cluster] = self.clock() + WATCHED_S

    def has_any(self, account: int, clusters: Iterable[str]) -> bool:
        """Return whether somebody watches one of the clusters."""
        now = self.clock()
        return any(self._until.get((account, cluster), 0.0) > now for cluster in clusters)


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
