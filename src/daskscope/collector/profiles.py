"""Profiles of event loops: sample them, or read what Dask's own profiler has."""

from __future__ import annotations

import faulthandler
import os
import re
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import dask.config
from dask.utils import parse_timedelta

from ..model.tables import PROFILES
from .aliases import PLAIN, Aliases
from .rows import Columns, empty

Tree = dict[str, Any]

# Sample the thread of an event loop on Python 3.11, where Dask does not.
#
# There, a thread that reads frame objects of an event loop crashes the process now and then (see ``worker/sampler.py``).
# ``faulthandler`` makes no frame objects: it writes the stacks of all threads as text, while this thread holds the interpreter
# lock. That takes 1.4 ms for nine threads with 25 frames each, so ten samples a second at most are taken, and fewer if they
# cost more than 0.5 % of a core.

INTERVAL_S = 0.1
#: The share of a core that samples may use; above it, there are fewer.
CPU_SHARE = 0.005
#: A bucket of counts per second; older ones than these are dropped.
MAX_BUCKETS = 60
MAX_SAMPLED_STACKS = 1_000
#: Text of one sample; longer ones end here. 100 threads with 100 frames have about 800 kB.
MAX_TEXT = 1_000_000
#: An event loop waits for its next event in this module.
IDLE = "selectors.py"

_FRAME = re.compile(rb'  File "(.*)", line (\d+|\?\?\?) in (.*)')

Stack = tuple[str, ...]
#: When it ended, the number of samples and their stacks.
SampledBucket = tuple[float, dict[str, Any]]


def is_needed(version: tuple[int, ...]) -> bool:
    """Return whether Dask takes no samples of event loops on this interpreter."""
    return version[:2] == (3, 11)


def loop_thread(io_loop: Any) -> int | None:
    """Return the ident of the thread that runs an event loop; None if it is not known."""
    ident = getattr(getattr(io_loop, "asyncio_loop", None), "_thread_id", None)
    return ident if isinstance(ident, int) else None


class LoopSampler:
    """Samples one thread from a thread of its own, into buckets of a second."""

    def __init__(self, ident: int, clock: Callable[[], float] = time.time) -> None:
        self.cpu_s = 0.0
        self._ident = ident
        self._clock = clock
        self._buckets: deque[SampledBucket] = deque(maxlen=MAX_BUCKETS)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="daskscope-loop-sampler", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def drain(self) -> list[SampledBucket]:
        """Return the buckets since the last call."""
        with self._lock:
            buckets = list(self._buckets)
            self._buckets.clear()
        return buckets

    def _run(self) -> None:
        delay = INTERVAL_S
        with _scratch_file() as file:
            while not self._stop.wait(delay):
                before = time.thread_time()
                stack = read_stack(file.fileno(), self._ident)
                if stack and not stack[-1].partition("\t")[0].endswith(IDLE):
                    self._count(stack)
                cost = time.thread_time() - before
                self.cpu_s += cost
                delay = max(INTERVAL_S, cost / CPU_SHARE)

    def _count(self, stack: Stack) -> None:
        end = float(int(self._clock()) + 1)
        with self._lock:
            if not self._buckets or self._buckets[-1][0] != end:
                self._buckets.append((end, {"count": 0, "stacks": {}}))
            bucket = self._buckets[-1][1]
            if stack in bucket["stacks"] or len(bucket["stacks"]) < MAX_SAMPLED_STACKS:
                bucket["stacks"][stack] = bucket["stacks"].get(stack, 0) + 1
                bucket["count"] += 1


def read_stack(file: int, ident: int) -> Stack:
    """Return the stack of a thread, outermost frame first; empty if it has ended. ``file`` is overwritten."""
    os.lseek(file, 0, os.SEEK_SET)
    os.ftruncate(file, 0)
    faulthandler.dump_traceback(file=file, all_threads=True)
    text = os.pread(file, MAX_TEXT, 0)
    start = text.find(b"hread 0x%016x" % ident)
    if start < 0:
        return ()
    end = text.find(b"\n\n", start)
    lines = text[start : end if end >= 0 else len(text)].splitlines()
    frames = [found for line in lines if (found := _FRAME.match(line))]
    return tuple(
        "\t".join((_text(found[1]), _text(found[3]), "0" if found[2] == b"???" else _text(found[2])))
        for found in reversed(frames)
    )


def _text(part: bytes) -> str:
    return part.decode("ascii", "replace").replace("\t", " ")


