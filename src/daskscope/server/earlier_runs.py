"""Earlier runs of running computations, remembered for a while: every open page of a cluster asks for its progress each second.

Finding them takes three queries and 8 ms per computation, and they rarely change.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from daskscope.analysis.progress import EarlierRun

MAX_ENTRIES = 1_000
MAX_AGE_S = 30.0


@dataclass
class EarlierRuns:
    """Earlier runs by run and computation."""

    clock: Callable[[], float] = time.monotonic
    _known: dict[tuple[int, str], tuple[float, list[EarlierRun]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, run: int, computation: str, find: Callable[[], list[EarlierRun]]) -> list[EarlierRun]:
        """Return the earlier runs of a computation, from memory or by ``find``."""
        now, key = self.clock(), (run, computation)
        until, found = self._known.get(key, (0.0, []))
        if until <= now:
            found = find()
            with self._lock:
                if len(self._known) >= MAX_ENTRIES:
                    self._known.clear()
                self._known[key] = now + MAX_AGE_S, found
        return found
