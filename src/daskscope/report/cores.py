"""How many threads make a document."""

from __future__ import annotations

import os
import sys

#: More threads do not make documents faster, and each takes 8 MB of the memory that a process may use.
MAX_THREADS = 4


def usable_cores() -> int:
    """Return the number of cores that this process may use, at most ``MAX_THREADS``."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(cores, MAX_THREADS)
