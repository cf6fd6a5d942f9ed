"""Provoke the deadlock of ``sys._current_frames``; test_sampler_stress runs this in a separate process.

Prints ``survived`` if it could sample until the end. If no sample returns for STUCK seconds, faulthandler's watchdog, which
needs no interpreter lock, ends the process with status 1.

CPython 3.11.0 to 3.11.8 hold the lock over the list of threads while they allocate the frame objects to return. An allocation may
run the garbage collector, a finalizer may release the interpreter lock, and a thread that then starts or ends waits for the
list of threads while it holds the interpreter lock: a deadlock (cpython issues 106883 and 116969).
"""

from __future__ import annotations

import faulthandler
import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from daskscope.collector.worker.sampler import guarded

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


def recurse(depth: int) -> None:
    if depth:
        recurse(depth - 1)
    else:
        time.sleep(0.001)


def recurse_until(stop: float) -> None:
    while time.monotonic() < stop:
        recurse(10)


def sample_until(stop: float, look: Callable[[], dict[int, FrameType]]) -> None:
    gc.set_threshold(20)
    while time.monotonic() < stop:
        faulthandler.dump_traceback_later(STUCK, exit=True)
        # Limited, because the finalizers of a backlog could take longer than STUCK without a deadlock.
        for _ in range(15 if Garbage.alive < 100 else 0):
            Garbage()
        look()
        time.sleep(0.0005)


def main(mode: str, seconds: float) -> None:
    stop = time.monotonic() + seconds
    for target in (start_threads_until, start_threads_until, *[recurse_until] * 4):
        threading.Thread(target=target, args=(stop,), daemon=True).start()
    sample_until(stop, guarded if mode == "guarded" else sys._current_frames)
    sys.stdout.write("survived\n")
    sys.stdout.flush()
    os._exit(0)  # the daemon threads are not under test


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
