"""The rules about tasks that wait at other workers: a restriction keeps them on one worker, or they stay for another reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.helpers.rule_rows import CLUSTER, S, T, by_rule, task

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
