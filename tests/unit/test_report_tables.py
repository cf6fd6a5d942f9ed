"""The task groups of a report."""

from __future__ import annotations

import json
from typing import Any

from daskscope.report.tables import groups
from daskscope.testing import make_recording

T = 1_700_000_000_000_000


def group(name: str, start: int, **more: Any) -> dict[str, Any]:
    return {"group": name, "prefix": name, "computation": "c", "start_us": T + start, **more}


def test_groups_are_in_order_and_list_dependencies_by_position() -> None:
    found = groups(
        make_recording(
            {
                "groups": [
                    group(
                        "sum", 5, dependencies=["load", "gone"], durations_us='{"compute": 5, "transfer": 9}', nbytes=7
                    ),
                    group("load", 1, states=json.dumps({"memory": 2, "erred": 1}), durations_us='{"compute": 5}'),
                ]
            }
        )
    )
    assert [(g["group"], g["dependencies"], g["dominant"], g["tasks"], g["errors"]) for g in found] == [
        ("load", [], "cpu", 3, 1),
        ("sum", [0], "transfer", 0, 0),
    ]


def test_waiting_inside_of_tasks_is_not_computing() -> None:
    measured = {"context": "execute", "prefix": "sleep", "unit": "seconds", "time_us": T}
    tables = {
        "groups": [group("sleep", 1, durations_us='{"compute": 1000, "disk-read": 30, "disk-write": 20}')],
        "tasks": [{"prefix": "sleep", "start_us": T, "stop_us": T + 1000}],
        "activities": [
            {**measured, "activity": "thread-cpu", "value": 0.1},
            {**measured, "activity": "thread-noncpu", "value": 0.9},
        ],
    }
    (found,) = groups(make_recording(tables))
    assert found["durations_us"] == {"cpu": 100, "noncpu": 900, "disk": 50}
    assert found["dominant"] == "noncpu"


def test_a_group_has_the_time_of_its_failed_runs() -> None:
    run = {"group": "load", "prefix": "load", "computation": "c", "start_us": T}
    tables = {
        "groups": [group("load", 1, computation="c", durations_us='{"compute": 1000}')],
        "tasks": [
            run | {"stop_us": T + 1000, "status": "ok"},
            run | {"stop_us": T + 300, "status": "retried"},
            run | {"stop_us": T + 200, "status": "error"},
            run | {"stop_us": T + 40, "status": "killed"},
            run | {"stop_us": T + 5, "status": "error", "computation": "other"},
        ],
    }
    (found,) = groups(make_recording(tables))
    assert found["durations_us"] == {"cpu": 1000, "failed": 540}


def test_runs_that_were_recomputed_are_wasted() -> None:
    run = {"group": "load", "prefix": "load", "computation": "c", "key": "load-1", "status": "ok"}
    tables = {
        "groups": [group("load", 1, durations_us='{"compute": 1000, "transfer": 50}')],
        "tasks": [run | {"start_us": T, "stop_us": T + 400}, run | {"start_us": T + 900, "stop_us": T + 1500}],
    }
    (found,) = groups(make_recording(tables))
    assert found["durations_us"] == {"cpu": 600, "transfer": 50, "failed": 400}


def test_failures_count_after_dask_forgot_the_task() -> None:
    failure = {"group": "divide", "computation": "c", "time_us": T, "count": 2, "key": "other"}
    tables = {
        "groups": [group("divide", 1, states='{"forgotten": 4}')],
        "exceptions": [failure, {**failure, "will_retry": 1}, {**failure, "blamed_key": "other"}],
    }
    assert [g["errors"] for g in groups(make_recording(tables))] == [2]


def test_invalid_json_is_ignored() -> None:
    (found,) = groups(make_recording({"groups": [group("a", 1, states="[", durations_us="[1]")]}))
    assert (found["tasks"], found["durations_us"], found["dominant"]) == (0, {}, "idle")


def test_durations_and_states_that_are_not_numbers_are_left_out() -> None:
    row = {
        "group": "g",
        "durations_us": '{"compute": Infinity, "transfer": 5, "x": NaN}',
        "states": '{"erred": "many", "memory": 2}',
    }
    (found,) = groups(make_recording({"groups": [row]}))
    assert (found["durations_us"], found["tasks"], found["errors"]) == ({"transfer": 5}, 2, 0)
