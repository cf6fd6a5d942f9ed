"""The stacks of threads that execute tasks, sampled by a thread of our own or, where that is not safe, by the event loop.

Unlike Dask's profiler it counts the leaf frame with its current line, and knows the span besides the prefix.
"""

from __future__ import annotations

import asyncio
import math
import random
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..model.tables import PROFILES
from .columns import Columns, empty
from .currentframes import CurrentFrames, current_frames
from .stacks import StackTable

#: Thread ident -> (prefix, span id) of the task it executes at this moment.
Active = Callable[[], Mapping[int, tuple[str, str]]]

DEFAULT_FLOOR_S = 0.020
#: Without an interpreter lock every look stops all threads.
FREE_THREADED_FLOOR_S = 0.100
#: The share of a core the sampler may use; beyond it, it looks less often.
CPU_SHARE = 0.01
#: How much rarer than asked it may get by itself.
MAX_SLOWDOWN = 10.0
#: How much of that for coming late: two threads that compete for the interpreter lock make every look late, and a profile
#: matters most just then (with 10 here, 6 looks a second were left of 50).
LATE_SLOWDOWN = 2.0
#: Code objects are let go this often.
TABLE_LIFE_S = 60.0
#: Distinct (slice, prefix, span, stack) between two drains; more are dropped and counted. 8 MB.
MAX_ROWS = 50_000


def looks_from_loop(version: tuple[int, ...]) -> bool:
    """Whether this interpreter crashes when another thread looks at the frames of its event loop.

    CPython 3.11 and 3.12 do: under many short tasks a worker died of a segmentation fault in the garbage collector once in 15 s
    at 50 looks a second (3.11.7, 3.12.1), and never when the event loop's own thread looked, as Dask's profiler does. 3.10
    and 3.13 never did. The price is that a blocked event loop is not sampled; ``ticks`` against ``ticks_expected`` shows it.
    """
    return (3, 11) <= version[:2] < (3, 13)


@dataclass
class Slice:
    """Counts of one stretch of time."""

    start: float
    stop: float
    ticks: int = 0
    counts: dict[tuple[str, str, int], int] = field(default_factory=dict)


