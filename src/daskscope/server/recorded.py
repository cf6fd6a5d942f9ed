"""Which users were found to record which clusters, so that a batch needs no query for it.

The user of a cluster never changes. An entry outlives a demotion from owner or a deleted cluster by ten minutes at most.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

MAX_ENTRIES = 10_000
MAX_AGE_S = 600.0


@dataclass
class Recorded:
    """Clusters and users that may record them, for a while."""

    clock: Callable[[], float] = time.monotonic
    _until: dict[tuple[int, str, str], float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def knows(self, account: int, user: str, clusters: Iterable[str]) -> bool:
        now = self.clock()
        return all(self._until.get((account, user, cluster), 0.0) > now for cluster in clusters)

    def add(self, account: int, user: str, cluster: str) -> None:
        with self._lock:
            if len(self._until) >= MAX_ENTRIES:
                self._until.clear()
            self._until[account, user, cluster] = self.clock() + MAX_AGE_S
