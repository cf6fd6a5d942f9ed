"""Sample the stacks of threads that execute tasks, from a separate thread or, where that is not safe, from the event loop.

Unlike Dask's profiler, the sampler counts the innermost frame with its current line, and records the span as well as the
prefix. ``Pace`` limits its cost to 1 % of a core. ``collection_paused`` makes reading frames safe on CPython 3.11.
"""

from __future__ import annotations

import asyncio
import gc
import math
import random
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import FrameType

from ...model.tables import COMPUTING, OTHER_THREAD, PROFILES, RESTING, WAITING
from ..rows import Columns, empty
from .kernel import ThreadTime, ThreadTimes
from .stacks import LOOP, StackTable, awaited_kinds, may_be_in_coroutine, rests, working_threads

#: Returns, by thread ident, the (prefix, span ID, key) of the task that the thread executes.
Active = Callable[[], Mapping[int, tuple[str, str, Hashable]]]

CurrentFrames = Callable[[], dict[int, FrameType]]

#: The shortest interval between samples, and the default: Dask's own.
MIN_INTERVAL_S = 0.010
#: Without an interpreter lock every sample stops all threads.
FREE_THREADED_FLOOR_S = 0.100
#: The share of a core the sampler may use; above it, it samples less often.
CPU_SHARE = 0.01
#: The sampler lengthens its interval up to this, or ten times.
MAX_DELAY_S = 0.2
MAX_SLOWDOWN = 10.0
#: Largest factor for late samples: two threads that compete for the interpreter lock make every sample late, and a profile
#: matters most just then (with 10 here, 6 samples a second were left of 50).
LATE_SLOWDOWN = 2.0
#: Code objects are released this often.
TABLE_LIFE_S = 60.0
#: Distinct (slice, prefix, span, stack) between two drains; more are dropped and counted. 8 MB.
MAX_ROWS = 50_000
#: A thread computes if it used a core, or was ready to, for half of the time since its previous sample; at its first sample, if it
#: ever used 5 ms.
BUSY_SHARE = 0.5
BUSY_US = 5_000
#: Threads beside the tasks' whose times are remembered.
MAX_HELPERS = 200


def must_sample_from_loop(version: tuple[int, ...]) -> bool:
    """Return whether this interpreter crashes when another thread reads the frames of its event loop.

    CPython 3.11 and 3.12 do: with many short tasks a worker died of a segmentation fault in the garbage collector once in 15 s
    at 50 samples a second (3.11.7, 3.12.1), and never when the event loop's own thread sampled, as Dask's profiler does. 3.10
    and 3.13 never did. The cost is that a blocked event loop is not sampled; ``ticks`` against ``ticks_expected`` shows it.
    """
    return (3, 11) <= version[:2] < (3, 13)


@dataclass
class Count:
    """Samples of one stack, and what the kernel measured between each of them and the one before."""

    samples: int = 0
    looping: int = 0
    wall_us: int = 0
    cpu_us: int = 0
    runqueue_us: int = 0
    switches: int = 0

    def add(self, samples: int, before: ThreadTime | None, now: ThreadTime | None) -> None:
        self.samples += samples
        if before is not None and now is not None:
            self.wall_us += now.wall_us - before.wall_us
            self.cpu_us += now.cpu_us - before.cpu_us
            self.runqueue_us += now.runqueue_us - before.runqueue_us
            self.switches += now.switches - before.switches

    def merge(self, other: Count) -> None:
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class Slice:
    """Counts of one time slice."""

    start: float
    stop: float
    ticks: int = 0
    counts: dict[tuple[str, str, int], Count] = field(default_factory=dict)