class Sampler:
    """Counts stacks per (slice, prefix, span). ``clock`` gives seconds on the scheduler's clock."""

    def __init__(
        self,
        active: Active,
        *,
        interval: float = DEFAULT_FLOOR_S,
        cycle: float = 1.0,
        clock: Callable[[], float] = time.time,
        cpu_clock: Callable[[], float] = time.thread_time,
        frames: CurrentFrames | None = None,
        max_nodes: int = 20_000,
        max_rows: int = MAX_ROWS,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.interval = interval
        self.dropped = 0
        self.ticks = 0
        self.samples = 0
        self.cpu_s = 0.0
        self.error = ""
        self._active = active
        self._cycle = max(cycle, interval)
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._frames = frames or current_frames()
        self._max_nodes = max_nodes
        self._max_rows = max_rows
        self._pace = Pace(interval)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop = loop
        self._slices: list[Slice] = []
        self._new_table(clock())

    def start(self) -> None:
        """Begin to look: from the given event loop, or from a thread of our own."""
        if self._loop is not None:
            self._loop.call_later(self._pace.delay, self._look_from_loop, self._loop.time() + self._pace.delay)
            return
        self._thread = threading.Thread(target=self._run, name="daskscope-sampler", daemon=True)
        self._thread.start()

    def _look_from_loop(self, due: float) -> None:
        assert self._loop is not None
        if self._stop.is_set() or self.error:
            return
        self._pace.woke(self._loop.time() - due)
        try:
            self.tick()
        except Exception as error:  # noqa: BLE001 - we stop looking, the worker goes on
            self.error = f"{type(error).__name__}: {error}"[:200]
            return
        delay = self._pace.delay * random.uniform(0.9, 1.1)
        self._loop.call_later(delay, self._look_from_loop, self._loop.time() + delay)

    def stop(self, timeout: float = 1.0) -> None:
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def tick(self) -> None:
        """Look once."""
        before = self._cpu_clock()
        with self._lock:
            self._look()
        cost = self._cpu_clock() - before
        self.ticks += 1
        self.cpu_s += cost
        self._pace.spent(cost)

    def drain(self, worker: str, now: float, *, whole: bool = False) -> Columns:
        """The rows of all slices that ended before ``now``; with ``whole``, the running slice too."""
        with self._lock:
            stacks = self._stacks
            if whole or now - self._table_start > TABLE_LIFE_S:
                slices = self._slices
                if slices:
                    slices[-1].stop = min(slices[-1].stop, max(now, slices[-1].start))
                self._new_table(now)
            else:
                slices = [piece for piece in self._slices if piece.stop <= now]
                self._slices = [piece for piece in self._slices if piece.stop > now]
                self._rows = sum(len(piece.counts) for piece in self._slices)
        return self._columns(worker, slices, stacks)

    def _new_table(self, now: float) -> None:
        self._stacks = StackTable(self._max_nodes)
        self._table_start = now
        self._slices = []
        self._rows = 0

    def _look(self) -> None:
        now = self._clock()
        piece = self._slice_at(now)
        piece.ticks += 1
        active = self._active()
        if not active or self._frames is None:
            return
        # Frames hold the locals of the user's functions: nothing here may outlive this call.
        frames = self._frames()
        for ident, (prefix, span) in active.items():
            frame = frames.get(ident)
            if frame is not None:
                self._count(piece, prefix, span, self._stacks.add(frame))

    def _slice_at(self, now: float) -> Slice:
        last = self._slices[-1] if self._slices else None
        # The scheduler's clock as a worker knows it moves by milliseconds at each heartbeat, also backwards.
        if last is not None and last.start - self._cycle <= now < last.stop:
            return last
        if last is not None and not last.counts:
            self._slices.pop()  # an idle slice says nothing
        stop = (math.floor(now / self._cycle) + 1) * self._cycle
        piece = Slice(min(max(stop - self._cycle, self._table_start), now), stop)
        self._slices.append(piece)
        return piece

    def _count(self, piece: Slice, prefix: str, span: str, node: int | None) -> None:
        if not node:  # no room for this stack, or none above the carrier: the task has not begun or has just ended
            self.dropped += node is None
            return
        self.samples += 1
        key = (prefix, span, node)
        if key in piece.counts:
            piece.counts[key] += 1
        elif self._rows < self._max_rows:
            piece.counts[key] = 1
            self._rows += 1
        else:
            self.dropped += 1

    def _columns(self, worker: str, slices: list[Slice], stacks: StackTable) -> Columns:
        columns = empty(PROFILES)
        for piece in slices:
            # Two positions in one line are two nodes, but one stack of lines.
            merged: dict[tuple[str, str, tuple[str, ...]], int] = {}
            for (prefix, span, node), count in piece.counts.items():
                key = (prefix, span, stacks.stack(node))
                merged[key] = merged.get(key, 0) + count
            expected = max(round((piece.stop - piece.start) / self.interval), 1)
            for (prefix, span, stack), count in merged.items():
                columns["start_us"].append(round(piece.start * 1e6))
                columns["stop_us"].append(round(piece.stop * 1e6))
                columns["worker"].append(worker)
                columns["kind"].append("compute")
                columns["source"].append("daskscope")
                columns["prefix"].append(prefix)
                columns["span"].append(span)
                columns["stack"].append(stack)
                columns["count"].append(count)
                columns["ticks"].append(piece.ticks)
                columns["ticks_expected"].append(expected)
        return columns

    def _run(self) -> None:
        due = time.monotonic() + self._pace.delay
        while not self._stop.wait(max(due - time.monotonic(), 0.001)):
            self._pace.woke(time.monotonic() - due)
            try:
                self.tick()
            except Exception as error:  # noqa: BLE001 - our thread ends, the worker goes on
                self.error = f"{type(error).__name__}: {error}"[:200]
                return
            # Jittered, or a task that repeats in step with us would always be met at the same place.
            due = time.monotonic() + self._pace.delay * random.uniform(0.9, 1.1)

    @property
    def alive(self) -> bool:
        if self._loop is not None:
            return not self._stop.is_set() and not self.error
        return self._thread is not None and self._thread.is_alive()


class Pace:
    """How long to wait between two looks: longer where they are dear or come late."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._cost = 0.0
        self._slowdown = 1.0

    def spent(self, cost: float) -> None:
        """A look took this much processor time."""
        self._cost += 0.1 * (cost - self._cost)

    def woke(self, late: float) -> None:
        """We were called this much too late: others want the interpreter, leave it to them."""
        factor = 1.25 if late > self._interval else 0.9
        self._slowdown = min(max(self._slowdown * factor, 1.0), LATE_SLOWDOWN)

    @property
    def delay(self) -> float:
        wanted = max(self._interval * self._slowdown, self._cost / CPU_SHARE)
        return min(wanted, self._interval * MAX_SLOWDOWN)


def sampling_interval(dask_interval: float, floor: float) -> float:
    """Never more often than Dask is told to, nor than our settings allow."""
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED")) and not _has_gil()
    return max(dask_interval, floor, FREE_THREADED_FLOOR_S if free_threaded else DEFAULT_FLOOR_S)


def _has_gil() -> bool:
    enabled = getattr(sys, "_is_gil_enabled", None)
    return True if enabled is None else bool(enabled())
