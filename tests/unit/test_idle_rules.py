"""The rules about tasks that wait at other workers: a restriction keeps them on one worker, or they stay for another reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.helpers.rule_rows import CLUSTER, WORKERS, S, T, by_rule, task

STEALING = {**CLUSTER, "config": json.dumps({"distributed.scheduler.work-stealing": True})}
NO_STEALING = {**CLUSTER, "config": json.dumps({"distributed.scheduler.work-stealing": False})}


def waiting(count: int = 20, worker: str = "a", **columns: Any) -> list[dict[str, Any]]:
    """Return tasks that were all assigned at once to the two threads of a worker, and run one after the other."""
    return [
        task(n // 2 * 5, n // 2 * 5 + 5, "fit", id=n, key=f"fit-{n}", thread=1 + n % 2, worker=worker, assigned_us=T, **columns)
        for n in range(count)
    ]  # fmt: skip


def rules(**tables: list[dict[str, Any]]) -> set[str]:
    return {"pinned-work", "unbalanced-work"} & by_rule(**{"clusters": [STEALING], "tasks": waiting(), **tables}).keys()


def test_tasks_without_inputs_that_wait_for_one_worker() -> None:
    finding = by_rule(clusters=[STEALING], tasks=waiting())["pinned-work"]
    assert finding.title == "Threads were idle for 22 % of their time while fit tasks waited for one worker"
    assert finding.evidence == "They have no inputs that keep them there, and ran on 1 of 2 workers only."
    assert rules() == {"pinned-work"}


@pytest.mark.parametrize("dependency", [100, -1])
def test_inputs_may_keep_tasks_where_they_are(dependency: int) -> None:
    edges = [{"task": n, "dependency": dependency, "seen_us": T} for n in range(20)]
    assert rules(edges=edges, tasks=[task(0, 1, "make", id=100), *waiting()]) == {"unbalanced-work"}


def test_groups_that_depend_on_others_may_have_inputs() -> None:
    groups = [{"group": "fit", "prefix": "fit", "computation": "c1", "dependencies": ["make"], "seen_us": T}]
    assert rules(groups=groups) == {"unbalanced-work"}


def test_without_stealing_tasks_stay_where_they_are() -> None:
    assert rules(clusters=[NO_STEALING]) == {"unbalanced-work"}
    assert rules(clusters=[CLUSTER]) == {"unbalanced-work"}


def test_a_worker_that_joined_late_could_not_have_them() -> None:
    workers = [
        {"worker": name, "server_id": name, "nthreads": 2, "start_us": T + round(at * S)} for name, at in (("a", 0), ("b", 40))
    ]  # fmt: skip
    assert "pinned-work" not in rules(workers=workers)


@pytest.mark.parametrize(
    ("cpu", "advice"),
    [
        ([99.0, 98.0, 3.0], "The scheduler did not send them in time."),
        ([12.0, 10.0, 90.0], "The scheduler was not busy (median 12 % of a core), so workers asked late for more."),
    ],
)
def test_tasks_wait_at_the_scheduler_because_it_or_a_worker_is_busy(cpu: list[float], advice: str) -> None:
    samples = [
        {"worker": name, "time_us": T + n * S, "cpu_percent": value if name == "scheduler" else 200.0}
        for n, value in enumerate(cpu)
        for name in ("scheduler", "a")
    ]
    tasks = [
        task(20 * n, 20 * n + 5, id=n, key=f"fit-{n}", queued_us=T + S, assigned_us=T + 20 * n * S) for n in range(1, 5)
    ]
    assert by_rule(tasks=tasks, samples=samples)["scheduler-queue"].advice.startswith(advice)


#: A first task that started at once, so that nothing had to be imported for the next ones.
BEFORE = task(1, 1.5, id=0, key="fit-0", thread=1, assigned_us=T + S)


@pytest.mark.parametrize(
    ("seconds", "advice"),
    [
        ("20.50", "Event loops of workers were blocked, the one of worker a for 20.5 s."),
        ("3.10", "Workers were busy deserializing inputs, or their event loops were blocked. Look at worker logs."),
    ],
)
def test_tasks_that_start_late_on_a_worker_whose_event_loop_was_blocked(seconds: str, advice: str) -> None:
    message = f"Event loop was unresponsive in Worker for {seconds}s.  This is often caused by long-running GIL-holding functions"
    log = {"worker": "a", "time_us": T + 25 * S, "message": message, "repeats": 1}
    tasks = [task(25, 60, id=n, key=f"fit-{n}", thread=n, assigned_us=T + S) for n in (1, 2)]
    assert by_rule(tasks=[BEFORE, *tasks], logs=[log])["slow-starts"].advice.startswith(advice)


@pytest.mark.parametrize("moved", [0, 1])
def test_workers_import_what_their_first_tasks_need(moved: int) -> None:
    """Two threads wait for 24 s each: in the first row before the first task of their worker, in the second after one."""
    tasks = [task(25, 60, id=n, key=f"fit-{n}", thread=n, assigned_us=T + S) for n in (1, 2)]
    fetch = {"source": "b", "destination": "a", "start_us": T + 2 * S, "stop_us": T + 24 * S, "nbytes": 1}
    transfers = [fetch] * moved
    first = by_rule(tasks=tasks)["slow-starts"].advice
    later = by_rule(tasks=[BEFORE, *tasks], transfers=transfers)["slow-starts"].advice
    assert first.startswith("48.0 s of it passed before the first recorded task of each worker. A worker imports what")
    # A worker that fetched something meanwhile did not only import.
    assert by_rule(tasks=tasks, transfers=[fetch])["slow-starts"].advice.startswith("Workers were busy fetching")
    assert later.endswith("Look at transfers and worker logs." if moved else "blocked. Look at worker logs.")


@pytest.mark.parametrize(
    ("waited", "host", "advice"),
    [
        (
            40.0,
            99.0,
            "The hosts were 99 % busy. 60 % of that was other programs than workers. Event loops wait for a core",
        ),
        (40.0, 80.0, "Workers were busy deserializing inputs, or their event loops were blocked. Look at worker logs."),
        # Tasks that sleep do not show whether an event loop waits for a core.
        (5.0, 99.0, "Workers were busy deserializing inputs, or their event loops were blocked. Look at worker logs."),
    ],
    ids=["full", "not full", "tasks do not wait"],
)
def test_tasks_that_start_late_on_full_hosts(waited: float, host: float, advice: str) -> None:
    workers = [{**worker, "host": "h"} for worker in WORKERS]
    readings = [
        {"worker": name, "time_us": T + 100 * S, "wall_us": 100 * S, "host_cores": 2, "cores": 2, "own_cpu_us": 0,
         "cpu_us": round(0.4 * host * S), "host_cpu_us": round(2 * host * S)}
        for name in ("a", "b")
    ]  # fmt: skip
    metrics = [
        {"context": "execute", "prefix": "fit", "activity": activity, "unit": "seconds", "value": value}
        for activity, value in (("thread-cpu", 10.0), ("thread-noncpu", 60.0))
    ]
    times = {"wall_us": 70 * S, "cpu_us": 10 * S, "runqueue_us": round(waited * S), "start_us": T, "count": 1}
    profile = {"kind": "compute", "prefix": "fit", "worker": "a", "stack": ["/home/me/work.py\tcall\t1"], **times}
    tasks = [task(25, 60, "fit", id=n, key=f"fit-{n}", thread=n, assigned_us=T + S) for n in (1, 2)]
    found = by_rule(tasks=[BEFORE, *tasks], workers=workers, processes=readings, activities=metrics, profiles=[profile])
    assert found["slow-starts"].advice.startswith(advice)
