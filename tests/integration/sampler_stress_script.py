"""Provoke the deadlock and the crash of reading frames of other threads; test_sampler_stress runs this in a separate process.

Prints ``survived`` if it could sample until the end. If no sample returns for STUCK seconds, faulthandler's watchdog, which
needs no interpreter lock, ends the process with status 1. A segmentation fault ends it by a signal.

See ``needs_pause`` for what happens inside CPython 3.11.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from daskscope.collector.worker.sampler import collection_paused
from daskscope.collector.worker.stacks import StackTable

STUCK = 8.0


class Garbage:
    """A cycle whose finalizer releases the interpreter lock, as closing a file or a connection does."""

    alive = 0

    def __init__(self) -> None:
        self.me = self
        Garbage.alive += 1

    def __del__(self) -> None:
        Garbage.alive -= 1
        time.sleep(0.0002)


def start_threads_until(stop: float) -> None:
    while time.monotonic() < stop:
        for _ in range(5):
            threading.Thread(target=int, daemon=True).start()
        time.sleep(0.0005)


#: Code that is gone after each call: a frame that refers to it by mistake is easily noticed.
SHORT_LIVED = """
import time

def recurse(depth):
    return recurse(depth - 1) + 1 if depth else time.sleep(0.00002) or 0

def recurse_with_locals(depth):
    a = b = c = d = e = f = g = h = [depth] * 50
    return recurse_with_locals(depth - 1) if depth else sum(a)
"""


def recurse_until(stop: float) -> None:
    while time.monotonic() < stop:
        names: dict[str, Any] = {}
        exec(SHORT_LIVED, names)
        names["recurse"](random.randrange(3, 60))
        names["recurse_with_locals"](random.randrange(3, 40))
        names.clear()


Guard = Callable[[], AbstractContextManager[None]]
#: What is guarded in each mode: the call of ``sys._current_frames``, and all of a sample.
MODES: dict[str, tuple[Guard, Guard]] = {
    "bare": (nullcontext, nullcontext),
    "call": (collection_paused, nullcontext),
    "whole": (nullcontext, collection_paused),
}


def sample(call: Guard) -> None:
    """Read the stacks of all other threads as the sampler does."""
    table = StackTable()
    with call():
        frames = sys._current_frames()
    for ident, frame in frames.items():
        if ident != threading.get_ident():
            table.add(frame)


def sample_until(stop: float, call: Guard, whole: Guard) -> None:
    gc.set_threshold(20)
    while time.monotonic() < stop:
        faulthandler.dump_traceback_later(STUCK, exit=True)
        # Limited, because the finalizers of a backlog could take longer than STUCK without a deadlock.
        for _ in range(15 if Garbage.alive < 100 else 0):
            Garbage()
        with whole():
            sample(call)
        time.sleep(0.0005)


def main(mode: str, seconds: float) -> None:
    stop = time.monotonic() + seconds
    for target in (start_threads_until, start_threads_until, *[recurse_until] * 4):
        threading.Thread(target=target, args=(stop,), daemon=True).start()
    sample_until(stop, *MODES[mode])
    sys.stdout.write("survived\n")
    sys.stdout.flush()
    os._exit(0)  # the daemon threads are not under test


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
