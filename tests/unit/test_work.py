"""Whether a cluster has work."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from daskscope.collector.scheduler.workload import Work


def scheduler(**values: Any) -> Any:
    worker = SimpleNamespace(processing={})
    return SimpleNamespace(**{"queued": set(), "unrunnable": set(), "workers": {"w": worker}, **values})


@pytest.mark.parametrize(
    ("values", "is_under_way"),
    [
        ({}, False),
        ({"queued": {1}}, True),
        ({"unrunnable": {1}}, True),
        ({"workers": {"w": SimpleNamespace(processing={"task": 1})}}, True),
        ({"workers": {}}, False),
    ],
)
def test_tasks_that_run_or_wait_are_work(values: dict[str, Any], is_under_way: bool) -> None:
    assert Work(scheduler(**values), lambda: 0).is_under_way() is is_under_way


def test_an_execution_that_ended_between_two_looks_is_work() -> None:
    totals = iter([3, 3, 4, 4])
    work = Work(scheduler(), lambda: next(totals))
    assert [work.is_under_way() for _ in range(3)] == [False, True, False]
