"""What differs on another number of workers: cores that tasks compete for, threads of libraries, and warm-up."""

from __future__ import annotations

from typing import Any

from tests.helpers.eight_tasks import MS, S, T, row, worker

from daskscope.analysis.what_if.predict import WhatIf, what_if
from daskscope.model.recording import Recording
from daskscope.testing import make_recording

POOL = ["work.py\tload\t3", "/python/lib/concurrent/futures/thread.py\tresult\t9"]


def ranges(found: WhatIf) -> dict[int, tuple[float, float]]:
    return {one.workers: (round(one.wall_us / S, 1), round(one.max_wall_us / S, 1)) for one in found.predictions}


def recorded(tasks_ms: list[list[tuple[int, int]]], *, cores: int, cpu_s: float = 0.0, **sample: Any) -> Recording:
    """Return a recording of one machine: the times of tasks by worker, the CPU time of each worker's process, and a sample."""
    addresses = [f"tcp://127.0.0.1:{number}" for number in range(len(tasks_ms))]
    rows, number = [], 0
    for address, times in zip(addresses, tasks_ms, strict=True):
        for start, stop in times:
            rows.append(row(number, start, stop, worker=address))
            number += 1
    wall_us = max(one["stop_us"] for one in rows) - T
    base = {"start_us": T, "stop_us": T + S, "kind": "compute", "source": "daskscope", "count": 100, "wall_us": S}
    return make_recording(
        {
            "tasks": sorted(rows, key=lambda one: int(one["stop_us"])),
            "workers": [worker(worker=one, server_id=one, host="127.0.0.1", pid=n + 1) for n, one in enumerate(addresses)],
            "computations": [{"computation": "c", "start_us": T, "state": "done", "tasks": number}],
            "processes": [
                {"time_us": T + wall_us, "worker": one, "cores": cores, "host_cores": cores, "wall_us": wall_us,
                 "cpu_us": int(cpu_s * S), "host_cpu_us": int(cpu_s * S) * len(addresses)}
                for one in addresses
            ],
            "profiles": [{**base, "worker": one, "prefix": "load", "stack": ["work.py\tload\t3"], **sample} for one in addresses],
        }
    )  # fmt: skip


def equal(count: int, ms: int) -> list[tuple[int, int]]:
    return [(ms * n, ms * (n + 1)) for n in range(count)]


def test_waits_for_full_cores_end_with_the_workers_that_filled_them() -> None:
    """Two workers shared a core: a task had half of it. One worker alone needs as long for all tasks as both did."""
    run = recorded([equal(4, 1000), equal(4, 1000)], cores=1, cpu_s=2.0, cpu_us=S // 2, runqueue_us=S // 2)

    assert ranges(what_if(run, workers=[1, 2])) == {1: (4.0, 4.0), 2: (4.0, 4.0)}


def test_waits_for_a_core_that_nobody_used_stay() -> None:
    run = recorded([equal(4, 1000), equal(4, 1000)], cores=8, cpu_s=2.0, cpu_us=S // 2, runqueue_us=S // 2)

    assert ranges(what_if(run, workers=[1])) == {1: (8.0, 8.0)}


def test_threads_of_a_library_use_the_cores_that_other_workers_need() -> None:
    """While a task waits for its pool, the pool uses 1.7 cores of two: a second worker would be of little use."""
    run = recorded([equal(8, 1000)], cores=2, cpu_s=15.6, stack=POOL)

    assert ranges(what_if(run, workers=[1])) == {1: (8.0, 8.0)}
    ((low, high),) = ranges(what_if(run, workers=[2])).values()
    assert 6.4 <= low <= high <= 8.0


def test_with_fewer_workers_threads_of_a_library_may_have_more_cores() -> None:
    """Two pools filled two cores. One may use both, or only one."""
    run = recorded([equal(4, 1000), equal(4, 1000)], cores=2, cpu_s=4.8, stack=POOL)

    assert ranges(what_if(run, workers=[1])) == {1: (4.0, 8.0)}
    assert "Threads of libraries, such as BLAS" in what_if(run, workers=[1]).assumptions[-1]


def test_every_worker_warms_up_once() -> None:
    """The first task of each worker takes 2 s, the others 100 ms."""
    times = [(0, 2000), *((2000 + 100 * n, 2100 + 100 * n) for n in range(10))]
    run = recorded([times, times], cores=8, cpu_us=S)

    assert ranges(what_if(run, workers=[1, 2, 4])) == {1: (4.1, 4.1), 2: (3.0, 3.0), 4: (2.5, 2.5)}


def test_the_error_of_the_check_is_part_of_a_prediction() -> None:
    """A pause that nothing explains: the replay is shorter than the run by 9 %."""
    times = [(1000 * n + (800 if n > 3 else 0), 1000 * n + 1000 + (800 if n > 3 else 0)) for n in range(8)]
    found = what_if(recorded([times], cores=8, cpu_us=S), workers=[1])

    assert ranges(found) == {1: (8.0, 8.8)}
    assert (
        found.assumptions[-1]
        == "The replay of the recorded run was shorter than the run by 9.1 %. So may predictions be."
    )
    assert found.wall_us == 8800 * MS
