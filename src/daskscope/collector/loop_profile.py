"""Drain the profile of an event loop, in a worker or in the scheduler.

Dask samples the thread of each event loop into ``io_loop.profile``: a tree per second, for the last 1,000 seconds. On Python 3.11
it does not, and the history stays empty; a ``LoopSampler`` takes its place.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import Any

from ..model.tables import PROFILES
from .loop_sampler import INTERVAL_S, LoopSampler, is_needed, loop_thread
from .rows import Columns, empty
from .worker.dask_profile import Stack, Tree, resolve_stacks

Bucket = tuple[float, Tree]

#: Buckets read at once, and distinct stacks of them; more are dropped and counted.
MAX_BUCKETS = 60
MAX_STACKS = 2_000
#: Workers and a scheduler in one thread share an event loop, which must not be counted twice: the first of them claims it.
CLAIM = "_daskscope_profile"


class LoopProfile:
    """Drains the profile of one event loop."""

    def __init__(self, io_loop: Any, kind: str, *, interval: float, cycle: float) -> None:
        self.dropped = 0
        self._io_loop = io_loop
        self._kind = kind
        self._interval = interval
        self._cycle = cycle
        self._is_mine = io_loop is not None and getattr(io_loop, CLAIM, None) is None
        if self._is_mine:
            setattr(io_loop, CLAIM, kind)
        self._own = self._start_sampler()
        history = self._history()
        self._last: Any = history[-1] if history else None

    def close(self) -> None:
        """Release the event loop."""
        if self._is_mine:
            self._is_mine = False
            if self._own is not None:
                self._own.stop()
            setattr(self._io_loop, CLAIM, None)

    def new_buckets(self) -> list[Bucket]:
        """Return the buckets with samples since the last call. Takes microseconds."""
        if self._own is not None:
            return self._own.drain()
        history = self._history()
        new = []
        for bucket in reversed(history):
            if bucket is self._last:
                break
            new.append(bucket)
        if history:
            self._last = history[-1]
        sampled = [bucket for bucket in reversed(new) if bucket[1]["count"] > 0]
        self.dropped += max(len(sampled) - MAX_BUCKETS, 0)
        return sampled[-MAX_BUCKETS:]

    def columns(self, buckets: list[Bucket], worker: str, delay: float = 0.0) -> Columns:
        """Return buckets as rows of ``profiles``, one for each stack; ``delay`` is the scheduler's clock minus this one."""
        columns = empty(PROFILES)
        if not buckets:
            return columns
        counts: dict[Stack, int] = {}
        for _, tree in buckets:
            for stack, count in tree["stacks"].items() if "stacks" in tree else resolve_stacks(tree):
                counts[stack] = counts.get(stack, 0) + count
        self.dropped += max(len(counts) - MAX_STACKS, 0)
        start, stop = buckets[0][0] - self._cycle + delay, buckets[-1][0] + delay
        for stack, count in islice(sorted(counts.items(), key=lambda item: -item[1]), MAX_STACKS):
            row = {
                "start_us": round(start * 1e6),
                "stop_us": round(stop * 1e6),
                "worker": worker,
                "kind": self._kind,
                "source": "dask" if self._own is None else "daskscope",
                "stack": stack,
                "count": count,
                "ticks_expected": max(round((stop - start) / self._interval), 1),
            }
            for column in PROFILES.columns:
                columns[column.name].append(row.get(column.name, "" if column.kind == "str" else 0))
        return columns

    def _start_sampler(self) -> LoopSampler | None:
        ident = loop_thread(self._io_loop)
        if not self._is_mine or ident is None or not is_needed(sys.version_info[:2]):
            return None
        self._interval = INTERVAL_S
        return LoopSampler(ident)

    def _history(self) -> list[Bucket]:
        # Copying a deque is atomic in the interpreter; Dask's thread may append meanwhile.
        return list(getattr(self._io_loop, "profile", None) or ()) if self._is_mine else []
