"""Executions that end with their worker, or with a request, over a fake scheduler."""

from __future__ import annotations

from typing import Any

import pytest
from tests.helpers.recorder_bench import T0, Bench, add_worker, remove_worker

from daskscope.collector.privacy import Scrubber
from daskscope.collector.scheduler.executions import task_columns


@pytest.mark.parametrize(
    ("suspicious", "state", "known", "statuses"),
    [
        (0, "processing", {}, [(0, "killed")]),
        (2, "processing", {}, [(0, "killed")]),
        (3, "processing", {}, []),
        # Newer versions have already decided by then.
        (3, "processing", {"lost-computed-tasks": set()}, [(0, "killed")]),
        (4, "erred", {"lost-computed-tasks": set()}, []),
    ],
)
def test_tasks_of_a_lost_worker_were_killed_unless_they_fail(
    suspicious: int, state: str, known: dict[str, Any], statuses: list[tuple[int, str]]
) -> None:
    bench = Bench()
    task = bench.task("load-1")
    task.suspicious, task.state = suspicious, state
    add_worker(bench)
    remove_worker(bench, ["load-1", "gone"], **known)
    assert bench.recorder.rotate().statuses == statuses


def test_a_lost_worker_was_executing_no_more_tasks_than_it_has_threads() -> None:
    bench = Bench()
    tasks = [bench.task(f"load-{i}") for i in range(5)]
    for priority, task in enumerate(tasks):
        task.priority = (priority,)
    # The heartbeat reported the last one for 3 s. A second thread had begun the one of highest priority since then.
    add_worker(bench, nthreads=2, executing={tasks[4]: 3.0})
    remove_worker(bench, [task.key for task in tasks])
    chunk = bench.recorder.rotate()
    columns = task_columns(chunk, Scrubber())
    assert sorted(columns["key"]) == ["load-0", "load-4"]
    durations = dict(zip(columns["key"], columns["start_us"].gaps, strict=True))
    assert durations == {"load-0": 1_000_000, "load-4": 4_000_000}


def finish(bench: Bench, key: str, *intervals: Any) -> None:
    """Let an execution succeed on w1."""
    bench.task(key)
    message = {"worker": "w1", "thread": 1, "nbytes": 1, "typename": "int", "startstops": intervals}
    bench.recorder.executions.transition(key, "processing", "memory", "task-finished-1", **message)


def computed(stop: float) -> dict[str, Any]:
    return {"action": "compute", "start": T0 + stop - 0.1, "stop": T0 + stop}


@pytest.mark.parametrize(
    ("stops", "durations_us"),
    [
        # Both threads executed something else since the heartbeat a second ago: the last two stops count.
        ((-1.4, -0.75, -0.5, -0.25), [500_000, 250_000]),
        # One thread did. The other may have been executing its task since the heartbeat.
        ((-1.4, -0.25), [1_000_000, 250_000]),
        ((-1.4,), [1_000_000, 1_000_000]),
    ],
    ids=["both", "one", "none"],
)
def test_a_killed_execution_began_when_its_thread_was_free(stops: tuple[float, ...], durations_us: list[int]) -> None:
    bench = Bench()
    add_worker(bench, nthreads=2)
    for number, stop in enumerate(stops):
        finish(bench, f"done-{number}", computed(stop))
    tasks = [bench.task(f"load-{i}") for i in range(2)]
    remove_worker(bench, [task.key for task in tasks])
    columns = task_columns(bench.recorder.rotate(), Scrubber())
    assert sorted(columns["start_us"].gaps[-2:], reverse=True) == durations_us


def test_a_killed_execution_did_not_begin_before_it_was_assigned() -> None:
    bench = Bench()
    add_worker(bench)
    bench.task("load-1")
    bench.recorder.executions.transition("load-1", "waiting", "processing", "s")
    bench.now_ns += 250_000_000
    remove_worker(bench, ["load-1"])
    assert task_columns(bench.recorder.rotate(), Scrubber())["start_us"].gaps == [250_000]


def test_a_task_of_higher_priority_that_came_later_was_not_executing() -> None:
    """Tasks of another graph may have a higher priority, but the thread was taken when the worker got this one."""
    bench = Bench()
    add_worker(bench)
    early, late = bench.task("load-1"), bench.task("sum-1")
    early.priority, late.priority = (1,), (0,)
    bench.recorder.executions.transition(early.key, "waiting", "processing", "s")
    bench.now_ns += 100_000_000
    finish(bench, "done-1", computed(0.1))
    bench.now_ns += 1_000_000
    bench.recorder.executions.transition(late.key, "waiting", "processing", "s")
    bench.now_ns += 300_000_000
    remove_worker(bench, [early.key, late.key])
    columns = task_columns(bench.recorder.rotate(), Scrubber())
    assert columns["key"][-1:] == ["load-1"]
    assert columns["start_us"].gaps[-1:] == [301_000]


@pytest.mark.parametrize(
    "interval", [{}, {"stop": "now"}, {"stop": None}, {"stop": float("inf")}, {"stop": float("nan")}], ids=str
)
def test_invalid_intervals_of_a_lost_worker_do_not_lose_its_killed_tasks(interval: dict[str, Any]) -> None:
    bench = Bench()
    add_worker(bench)
    finish(bench, "done-1", interval)
    task = bench.task("load-1")
    remove_worker(bench, [task.key])
    assert bench.recorder.rotate().statuses == [(1, "killed")]
    assert bench.errors == []


def test_a_cancelled_execution_lasts_from_its_start_to_the_request() -> None:
    bench = Bench()
    ran, waited = bench.task("load-1"), bench.task("load-2")
    add_worker(bench, executing={ran: 3.0})
    for task in (ran, waited):
        bench.recorder.other_transition(task.key, "processing", "released", "cancel-key-1", {})
    chunk = bench.recorder.rotate()
    assert chunk.statuses == [(0, "cancelled")]
    assert task_columns(chunk, Scrubber())["start_us"].gaps == [4_000_000]
