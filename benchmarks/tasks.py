"""Functions that the workers of ``scripts/bench accuracy`` run.

They are apart from the workloads, because a worker that imports those imports all of daskscope: 206 MB instead of 67, and
"spilling" gives its worker 350.
"""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from distributed import Lock, get_worker, secede, worker_client
from distributed.metrics import context_meter

from benchmarks.task_log import note, timer


def spin(seconds: float, what: str = "task") -> float:
    """Use the CPU of one thread, in pure Python, for a time by the clock."""
    with timer(what):
        stop = time.perf_counter() + seconds
        while time.perf_counter() < stop:
            sum(range(200))
    return seconds


def burn(seconds: float, what: str = "task") -> float:
    """Use a given CPU time, without the GIL."""
    matrix = np.ones(200_000)
    with timer(what):
        stop = time.thread_time() + seconds
        while time.thread_time() < stop:
            np.sqrt(matrix)
    return seconds


def rest(seconds: float, what: str = "task") -> float:
    with timer(what):
        time.sleep(seconds)
    return seconds


def add(*numbers: Any) -> int:
    return len(numbers)


_LOCK = threading.Lock()


def hold(seconds: float) -> None:
    with timer("task"), _LOCK:
        time.sleep(seconds)


def hold_distributed(seconds: float) -> None:
    with timer("task"), Lock("accuracy"):
        time.sleep(seconds)


def take(seconds: float) -> None:
    box: queue.Queue[int] = queue.Queue()
    with timer("task"):
        threading.Timer(seconds, box.put, (1,)).start()
        box.get()


def burn_in_a_pool(seconds: float) -> None:
    with timer("task"), ThreadPoolExecutor(1) as pool:
        pool.submit(burn, seconds, "helper").result()


def receive(seconds: float) -> bytes:
    """Read from a server that replies late, through ``http.client``, as most libraries do."""
    import http.client

    listener = socket.create_server(("127.0.0.1", 0))

    def reply() -> None:
        peer, _ = listener.accept()
        peer.recv(1000)
        time.sleep(seconds)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        peer.close()

    threading.Thread(target=reply, daemon=True).start()
    with timer("task"):
        connection = http.client.HTTPConnection("127.0.0.1", listener.getsockname()[1])
        connection.request("GET", "/")
        return connection.getresponse().read()


def command(seconds: float) -> None:
    with timer("task"):
        subprocess.run(["sleep", str(seconds)], check=True)


class Counter:
    def work(self, seconds: float) -> float:
        return burn(seconds, "actor")


def outer(seconds: float) -> None:
    with timer("outer"), worker_client() as client:
        client.gather(client.map(rest, [seconds] * 4, pure=False))


def metered(seconds: float) -> None:
    with context_meter.meter("my-activity"):
        burn(seconds)


def fail_once(seconds: float) -> float:
    rest(seconds)
    worker: Any = get_worker()
    if not getattr(worker, "has_failed", False):
        worker.has_failed = True
        raise OSError("the service is away")
    return seconds


def broken(seconds: float) -> float:
    rest(seconds)
    raise ValueError("no such column")


def io_counters_of_worker() -> Any:
    return psutil.Process().io_counters()


def make(size: int) -> np.ndarray:
    return np.ones(size)


def total(array: np.ndarray) -> float:
    return float(array.sum())


def first_slow(seconds: float) -> None:
    worker: Any = get_worker()
    if not getattr(worker, "is_warm", False):
        worker.is_warm = True
        seconds += 2
    rest(seconds)


def leave(seconds: float) -> None:
    with timer("outer"):
        secede()
        time.sleep(seconds)


def link(*_: Any, seconds: float) -> float:
    return rest(seconds, "chain")


HOARD: list[bytearray] = []


def hoard(nbytes: int) -> None:
    HOARD.append(bytearray(os.urandom(1)) * nbytes)


def release() -> None:
    HOARD.clear()


def log_status(dask_worker: Any) -> None:
    """Write each stretch of time in which this worker is paused to the log, from a thread."""

    def watch() -> None:
        while True:
            if dask_worker.status.name == "paused":
                with timer("paused"):
                    while dask_worker.status.name == "paused":
                        time.sleep(0.01)
            time.sleep(0.01)

    threading.Thread(target=watch, daemon=True).start()


def read_late(seconds: float) -> bytes:
    """Read a file whose content comes late, as from slow storage."""
    path = Path(tempfile.mkdtemp()) / "pipe"
    os.mkfifo(path)
    threading.Timer(seconds, path.write_bytes, (b"x",)).start()
    with timer("task"):
        return path.read_bytes()


def count_received() -> None:
    """Write the size of what each P2P shuffle receives to the log."""
    from distributed.shuffle import _shuffle

    run: Any = _shuffle.DataFrameShuffleRun
    receive = run._receive

    async def counted(self: Any, data: Any) -> None:
        note("received", sum(len(piece) for _, piece in data))
        await receive(self, data)

    run._receive = counted


def hold_memory(nbytes: int) -> Any:
    data = np.ones(nbytes // 8)
    time.sleep(3)
    return data
