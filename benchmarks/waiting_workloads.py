"""Workloads of ``scripts/bench accuracy`` whose tasks compute and wait, each with its own record of what happened."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from benchmarks.accuracy import Lab, Said, workload
from benchmarks.tasks import (
    burn,
    burn_in_a_pool,
    command,
    hold,
    hold_distributed,
    receive,
    rest,
    spin,
    take,
)


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
        lab.text("outcome", "finished", said.outcome.state)

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


@workload(n_workers=1, threads_per_worker=4)
def threads_that_share_a_lock(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(hold, [0.25] * 16, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        lab.number("waiting, all of it", lab.wall() - lab.cpu(), said.seconds("noncpu"), 0.1 * lab.wall())

    return compare


@workload()
def a_distributed_lock(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(hold_distributed, [0.25] * 16, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        locked = lab.wall() - 16 * 0.25
        lab.number("waiting for locks", locked, said.waiting("lock"), 0.1 * locked)

    return compare


@workload(threads_per_worker=1)
def tasks_that_wait_for_a_queue(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(take, [0.4] * 10, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        lab.number("waiting for locks or queues", lab.wall(), said.waiting("lock"), 0.1 * lab.wall())

    return compare


@workload(threads_per_worker=1, n_workers=1)
def tasks_that_compute_in_a_pool(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(burn_in_a_pool, [0.4] * 8, pure=False))

    def compare(said: Said) -> None:
        wall = lab.wall("task")
        lab.number("compute time", wall, said.seconds("cpu", "noncpu"), 0.03 * wall + 0.1)
        lab.number("waiting for threads they started", lab.cpu("helper"), said.waiting("native"), 0.1 * wall)

    return compare


@workload(threads_per_worker=1)
def tasks_that_wait_for_a_server(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(receive, [0.4] * 10, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        lab.number("waiting for the network", lab.wall(), said.waiting("network"), 0.1 * lab.wall())

    return compare


@workload(threads_per_worker=1)
def tasks_that_run_a_program(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(command, [0.4] * 10, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        lab.number("waiting for subprocesses", lab.wall(), said.waiting("subprocess"), 0.2 * lab.wall())

    return compare
