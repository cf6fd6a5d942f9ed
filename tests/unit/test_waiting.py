"""CPU share and waiting by reason, on recordings with a known answer."""

from __future__ import annotations

from typing import Any

import pytest

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.time.breakdown import Breakdown, breakdown
from daskscope.testing import make_recording

T, S = 1_700_000_000_000_000, 1_000_000
WORKER = {"worker": "a", "server_id": "a", "nthreads": 1, "start_us": T, "end_us": T + 10 * S}
TASK = {
    "key": "k", "prefix": "add", "worker": "a", "thread": 1, "status": "ok", "start_us": T, "stop_us": T + 10 * S,
}  # fmt: skip


def metrics(**seconds: float) -> list[dict[str, Any]]:
    return [
        {"context": "execute", "prefix": "add", "activity": name.replace("_", "-"), "unit": "seconds", "value": value}
        for name, value in seconds.items()
    ]


def sampled(
    *frames: str, wall: float = 10, cpu: float = 0, runqueue: float = 0, switches: int = 0, function: str = "call"
) -> dict[str, Any]:
    times = {"wall_us": int(wall * S), "cpu_us": int(cpu * S), "runqueue_us": int(runqueue * S), "switches": switches}
    stack = [f"{frame}\t{function}\t1" for frame in ("/home/me/work.py", *frames)]
    return {"kind": "compute", "prefix": "add", "worker": "a", "count": 1, "start_us": T, "stack": stack, **times}


def explain(**tables: list[dict[str, Any]]) -> Breakdown:
    return breakdown(make_recording({"workers": [WORKER], "tasks": [TASK], **tables}), Bins.over(T, T + 10 * S))


def waiting(found: Breakdown) -> dict[str, int]:
    return {reason: round(us / S) for reason, us in found.waiting_us.items() if us}


@pytest.mark.parametrize(
    ("seconds", "cpu"),
    [
        ({"thread_cpu": 8.0, "thread_noncpu": 2.0}, 8),
        # Meters of libraries take their time away from Dask's own.
        ({"thread_cpu": 1.0, "thread_noncpu": 1.0, "p2p_shard_cpu": 6.0, "p2p_shard_noncpu": 2.0}, 7),
        # The CPU share of a user's meter comes from the profile.
        ({"thread_cpu": 0.0, "thread_noncpu": 0.0, "my_activity": 10.0}, 9),
        # Activities outside of the task's function are no compute time.
        ({"thread_cpu": 5.0, "thread_noncpu": 5.0, "executor": 90.0, "disk_read": 50.0}, 5),
        ({}, 9),
    ],
    ids=["dask", "library", "user", "outside", "no metrics"],
)
def test_cpu_time(seconds: dict[str, float], cpu: int) -> None:
    found = explain(activities=metrics(**seconds), profiles=[sampled(cpu=9)])
    assert round(found.split["cpu"] / S) == cpu
    assert sum(found.waiting_us.values()) == found.split["noncpu"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (sampled(), "blocked"),
        (sampled(switches=1_500), "gil"),
        (sampled(runqueue=10, switches=1_500), "core"),
        (sampled("/usr/lib/python3/threading.py"), "lock"),
        (sampled("/usr/lib/python3/threading.py", function="join"), "native"),
        (sampled("/usr/lib/python3/concurrent/futures/_base.py", "/usr/lib/python3/threading.py"), "native"),
        (sampled("/usr/lib/python3/http/client.py", "/usr/lib/python3/socket.py"), "network"),
        (sampled("/site-packages/fsspec/asyn.py", "/usr/lib/python3/threading.py"), "network"),
        (sampled("/site-packages/pyarrow/parquet/core.py"), "file"),
        (sampled("/usr/lib/python3/subprocess.py", "/usr/lib/python3/threading.py"), "subprocess"),
        (sampled("/usr/lib/python3/subprocess.py"), "subprocess"),
        (sampled("/usr/lib/python3/threading.py", "<other thread>"), "blocked"),
        (sampled("/usr/lib/python3/threading.py", "<other thread>", "/usr/lib/python3/socket.py"), "network"),
        (sampled("/usr/lib/python3/socket.py", "<other thread>", *["/home/me/work.py"] * 20), "blocked"),
    ],
)
def test_reasons(row: dict[str, Any], reason: str) -> None:
    both = [{**WORKER, "nthreads": 2}]
    found = explain(workers=both, activities=metrics(thread_cpu=1.0, thread_noncpu=9.0), profiles=[row])
    assert waiting(found) == {reason: 9}


@pytest.mark.parametrize(
    ("pids", "reason"),
    [((7, 8), "blocked"), ((0, 0), "blocked"), ((7, 7), "gil")],
    ids=["a process each", "unknown processes", "two workers in one process"],
)
def test_the_only_thread_of_a_process_does_not_wait_for_the_gil(pids: tuple[int, int], reason: str) -> None:
    """Its task slept and was woken often: there is no other task that could hold the lock."""
    workers = [{**WORKER, "worker": name, "host": "h", "pid": pid} for name, pid in zip("ab", pids, strict=True)]
    row = sampled(switches=1_500)
    found = explain(workers=workers, activities=metrics(thread_cpu=1.0, thread_noncpu=9.0), profiles=[row])
    assert waiting(found) == {reason: 9}


