"""Sample the thread of an event loop on Python 3.11, where Dask does not.

There, a thread that reads frame objects of an event loop crashes the process now and then (see ``worker/sampler.py``).
``faulthandler`` makes no frame objects: it writes the stacks of all threads as text, while this thread holds the interpreter lock.
That takes 1.4 ms for nine threads with 25 frames each, so ten samples a second at most are taken, and fewer if they cost more than
0.5 % of a core.
"""

from __future__ import annotations

import faulthandler
import os
import re
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

INTERVAL_S = 0.1
#: The share of a core that samples may use; above it, there are fewer.
CPU_SHARE = 0.005
#: A bucket of counts per second; older ones than these are dropped.
MAX_BUCKETS = 60
MAX_STACKS = 1_000
#: Text of one sample; longer ones end here. 100 threads with 100 frames have about 800 kB.
MAX_TEXT = 1_000_000
#: An event loop waits for its next event in this module.
IDLE = "selectors.py"

_FRAME = re.compile(rb'  File "(.*)", line (\d+|\?\?\?) in (.*)')

Stack = tuple[str, ...]
#: When it ended, the number of samples and their stacks.
Bucket = tuple[float, dict[str, Any]]


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
        self._buckets: deque[Bucket] = deque(maxlen=MAX_BUCKETS)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="daskscope-loop-sampler", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def drain(self) -> list[Bucket]:
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
            if stack in bucket["stacks"] or len(bucket["stacks"]) < MAX_STACKS:
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
