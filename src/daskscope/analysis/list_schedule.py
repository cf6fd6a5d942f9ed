"""Predict how long tasks take on another number of threads: each next task goes to the thread that is free first."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def makespan_us(durations_us: Sequence[float], threads: int) -> float:
    """Return the time until the last of independent tasks ends, started in their order."""
    # More threads than tasks change nothing, and anybody may upload a recording with a trillion threads.
    free = [0.0] * max(1, min(threads, len(durations_us)))
    for us in durations_us:
        heapq.heapreplace(free, free[0] + us)
    return max(free)
