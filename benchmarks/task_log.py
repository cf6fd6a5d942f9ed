"""Timers of tasks: what workers write to a log while daskscope records them.

Workers import it, so it imports the standard library only.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Where timers of tasks are written; workers inherit it.
LOG = "DASKSCOPE_ACCURACY_LOG"


@contextmanager
def timer(what: str) -> Iterator[None]:
    """Write how long the block took, and the CPU time and the time without a core of its thread, to the log."""
    start, cpu, queued = time.time(), time.thread_time(), without_core()
    with Path(os.environ[LOG] + ".begun").open("a", encoding="utf-8") as log:
        log.write(json.dumps({"what": what, "start": start, "pid": os.getpid()}) + "\n")
    try:
        yield
    finally:
        _write(what, start, time.time(), time.thread_time() - cpu, without_core() - queued)


def note(what: str, amount: float) -> None:
    """Write an amount to the log, as CPU time."""
    _write(what, time.time(), time.time(), amount, 0.0)


def _write(what: str, start: float, stop: float, cpu: float, queued: float) -> None:
    line = {"what": what, "start": start, "stop": stop, "cpu": cpu, "queued": queued, "pid": os.getpid()}
    with Path(os.environ[LOG]).open("a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")


def without_core() -> float:
    """Return for how many seconds the kernel let this thread wait for a core."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
