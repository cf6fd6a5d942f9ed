"""Idle thread time by reason, on recordings with a known answer."""

from __future__ import annotations

from typing import Any

import pytest

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.time.breakdown import Breakdown, breakdown
from daskscope.analysis.time.idle import WorkerPeriod
from daskscope.testing import make_recording

T, S = 1_700_000_000_000_000, 1_000_000


def worker(name: str, start: float = 0, threads: int = 1) -> dict[str, Any]:
    return {
        "worker": name,
        "server_id": name,
        "nthreads": threads,
        "start_us": T + int(start * S),
        "end_us": T + 100 * S,
    }


def task(
    start: float, stop: float, name: str = "a", assigned: float | None = None, queued: float = 0
) -> dict[str, Any]:
    times = {
        "start_us": start,
        "stop_us": stop,
        "assigned_us": start if assigned is None else assigned,
        "queued_us": queued,
    }
    rest = {"key": f"k{start}", "prefix": "add", "worker": name, "thread": 1, "status": "ok"}
    return {**rest, **{column: T + int(value * S) if value else 0 for column, value in times.items()}}


def computation(start: float, stop: float) -> dict[str, Any]:
    return {"computation": "c", "start_us": T + int(start * S), "stop_us": T + int(stop * S), "state": "done"}


def explain(**tables: list[dict[str, Any]]) -> Breakdown:
    return breakdown(make_recording(tables), Bins.over(T, T + 100 * S))


def seconds(found: Breakdown) -> dict[str, int]:
    return {reason: round(us / S) for reason, us in found.idle.us.items() if us >= S / 2}


def test_nothing_was_submitted() -> None:
    found = explain(workers=[worker("a")], tasks=[task(20, 50)], computations=[computation(20, 50)])
    assert seconds(found) == {"nothing submitted": 70}
    assert (found.idle.work_us, found.idle.with_work_us) == (30 * S, 0)


def test_too_few_tasks_could_run() -> None:
    found = explain(workers=[worker("a", threads=4)], tasks=[task(0.1, 100)], computations=[computation(0.1, 100)])
    assert seconds(found) == {"too few tasks": 300}


def test_a_large_graph_was_built_sent_and_unpacked() -> None:
    graph = {**computation(30, 100), "graph_us": 4 * S, "graph_nbytes": 800_000_000}
    found = explain(workers=[worker("a")], tasks=[task(34, 100)], computations=[graph])
    assert seconds(found) == {"nothing submitted": 14, "large graph": 20}
    small = {**graph, "graph_nbytes": 9_000_000}
    found = explain(workers=[worker("a")], tasks=[task(34, 100)], computations=[small])
    assert seconds(found) == {"nothing submitted": 30, "large graph": 4}
    # Its client builds 50,000 tasks for 10 s.
    found = explain(workers=[worker("a")], tasks=[task(34, 100)], computations=[{**small, "tasks": 50_000}])
    assert seconds(found) == {"nothing submitted": 20, "large graph": 14}


@pytest.mark.parametrize("value", [-(2**63), -1, 2**62, 2**63 - 1])
@pytest.mark.parametrize("column", ["graph_nbytes", "tasks", "submissions", "graph_us"])
def test_invalid_sizes_of_graphs_explain_no_more_than_there_is(column: str, value: int) -> None:
    graph = {**computation(30, 100), "graph_us": 4 * S, "graph_nbytes": 20_000_000, "tasks": 2_000, column: value}
    found = explain(workers=[worker("a")], tasks=[task(34, 100)], computations=[graph])
    assert all(us >= 0 for us in found.idle.us.values())
    assert sum(found.idle.us.values()) == found.idle_us == 34 * S


def test_where_nothing_is_proven_the_reason_is_unknown() -> None:
    found = explain(workers=[worker("a", threads=2)], tasks=[task(0.1, 40)], computations=[computation(0.1, 100)])
    assert seconds(found) == {"too few tasks": 40, "unknown": 120}


