"""Functions that the workloads of ``insights`` run on workers. Imports little: every worker process imports it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

#: What each worker process has kept so far, and how many times slower it is than others.
_kept: list[bytearray] = []
_slowness: list[float] = []


def pause(seconds: float, *_: Any) -> float:
    """Wait, as a task that computes does, without using a core."""
    time.sleep(seconds)
    return seconds


def nothing(number: int) -> int:
    return number


def many_nothings(numbers: list[int]) -> int:
    return sum(nothing(number) for number in numbers)


def load_then_pause(seconds: float, _: int) -> float:
    """Take longer the first time in a process, because of an import."""
    from benchmarks import slow_import

    return pause(seconds, slow_import)


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
    """Compute in C, without giving up the interpreter lock for more than some milliseconds."""
    return sum(sum(range(steps // 20)) for _ in range(20))


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


def fail_once(seconds: float, directory: str, number: int) -> int:
    """Fail at the first attempt, as a read from unreliable storage does."""
    time.sleep(seconds)
    if not (path := Path(directory) / str(number)).exists():
        path.touch()
        raise OSError("the storage did not answer")
    return number


class Spilled:
    """A result that counts as large, and takes long to write and to read again."""

    def __init__(self, nbytes: int, seconds: float) -> None:
        self.nbytes, self.seconds = nbytes, seconds

    def __sizeof__(self) -> int:
        return self.nbytes

    def __reduce__(self) -> tuple[Any, ...]:
        time.sleep(self.seconds / 4)
        return read_again, (self.nbytes, self.seconds)


def read_again(nbytes: int, seconds: float) -> Spilled:
    time.sleep(seconds)
    return Spilled(nbytes, seconds)


def make_spilled(nbytes: int, seconds: float, _: int) -> Spilled:
    return Spilled(nbytes, seconds)


def look_at(seconds: float, result: Spilled) -> int:
    time.sleep(seconds)
    return result.nbytes


def digest(megabytes: int, _: int) -> str:
    """Compute in C, and give up the interpreter lock meanwhile."""
    import hashlib

    block, found = bytes(1_000_000), hashlib.sha256()
    for _ in range(megabytes):
        found.update(block)
    return found.hexdigest()


def digest_in_threads(megabytes: int, number: int) -> str:
    """Let another thread compute, as BLAS does."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(digest, megabytes, number).result()


def read_slow_file(seconds: float, directory: str, number: int) -> bytes:
    """Read a file that opens late: a pipe whose writer comes after some time."""
    import threading

    path = Path(directory) / f"pipe-{number}"
    os.mkfifo(path)
    writer = threading.Timer(seconds, path.write_bytes, (b"data",))
    writer.start()
    try:
        return path.read_bytes()
    finally:
        writer.join()


def run_program(seconds: float, _: int) -> int:
    import subprocess

    return subprocess.run(["sleep", str(seconds)], check=True).returncode


def fill_memory(nbytes: int, seconds: float) -> None:
    """Use memory for some time that Dask knows nothing of."""
    import threading

    block = bytearray(nbytes)
    block[::4096] = b"x" * len(block[::4096])
    _kept.append(block)
    threading.Timer(seconds, _kept.clear).start()


def make_part(nbytes: int, *_: Any) -> bytes:
    return bytes(nbytes)


def process_part(us_per_kb: float, part: bytes) -> int:
    """Take as long as the input is large."""
    time.sleep(us_per_kb * len(part) / 1e9)
    return len(part)


def read_part(fixed_s: float, us_per_kb: float, nbytes: int) -> bytes:
    """Take some time for each part, and some for each byte."""
    time.sleep(fixed_s + us_per_kb * nbytes / 1e9)
    return bytes(nbytes)


def slow_down(times: float) -> None:
    _slowness[:] = [times]


def pause_by_worker(seconds: float, _: int) -> None:
    """Take longer on a worker that is slower than the others."""
    time.sleep(seconds * (_slowness[0] if _slowness else 1.0))


def delay_sending(seconds: float, to: str, dask_worker: Any) -> None:
    """Make a worker send late to one other, as over a bad link."""
    import asyncio

    send = dask_worker.handlers["get_data"]

    async def send_late(comm: Any, keys: Any, who: str | None = None, serializers: Any = None) -> Any:
        if who == to:
            await asyncio.sleep(seconds)
        return await send(comm, keys, who, serializers)

    dask_worker.handlers["get_data"] = send_late


def close_worker(dask_worker: Any) -> None:
    """Close a worker without moving its results, as a batch system that ends a job does."""
    dask_worker.loop.call_later(0.1, lambda: dask_worker.close(reason="the job was ended", nanny=False))
