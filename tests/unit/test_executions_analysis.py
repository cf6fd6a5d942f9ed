"""Executions that seceded, were cancelled or recomputed, on recordings with a known answer."""

from __future__ import annotations

from typing import Any

from daskscope.analysis.executions import cancelled_until_us, recomputed_rows, seceded_at_us
from daskscope.testing import make_recording

T, S = 1_700_000_000_000_000, 1_000_000


def task(key: str, start: float, stop: float, status: str = "ok", **columns: Any) -> dict[str, Any]:
    times = {"start_us": T + int(start * S), "stop_us": T + int(stop * S)}
    return {"key": key, "prefix": "add", "worker": "a", "status": status, **times, **columns}


def test_an_execution_seceded_while_it_ran() -> None:
    events = [{"kind": "seceded", "detail": "k", "time_us": T + t * S} for t in (50, 12, 3)]
    tasks = [task("k", 10, 20), task("k", 4, 5), task("other", 10, 20), task("k", 60, 70)]
    found = seceded_at_us(make_recording({"tasks": tasks, "events": events}))
    # The event at 3 s precedes the start at 4 s, by no more than clocks differ.
    assert [us and us - T for us in found.tolist()] == [12 * S, 4 * S, 0, 0]


def test_the_threads_of_cancelled_executions_go_on_as_long_as_dask_measured() -> None:
    metrics = [
        {"context": "execute", "prefix": "add", "activity": "cancelled", "unit": "seconds", "value": value}
        for value in (5.0, 3.0, float("nan"))
    ]
    tasks = [task("a", 0, 1, "cancelled"), task("b", 0, 1, "cancelled"), task("c", 0, 1)]
    found = cancelled_until_us(make_recording({"tasks": tasks, "activities": metrics}))
    assert [us - T for us in found.tolist()] == [4 * S, 4 * S, 1 * S]


def test_a_result_of_another_computation_is_recomputed_only_if_its_worker_left() -> None:
    tasks = [task("k", 0, 1, computation="c1"), task("k", 10, 11, computation="c2", worker="b")]

    def found(**worker: Any) -> list[bool]:
        workers = [{"worker": "a", "server_id": "1", **worker}]
        return [bool(row) for row in recomputed_rows(make_recording({"tasks": tasks, "workers": workers}))]

    assert found(end_us=T + 5 * S, verdict="vanished") == [True, False]
    assert found(end_us=T + 5 * S, verdict="restarted") == [False, False]
    assert found(end_us=T + 20 * S, verdict="vanished") == [False, False]
    assert found() == [False, False]
