"""The critical path ends with the last execution, and no chain is longer than the bound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskscope.analysis.critical_path import UNKNOWN, CriticalPath, Step, critical_path
from daskscope.model.tables import TABLES
from daskscope.testing import make_recording
from daskscope.wire.file import read_recording

GOLDEN = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"
T = 1_700_000_000_000_000


def task(id_: int, start: int, stop: int, prefix: str = "p", **columns: Any) -> dict[str, Any]:
    row = {"id": id_, "key": f"k{id_}", "start_us": T + start, "stop_us": T + stop, "prefix": prefix, "status": "ok"}
    return {**row, "worker": "w", **columns}


def edges(*pairs: tuple[int, int]) -> list[dict[str, Any]]:
    return [{"task": task, "dependency": dependency} for task, dependency in pairs]


def path(tasks: list[dict[str, Any]], *pairs: tuple[int, int]) -> CriticalPath:
    return critical_path(make_recording({"tasks": tasks, "edges": edges(*pairs)}))


def step(row: int, id_: int, start: int, stop: int, prefix: str, wait: int) -> Step:
    return Step(row, f"k{id_}", prefix, "w", T + start, T + stop, wait, scheduler_us=wait)


def test_the_path_follows_the_input_that_stopped_last() -> None:
    found = path(
        [
            task(9, 30, 60, "sum"),
            task(5, 0, 10, "load"),
            task(7, 0, 20, "load"),
            task(8, 25, 26, "mul"),
            task(6, 1, 59, "other"),
        ],
        (9, 8),
        (9, 5),
        (8, 7),
        (8, 5),
        (9, -1),
        (404, 5),
    )

    assert found == CriticalPath(
        known=True,
        computation="",
        length_us=60,
        compute_us=51,
        wait_us=5 + 4,
        queue_us=0,
        transfer_us=0,
        scheduler_us=5 + 4,
        bound_us=58,
        by_prefix=(("sum", 30), ("load", 20), ("mul", 1)),
        steps=(step(2, 7, 0, 20, "load", 0), step(3, 8, 25, 26, "mul", 5), step(0, 9, 30, 60, "sum", 4)),
    )


def test_without_dependencies_the_path_is_unknown() -> None:
    assert path([task(0, 0, 5)]) == UNKNOWN
    assert path([task(0, 0, 5)], (0, -1), (0, 7)) == UNKNOWN


def test_a_killed_execution_is_not_the_end_of_the_path() -> None:
    found = path([task(0, 0, 5), task(1, 6, 7), task(2, 99, 99, status="killed")], (1, 0))

    assert [step.task_row for step in found.steps] == [0, 1]


def test_clocks_that_disagree_do_not_lead_in_circles() -> None:
    found = path([task(0, 0, 5), task(1, 6, 7), task(2, 9, 8)], (0, 1), (1, 0), (1, 1), (2, 1), (0, 2))

    assert [step.task_row for step in found.steps] == [0, 1, 2]
    assert (found.length_us, found.compute_us, found.wait_us, found.bound_us) == (8, 6, 1 + 1, 6)


def test_a_thread_that_was_busy_is_part_of_the_path() -> None:
    """The input existed at 5, but the only thread was busy until 20."""
    found = path(
        [
            task(0, 0, 5, "load", thread=1),
            task(1, 5, 20, "other", thread=1, assigned_us=T + 1),
            task(2, 20, 30, "sum", thread=1, assigned_us=T + 6),
        ],
        (2, 0),
    )
    assert [(step.prefix, step.same_thread) for step in found.steps] == [
        ("load", False),
        ("other", True),
        ("sum", True),
    ]
    assert (found.compute_us, found.wait_us) == (30, 0)
    assert {type(step.same_thread) for step in found.steps} == {bool}


def test_the_time_between_two_steps_is_divided() -> None:
    moved: dict[str, Any] = {
        "interval_action": ["transfer"],
        "interval_start_us": [T + 16],
        "interval_stop_us": [T + 19],
    }
    times: dict[str, Any] = {"queued_us": T + 11, "assigned_us": T + 15}
    found = path([task(0, 0, 10), task(1, 20, 30, **times, **moved)], (1, 0))
    last = found.steps[-1]
    assert (last.wait_us, last.queue_us, last.transfer_us, last.scheduler_us) == (10, 4, 3, 3)
    assert (found.queue_us, found.transfer_us, found.scheduler_us) == (4, 3, 3)


def test_the_path_is_that_of_the_longest_computation() -> None:
    tasks = [
        task(0, 0, 10, computation="short"),
        task(1, 10, 20, computation="short"),
        task(2, 30, 70, computation="long"),
        task(3, 70, 90, computation="long"),
    ]
    found = path(tasks, (1, 0), (3, 2))
    assert (found.computation, found.length_us) == ("long", 60)


TASKS = st.lists(st.tuples(st.integers(0, 20), st.integers(-2, 20)), min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
@given(TASKS, st.lists(st.tuples(st.integers(-1, 8), st.integers(-1, 8)), max_size=14))
def test_the_bound_agrees_with_checking_every_chain(tasks: list[tuple[int, int]], pairs: list[tuple[int, int]]) -> None:
    found = path([task(i, start, start + length) for i, (start, length) in enumerate(tasks)], *pairs)
    turn = {i: (start + length, i) for i, (start, length) in enumerate(tasks)}
    needs: dict[int, list[int]] = {i: [] for i in turn}
    for i, j in pairs:
        if i in turn and j in turn and j < i:
            needs[i].append(j)

    def longest(i: int) -> int:
        return max(0, tasks[i][1]) + max(map(longest, needs[i]), default=0)

    if not any(i in turn and j in turn and i != j for i, j in pairs):
        assert found == UNKNOWN
        return
    assert found.bound_us == max(map(longest, turn))
    expected = [max(turn, key=turn.__getitem__)]
    while needs[expected[-1]]:
        expected.append(max(needs[expected[-1]], key=turn.__getitem__))
    assert [step.task_row for step in found.steps] == expected[::-1]
    assert found.compute_us == sum(max(0, tasks[i][1]) for i in expected) == sum(us for _, us in found.by_prefix)
    assert found.compute_us <= found.bound_us


@pytest.mark.parametrize("blank", [False, True])
def test_any_recording_has_a_known_or_unknown_path(blank: bool) -> None:
    recording = make_recording({name: [{}] for name in TABLES}) if blank else read_recording(GOLDEN)

    assert not critical_path(recording).known
    assert not critical_path(make_recording({})).known