class Sampler:
    """Counts stacks per (slice, prefix, span). ``clock`` returns seconds on the scheduler's clock."""

    def __init__(
        self,
        active: Active,
        *,
        interval: float = MIN_INTERVAL_S,
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
        self._reading_frames = collection_paused if needs_pause(sys.version_info[:2]) else nullcontext
        self._max_nodes = max_nodes
        self._max_rows = max_rows
        self._pace = Pace(interval)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop = loop
        self._times = ThreadTimes()
        #: The key that each thread executed at the previous sample, and the thread's times.
        self._before: dict[int, tuple[Hashable, ThreadTime | None]] = {}
        #: The times of threads that tasks waited for.
        self._helpers: dict[int, ThreadTime] = {}
        self._slices: list[Slice] = []
        self._new_table(clock())

    def start(self) -> None:
        """Start sampling, from the given event loop or from a new thread."""
        if self._loop is not None:
            self._loop.call_later(self._pace.delay, self._tick_from_loop, self._loop.time() + self._pace.delay)
            return
        self._thread = threading.Thread(target=self._run, name="daskscope-sampler", daemon=True)
        self._thread.start()

    def _tick_from_loop(self, due: float) -> None:
        assert self._loop is not None
        if self._stop.is_set() or self.error:
            return
        self._pace.note_delay(self._loop.time() - due)
        try:
            self.tick()
        except Exception as error:  # noqa: BLE001 - sampling stops, the worker keeps running
            self.error = f"{type(error).__name__}: {error}"[:200]
            return
        delay = self._pace.delay * random.uniform(0.9, 1.1)
        self._loop.call_later(delay, self._tick_from_loop, self._loop.time() + delay)

    def stop(self, timeout: float = 1.0) -> None:
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        with self._lock:
            self._times.close()

    def tick(self) -> None:
        """Take one sample and note its cost."""
        before = self._cpu_clock()
        with self._lock:
            self._sample()
        cost = self._cpu_clock() - before
        self.ticks += 1
        self.cpu_s += cost
        self._pace.note_cost(cost)

    def drain(self, worker: str, now: float, *, whole: bool = False) -> Columns:
        """Return the rows of all slices that ended before ``now``; with ``whole``, of the current slice too."""
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

    def stacks_now(self) -> list[tuple[int, str, Hashable, tuple[str, ...]]]:
        """Return thread, prefix, key and stack of every task that runs now. Call it on the worker's event loop (see the module)."""
        active, found = self._active(), list[tuple[int, str, Hashable, tuple[str, ...]]]()
        if not active or self._frames is None:
            return found
        # A table of its own: the sampler's may be full.
        stacks = StackTable(self._max_nodes)
        with self._lock, self._reading_frames():
            frames = self._frames()
            nodes = {ident: stacks.add(frames.get(ident)) for ident in active}
            # Frames hold the locals of the user's functions.
            del frames
        for ident, node in nodes.items():
            prefix, _, key = active[ident]
            if node:
                found.append((ident, prefix, key, stacks.stack(node)))
        return found

    def _new_table(self, now: float) -> None:
        self._stacks = StackTable(self._max_nodes)
        self._table_start = now
        self._slices = []
        self._rows = 0

    def _sample(self) -> None:
        now = self._clock()
        piece = self._slice_at(now)
        piece.ticks += 1
        active = self._active()
        before, self._before = self._before, {}
        if not active or self._frames is None:
            return
        if len(self._times) > 2 * len(active) + 100:
            self._times.close()  # threads that seceded have ended
        with self._reading_frames():
            frames = self._frames()
            try:
                self._count_frames(piece, active, frames, before)
            finally:
                # Frames hold the locals of the user's functions. One of these frames is our own, whose locals hold all of them:
                # left to the garbage collector, results would stay in memory for seconds after their task.
                del frames

    def _count_frames(
        self,
        piece: Slice,
        active: Mapping[int, tuple[str, str, Hashable]],
        frames: Mapping[int, FrameType],
        before: Mapping[int, tuple[Hashable, ThreadTime | None]],
    ) -> None:
        working: dict[str, list[int]] | None = None
        for ident, (prefix, span, key) in active.items():
            frame = frames.get(ident)
            if frame is None:
                continue
            node = self._stacks.add(frame)
            if node and (kinds := awaited_kinds(frame)):
                working = working_threads(frames, active) if working is None else working
                kind = next((one for one in kinds if working.get(one)), "")
                node = self._follow(node, working.get(kind), frames, is_loop=kind == LOOP)
            used = self._times.read(ident)
            self._before[ident] = (key, used)
            # The thread may have been idle between two executions, so times count only within one.
            last_key, used_before = before.get(ident, (None, None))
            self._count(piece, (prefix, span, node), used_before if last_key == key else None, used)

    def _follow(
        self, node: int, threads: list[int] | None, frames: Mapping[int, FrameType], *, is_loop: bool
    ) -> int | None:
        """Return the node of a task that waits, followed by the stack of a thread that works for it: of several, each in turn."""
        if not threads:
            return node
        # A library that has nothing to do may have an event loop, too.
        threads = [ident for ident in threads if not rests(frames[ident])] or threads
        ident = threads[self.samples % len(threads)]
        used, before = self._times.read(ident), self._helpers.get(ident)
        if used is None:
            return node
        if len(self._helpers) >= MAX_HELPERS:
            self._helpers.clear()
        self._helpers[ident] = used
        if before is None or used.wall_us <= before.wall_us:
            is_busy = used.cpu_us >= BUSY_US
        else:
            wanted = used.cpu_us - before.cpu_us + used.runqueue_us - before.runqueue_us
            is_busy = wanted >= BUSY_SHARE * (used.wall_us - before.wall_us)
        state = COMPUTING if is_busy else RESTING if rests(frames[ident]) else WAITING
        marked = self._stacks.mark(node, f"{OTHER_THREAD}\t{state}\t0")
        if marked is None or state == RESTING or (is_loop and may_be_in_coroutine(frames[ident], sys.version_info[:2])):
            return marked
        return self._stacks.add(frames[ident], marked)

    def _slice_at(self, now: float) -> Slice:
        last = self._slices[-1] if self._slices else None
        # A worker's estimate of the scheduler's clock jumps by milliseconds at each heartbeat, also backwards.
        if last is not None and last.start - self._cycle <= now < last.stop:
            return last
        if last is not None and not last.counts:
            self._slices.pop()  # idle slices have no rows
        stop = (math.floor(now / self._cycle) + 1) * self._cycle
        piece = Slice(min(max(stop - self._cycle, self._table_start), now), stop)
        self._slices.append(piece)
        return piece

    def _count(
        self, piece: Slice, place: tuple[str, str, int | None], before: ThreadTime | None, now: ThreadTime | None
    ) -> None:
        prefix, span, node = place
        if not node:  # None: the table is full. ROOT: no frame of the task, which has not begun or has just ended.
            self.dropped += node is None
            return
        self.samples += 1
        key = (prefix, span, node)
        count = piece.counts.get(key)
        if count is None:
            if self._rows >= self._max_rows:
                self.dropped += 1
                return
            count = piece.counts[key] = Count()
            self._rows += 1
        count.add(1, before, now)

    def _columns(self, worker: str, slices: list[Slice], stacks: StackTable) -> Columns:
        columns = empty(PROFILES)
        for piece in slices:
            # Two positions in one line are two nodes, but the same stack.
            merged: dict[tuple[str, str, tuple[str, ...]], Count] = {}
            for (prefix, span, node), count in piece.counts.items():
                count.looping = count.samples if stacks.is_looping(node) else 0
                merged.setdefault((prefix, span, stacks.stack(node)), Count()).merge(count)
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
                columns["count"].append(count.samples)
                columns["ticks"].append(piece.ticks)
                columns["ticks_expected"].append(expected)
                columns["wall_us"].append(count.wall_us)
                columns["cpu_us"].append(count.cpu_us)
                columns["runqueue_us"].append(count.runqueue_us)
                columns["switches"].append(count.switches)
                columns["looping"].append(count.looping)
        return columns

    def _run(self) -> None:
        due = time.monotonic() + self._pace.delay
        while not self._stop.wait(max(due - time.monotonic(), 0.001)):
            self._pace.note_delay(time.monotonic() - due)
            try:
                self.tick()
            except Exception as error:  # noqa: BLE001 - the sampler's thread ends, the worker keeps running
                self.error = f"{type(error).__name__}: {error}"[:200]
                return
            # Jitter, because a task that repeats at the same rate would always be sampled at the same place.
            due = time.monotonic() + self._pace.delay * random.uniform(0.9, 1.1)


class Pace:
    """The delay between two samples: longer if samples are expensive or late."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._cost = 0.0
        self._slowdown = 1.0

    def note_cost(self, cost: float) -> None:
        """Note the CPU time of a sample."""
        self._cost += 0.1 * (cost - self._cost)

    def note_delay(self, late: float) -> None:
        """Note how late a sample is. If it is very late, other threads need the interpreter: sample less often."""
        factor = 1.25 if late > self._interval else 0.9
        self._slowdown = min(max(self._slowdown * factor, 1.0), LATE_SLOWDOWN)

    @property
    def delay(self) -> float:
        wanted = max(self._interval * self._slowdown, self._cost / CPU_SHARE)
        return min(wanted, max(self._interval * MAX_SLOWDOWN, MAX_DELAY_S))


def sampling_interval(dask_interval: float, floor: float) -> float:
    """Return the interval between samples: the longer of Dask's interval and the floor in the settings, at least 10 ms."""
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED")) and not _has_gil()
    return max(dask_interval, floor, FREE_THREADED_FLOOR_S if free_threaded else MIN_INTERVAL_S)


def _has_gil() -> bool:
    enabled = getattr(sys, "_is_gil_enabled", None)
    return True if enabled is None else bool(enabled())


@contextmanager
def collection_paused() -> Iterator[None]:
    """Switch the garbage collector off for a block.

    If the program switches the collector off within this block, which takes some 100 µs, it is on again afterwards.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def needs_pause(version: tuple[int, ...]) -> bool:
    """Return whether this interpreter must not collect garbage while the frames of another thread are read.

    CPython 3.11 makes the object of a frame when it is asked for. Making it may start the collector, whose finalizers may
    release the interpreter lock, and then the other thread goes on. In ``sys._current_frames`` that is a deadlock before 3.11.9
    (cpython issues 106883 and 116969). In ``f_back`` it is a segmentation fault: the new object refers to a frame that has
    ended meanwhile. Newer versions collect between two instructions only.
    """
    return version[:2] == (3, 11)


def current_frames() -> CurrentFrames | None:
    """Return the function that returns the frame each thread executes; None if the interpreter has no such function."""
    return getattr(sys, "_current_frames", None)
