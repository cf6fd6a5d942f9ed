"""Which clusters somebody looks at, so that their recorders send often and those of all others do not.

A page of a cluster asks for it again whenever it changes, and a watched cluster changes every two seconds. So a cluster is
watched for a while after each request for it, from a page or a program.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

#: How long a request for a cluster counts. A page in the background asks once a minute, and need not be lively.
WATCHED_S = 30.0
#: How often to notify other servers of the same cluster.
FORWARD_S = 10.0
MAX_ENTRIES = 10_000


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
            if len(self._until) >= MAX_ENTRIES:
                now = self.clock()
                self._until = {run: until for run, until in self._until.items() if until > now}
                self._notified.clear()
            if len(self._until) < MAX_ENTRIES:
                self._until[account, cluster] = self.clock() + WATCHED_S

    def has_any(self, account: int, clusters: Iterable[str]) -> bool:
        """Return whether somebody watches one of the clusters."""
        now = self.clock()
        return any(self._until.get((account, cluster), 0.0) > now for cluster in clusters)