def test_a_task_was_assigned_but_not_started() -> None:
    found = explain(workers=[worker("a")], tasks=[task(60, 100, assigned=20)], computations=[computation(20, 100)])
    assert seconds(found) == {"nothing submitted": 20, "not started": 40}


def test_a_task_was_queued_at_the_scheduler() -> None:
    found = explain(workers=[worker("a")], tasks=[task(60, 100, queued=20)], computations=[computation(20, 100)])
    assert seconds(found) == {"nothing submitted": 20, "queued": 40}


def test_tasks_waited_at_another_worker() -> None:
    tasks = [task(0.1, 50), task(50, 100, assigned=0.1)]
    found = explain(workers=[worker("a"), worker("b")], tasks=tasks, computations=[computation(0.1, 100)])
    assert seconds(found) == {"elsewhere": 50, "too few tasks": 50}


def test_a_worker_had_just_joined() -> None:
    tasks = [task(0.1, 60), task(60, 100, assigned=0.1), task(50, 100, "b")]
    found = explain(workers=[worker("a"), worker("b", start=40)], tasks=tasks, computations=[computation(0.1, 100)])
    assert seconds(found) == {"starting": 10}
    assert found.idle.periods == (WorkerPeriod("b", "starting", T + 40 * S, T + 50 * S),)


def test_a_paused_worker() -> None:
    samples = [
        {"worker": "a", "time_us": T + t * S, "status": "paused" if 20 <= t < 60 else "running"}
        for t in range(0, 101, 5)
    ]
    found = explain(
        workers=[worker("a")],
        tasks=[task(0.1, 20), task(60, 100)],
        computations=[computation(0.1, 100)],
        samples=samples,
    )
    assert seconds(found) == {"paused": 40}
    assert found.idle.periods == (WorkerPeriod("a", "paused", T + 20 * S, T + 60 * S),)


def test_a_worker_that_was_paused_between_two_samples() -> None:
    samples = [{"worker": "a", "time_us": T + t * S, "status": "running"} for t in (0, 50, 100)]
    events = [
        {"worker": "a", "kind": "worker-status-change", "time_us": T + t * S, "detail": f'{{"status": "{status}"}}'}
        for t, status in ((10, "paused"), (40, "running"))
    ]
    found = explain(
        workers=[worker("a")],
        tasks=[task(0.1, 10), task(40, 100)],
        computations=[computation(0.1, 100)],
        samples=samples,
        events=events,
    )
    assert seconds(found) == {"paused": 30}


def test_a_task_that_no_worker_can_run() -> None:
    samples = [{"worker": "scheduler", "time_us": T + t * S, "unrunnable": int(t >= 30)} for t in range(0, 101, 5)]
    found = explain(workers=[worker("a")], tasks=[task(10, 30)], computations=[computation(10, 100)], samples=samples)
    assert seconds(found) == {"nothing submitted": 10, "cannot run": 70}


def test_work_without_workers_is_wall_time() -> None:
    found = explain(workers=[worker("a", start=40)], tasks=[task(40, 100)], computations=[computation(10, 100)])
    assert found.idle.no_workers_us == pytest.approx(30 * S, abs=S)
    assert seconds(found) == {}


def test_spilling_is_disk_and_not_idle() -> None:
    row = {
        "context": "memory-monitor",
        "activity": "disk-write",
        "unit": "seconds",
        "value": 4.0,
        "time_us": T + 50 * S,
    }
    found = explain(
        workers=[worker("a")], tasks=[task(0.1, 40)], computations=[computation(0.1, 100)], activities=[row]
    )
    assert round(found.split["disk"] / S) == 4
    assert sum(found.split.values()) == found.thread_us
    assert sum(found.idle.us.values()) == found.idle_us


def test_any_recording_adds_up() -> None:
    found = explain(tasks=[task(1, 3), task(2, 4, "gone")])
    assert sum(found.idle.us.values()) == found.idle_us
