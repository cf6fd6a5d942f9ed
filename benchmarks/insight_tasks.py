"""Functions that the workloads of ``insights`` run on workers. Imports little: every worker process imports it."""

from __future__ import annotations

import os
import time
from typing import Any

#: What each worker process has loaded or kept so far.
_loaded: set[str] = set()
_kept: list[bytearray] = []


def pause(seconds: float, *_: Any) -> float:
    """Wait, as a task that computes does, without using a core."""
    time.sleep(seconds)
    return seconds


def nothing(number: int) -> int:
    return number


def many_nothings(numbers: list[int]) -> int:
    return sum(nothing(number) for number in numbers)


def load_then_pause(seconds: float, load_s: float, _: int) -> float:
    """Take longer the first time in a process, as an import does."""
    if "model" not in _loaded:
        _loaded.add("model")
        time.sleep(load_s)
    return pause(seconds)


def load_model() -> None:
    _loaded.add("model")


def count_in_python(steps: int, _: int) -> int:
    total = 0
    for number in range(steps):
        total += number & 3
    return total


def count_in_numpy(steps: int, _: int) -> int:
    import numpy as np

    return int((np.arange(steps) & 3).sum())


def with_lock(seconds: float, _: int) -> None:
    from distributed import Lock

    with Lock("shared"):
        time.sleep(seconds)


def count_with_lock_held(steps: int, _: int) -> int:
    """Compute in C, without giving up the interpreter lock."""
    return sum(range(steps))


def ask_server(port: int, _: int) -> bytes:
    """Ask a slow server."""
    from http.client import HTTPConnection

    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/")
    return connection.getresponse().read()


def unpack(seconds: float) -> bytes:
    time.sleep(seconds)
    return b"unpacked"


class Unpacked:
    """An object in a graph that takes long to unpickle, as large ones do."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __reduce__(self) -> tuple[Any, ...]:
        return unpack, (self.seconds,)


def always_fail(_: int) -> None:
    raise ValueError("the input is wrong")


def end_worker(number: int) -> None:
    os._exit(1 if number == 0 else 0)


def make_block(nbytes: int, _: int) -> bytes:
    return os.urandom(1) * nbytes


def size_of(block: bytes, seconds: float = 0.02) -> int:
    time.sleep(seconds)
    return len(block)


def keep_more(nbytes: int, seconds: float, _: int) -> None:
    """Keep memory that Dask knows nothing of."""
    block = bytearray(nbytes)
    block[::4096] = b"x" * len(block[::4096])
    _kept.append(block)
    time.sleep(seconds)
