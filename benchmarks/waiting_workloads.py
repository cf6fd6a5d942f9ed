"""Workloads of ``scripts/bench accuracy`` whose tasks compute and wait, each with its own record of what happened."""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from distributed import Lock

from benchmarks.accuracy import Lab, Said, timer, workload


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


def check_compute(lab: Lab, said: Said, cpu_within: float = 0.03) -> None:
    """Compare compute time and CPU time with the timers of the tasks."""
    wall, cpu = lab.wall(), lab.cpu()
    lab.number("compute time", wall, said.seconds("cpu", "noncpu", "failed"), 0.03 * wall + 0.1)
    lab.number("CPU time", cpu, said.seconds("cpu"), cpu_within * wall + 0.1)


@workload(threads_per_worker=1)
def sleeping_tasks(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(rest, [0.4] * 12, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        lab.number("waiting, asleep or in native code", lab.wall(), said.waiting("blocked"), 0.05 * lab.wall())
        lab.text("first finding", "waiting", said.first)
        lab.text("outcome", "finished", said.outcome.status)

    return compare


@workload(threads_per_worker=1, n_workers=1)
def computing_tasks(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(burn, [0.4] * 8, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        lab.number("waiting except for a core", 0, said.seconds("noncpu") - said.waiting("core"), 0.05 * lab.wall())

    return compare


@workload(n_workers=1, threads_per_worker=4)
def pure_python_in_threads(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(spin, [1.0] * 12, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        waited = lab.wall() - lab.cpu()
        # A thread that is woken to try for the GIL queues for a core first: nothing outside can tell one from the other.
        lab.number("waiting for the GIL or a core", waited, said.waiting("gil", "core"), 0.05 * waited)
        lab.text("first finding", "waiting", said.first)
        lab.text("its reason", "gil", max(said.facts.split.waiting_us, key=said.facts.split.waiting_us.__getitem__))

    return compare


@workload(n_workers=1, threads_per_worker=2)
def more_processes_than_cores(lab: Lab) -> Callable[[Said], None]:
    code = "import time\nstop = time.time() + 12\nwhile time.time() < stop: pass"
    others = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        lab.client.gather(lab.client.map(burn, [0.4] * 8, pure=False))
    finally:
        for other in others:
            other.kill()
            other.wait()

    def compare(said: Said) -> None:
        check_compute(lab, said)
        # By the kernel. The rest of the waiting is for the GIL, held by a thread that has no core.
        lab.number("waiting for a core", lab.queued(), said.waiting("core"), 0.1 * lab.wall())
        lab.number("waiting, all of it", lab.wall() - lab.cpu(), said.seconds("noncpu"), 0.05 * lab.wall())

    return compare


def hold(seconds: float) -> None:
    with timer("task"), _LOCK:
        time.sleep(seconds)


_LOCK = threading.Lock()


@workload(n_workers=1, threads_per_worker=4)
def threads_that_share_a_lock(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(hold, [0.25] * 16, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        lab.number("waiting, all of it", lab.wall() - lab.cpu(), said.seconds("noncpu"), 0.1 * lab.wall())

    return compare


def hold_distributed(seconds: float) -> None:
    with timer("task"), Lock("accuracy"):
        time.sleep(seconds)


@workload()
def a_distributed_lock(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(hold_distributed, [0.25] * 16, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        locked = lab.wall() - 16 * 0.25
        lab.number("waiting for locks", locked, said.waiting("lock"), 0.1 * locked)

    return compare


def take(seconds: float) -> None:
    box: queue.Queue[int] = queue.Queue()
    with timer("task"):
        threading.Timer(seconds, box.put, (1,)).start()
        box.get()


@workload(threads_per_worker=1)
def tasks_that_wait_for_a_queue(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(take, [0.4] * 10, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        lab.number("waiting for locks or queues", lab.wall(), said.waiting("lock"), 0.1 * lab.wall())

    return compare


def burn_in_a_pool(seconds: float) -> None:
    with timer("task"), ThreadPoolExecutor(1) as pool:
        pool.submit(burn, seconds, "helper").result()


@workload(threads_per_worker=1, n_workers=1)
def tasks_that_compute_in_a_pool(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(burn_in_a_pool, [0.4] * 8, pure=False))

    def compare(said: Said) -> None:
        wall = lab.wall("task")
        lab.number("compute time", wall, said.seconds("cpu", "noncpu"), 0.03 * wall + 0.1)
        lab.number("waiting for threads they started", lab.cpu("helper"), said.waiting("native"), 0.1 * wall)

    return compare


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


@workload(threads_per_worker=1)
def tasks_that_wait_for_a_server(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(receive, [0.4] * 10, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        lab.number("waiting for the network", lab.wall(), said.waiting("network"), 0.1 * lab.wall())

    return compare


def command(seconds: float) -> None:
    with timer("task"):
        subprocess.run(["sleep", str(seconds)], check=True)


@workload(threads_per_worker=1)
def tasks_that_run_a_program(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(command, [0.4] * 10, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        lab.number("waiting for subprocesses", lab.wall(), said.waiting("subprocess"), 0.2 * lab.wall())

    return compare