def _scratch_file() -> Any:
    """Return a file that is in memory where that is possible."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("daskscope-stacks"), "w+b")
    return tempfile.TemporaryFile()


# The profile of an event loop is drained in workers and in the scheduler.
#
# Dask samples the thread of each event loop into ``io_loop.profile``: a tree per second, for the last 1,000 seconds. On Python
# 3.11 it does not, and the history stays empty; a ``LoopSampler`` takes its place.

Bucket = tuple[float, Tree]

#: Buckets read at once, and distinct stacks of them; more are dropped and counted.
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


# Dask's own profile is drained on interpreters where the sampler cannot run.
#
# Dask counts a sample at every frame that called another frame, never at the innermost frame. So ``count(P) -
# sum(count(children))`` samples ended in one of P's children; if P has one child, it is known which. Merging prefixes or
# seconds first would give P more children, so samples are resolved per prefix and per bucket.


class DaskProfile:
    """Drains the new buckets of ``worker.profile_keys_history``."""

    def __init__(self, worker: Any, *, interval: float, cycle: float, aliases: Aliases = PLAIN) -> None:
        self._worker = worker
        self._aliases = aliases
        self._cycle = cycle
        self._expected = max(round(cycle / interval), 1)
        self._last = self._newest()

    def drain(self, worker: str) -> Columns:
        columns = empty(PROFILES)
        if not self._aliases.keys:
            # Dask's profile has the prefixes only. Prefixes of tasks that are gone by now get an alias.
            for key in list(self._worker.state.tasks):
                self._aliases.note(key)
        for stop, trees in self._new_buckets():
            for prefix, tree in list(trees.items()):
                for stack, count in resolve_stacks(tree):
                    self._append(columns, worker, stop, self._aliases.group(prefix), stack, count)
        return columns

    def _newest(self) -> Any:
        history = getattr(self._worker, "profile_keys_history", None)
        return history[-1] if history else None

    def _new_buckets(self) -> list[tuple[float, dict[str, Tree]]]:
        history = list(getattr(self._worker, "profile_keys_history", None) or ())
        new = []
        for bucket in reversed(history):
            if bucket is self._last:
                break
            new.append(bucket)
        if history:
            self._last = history[-1]
        return new[::-1]

    def _append(self, columns: Columns, worker: str, stop: float, prefix: str, stack: Stack, count: int) -> None:
        columns["start_us"].append(round((stop - self._cycle) * 1e6))
        columns["stop_us"].append(round(stop * 1e6))
        columns["worker"].append(worker)
        columns["kind"].append("compute")
        columns["source"].append("dask")
        columns["prefix"].append(prefix)
        columns["span"].append("")
        columns["stack"].append(stack)
        columns["count"].append(count)
        columns["ticks"].append(0)  # Dask does not count its ticks
        columns["ticks_expected"].append(self._expected)
        for name in ("wall_us", "cpu_us", "runqueue_us", "switches", "looping"):
            columns[name].append(0)


def dask_timing(name: str, default: float) -> float:
    """Return a duration of Dask's profiler configuration in seconds; plain numbers there are milliseconds."""
    value = dask.config.get(f"distributed.worker.profile.{name}", None)
    try:
        return float(parse_timedelta(value, default="ms")) if value else default
    except (ValueError, KeyError, TypeError):
        return default


def resolve_stacks(tree: Tree) -> Iterator[tuple[Stack, int]]:
    """Yield whole stacks with their counts. Samples of an unknown child count for the caller; the sum is always exact."""
    pending: list[tuple[Stack, Tree]] = [((), tree)]
    while pending:
        path, node = pending.pop()
        children = list(node["children"].values())
        paths = [(*path, _frame(child["description"])) for child in children]
        leaves = node["count"] - sum(child["count"] for child in children)
        if leaves > 0:
            yield from _leaf_counts(path, children, paths, leaves)
        pending += zip(paths, children, strict=True)


def _leaf_counts(path: Stack, children: list[Tree], paths: list[Stack], leaves: int) -> Iterator[tuple[Stack, int]]:
    if len(children) == 1:
        yield paths[0], leaves
        return
    # A child without a count was innermost at least once; the remaining samples may belong to any child.
    for child, child_path in zip(children, paths, strict=True):
        if not child["count"] and leaves:
            leaves -= 1
            yield child_path, 1
    if leaves:
        yield path, leaves


def _frame(description: dict[str, Any]) -> str:
    fields = (description.get("filename"), description.get("name"), description.get("line_number"))
    return "\t".join(str(field).replace("\t", " ").replace("\n", " ") for field in fields)