def test_threads_of_an_idle_process_do_not_wait_for_the_gil() -> None:
    """Its tasks slept and were woken often, but all of its threads together used a core for 0.3 s: nobody held the lock longer."""
    both = [{**WORKER, "nthreads": 2}]
    found = explain(
        workers=both,
        activities=metrics(thread_cpu=1.0, thread_noncpu=9.0),
        profiles=[sampled(switches=1_500)],
        processes=[process(cpu=0.3, own_cpu=0.1)],
    )
    assert found.waiting_us["gil"] <= 500_000
    assert found.waiting_us["blocked"] >= 8_500_000


@pytest.mark.parametrize("library_s", [0.0, 5.0, 20.0])
def test_a_thread_of_a_pool_that_computes(library_s: float) -> None:
    """Its CPU time is counted once, whatever the process used."""
    row = sampled("/usr/lib/python3/concurrent/futures/_base.py")
    stack = [*row["stack"], "<other thread>\tcomputing\t0", "/site-packages/zarr/codec.py\tdecode\t1"]
    found = explain(
        activities=metrics(thread_cpu=1.0, thread_noncpu=9.0),
        profiles=[{**row, "stack": stack}],
        processes=[process(cpu=1 + library_s, own_cpu=0.1)],
    )
    assert waiting(found) == {"native": 9}


def test_library_threads_computed_while_the_task_waited() -> None:
    process = {"worker": "a", "time_us": T + 10 * S, "wall_us": 10 * S, "cpu_us": 20 * S, "host_cores": 4}
    found = explain(
        activities=metrics(thread_cpu=1.0, thread_noncpu=9.0), profiles=[sampled(cpu=1)], processes=[process]
    )
    assert waiting(found) == {"native": 9}


def process(worker: str = "a", **seconds: float) -> dict[str, Any]:
    times = {f"{name}_us": int(value * S) for name, value in {"wall": 10, **seconds}.items()}
    return {"worker": worker, "time_us": T + 10 * S, "host_cores": 4, **times}


def test_helper_threads_computed_while_the_task_waited_at_a_lock() -> None:
    found = explain(
        activities=metrics(thread_cpu=1.0, thread_noncpu=9.0),
        profiles=[sampled("/usr/lib/python3/threading.py", cpu=1)],
        processes=[process(cpu=8.4, own_cpu=0.2)],
    )
    assert waiting(found) == {"lock": 2, "native": 7}


def test_cpu_of_the_event_loop_is_not_of_helper_threads() -> None:
    found = explain(
        activities=metrics(thread_cpu=1.0, thread_noncpu=9.0),
        profiles=[sampled("/usr/lib/python3/threading.py", cpu=1)],
        processes=[process(cpu=8, own_cpu=7)],
    )
    assert waiting(found) == {"lock": 9}


def test_cpu_of_another_worker_does_not_explain_waiting() -> None:
    found = explain(
        activities=metrics(thread_cpu=1.0, thread_noncpu=9.0),
        profiles=[sampled(cpu=1)],
        workers=[{**WORKER, "pid": 1}, {**WORKER, "worker": "b", "server_id": "b", "pid": 2}],
        processes=[process(cpu=1, own_cpu=0.1), process("b", cpu=30, own_cpu=0.1)],
    )
    assert waiting(found) == {"blocked": 9}


def test_workers_in_one_process_read_the_same_cpu_time() -> None:
    other = {**TASK, "key": "l", "worker": "b"}
    found = explain(
        tasks=[TASK, other],
        activities=metrics(thread_cpu=10.0, thread_noncpu=10.0),
        profiles=[sampled(cpu=5)],
        workers=[{**WORKER, "pid": 1}, {**WORKER, "worker": "b", "server_id": "b", "pid": 1}],
        processes=[process(cpu=10, own_cpu=0.1), process("b", cpu=10, own_cpu=0.1)],
    )
    assert waiting(found) == {"blocked": 10}


def test_cpu_of_an_actor_is_not_of_helper_threads() -> None:
    call = {
        "worker": "a", "prefix": "Actor", "method": "go", "thread": 2, "status": "ok", "cpu_us": 8 * S,
        "start_us": T, "stop_us": T + 8 * S,
    }  # fmt: skip
    found = explain(
        activities=metrics(thread_cpu=1.0, thread_noncpu=9.0),
        profiles=[sampled(cpu=1)],
        actor_calls=[call],
        processes=[process(cpu=9, own_cpu=0.1)],
    )
    assert waiting(found) == {"blocked": 9}
    assert found.split["cpu"] == 1 * S
    assert found.actors_beside_us == 8 * S


def test_waiting_without_samples_is_unknown() -> None:
    assert waiting(explain(activities=metrics(thread_cpu=1.0, thread_noncpu=9.0))) == {"unknown": 9}


@pytest.mark.parametrize(("has_seceded", "reasons"), [(True, {"blocked": 5}), (False, {"blocked": 3, "lock": 7})])
def test_waits_of_seceded_tasks_are_no_waits_of_threads(
    has_seceded: bool,
    reasons: dict[str, int],
) -> None:
    """The task slept for 5 s, seceded, and waited for other tasks for as long."""
    waits = sampled("/site-packages/distributed/client.py", "/usr/lib/python3/threading.py", function="gather", wall=6)
    events = [{"kind": "seceded", "detail": "k", "time_us": T + 5 * S}]
    found = explain(
        events=events if has_seceded else [],
        activities=metrics(thread_cpu=0.0, thread_noncpu=10.0),
        profiles=[sampled(wall=3), waits],
    )
    assert waiting(found) == reasons
