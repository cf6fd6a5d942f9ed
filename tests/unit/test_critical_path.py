"""The critical path is the one that the end had to wait for, and no chain is longer than the bound."""

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
    return Step(row, f"k{id_}", prefix, "w", T + start, T + stop, wait)


def test_the_end_waits_for_the_input_that_stopped_last() -> None:
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
        length_us=60,
        compute_us=51,
        wait_us=5 + 4,
        bound_us=58,
        by_prefix=(("sum", 30), ("load", 20), ("mul", 1)),
        steps=(step(2, 7, 0, 20, "load", 0), step(3, 8, 25, 26, "mul", 5), step(0, 9, 30, 60, "sum", 4)),
    )


def test_without_dependencies_it_is_not_known() -> None:
    assert path([task(0, 0, 5)]) == UNKNOWN
    assert path([task(0, 0, 5)], (0, -1), (0, 7)) == UNKNOWN


def test_an_execution_that_was_killed_is_not_the_end() -> None:
    found = path([task(0, 0, 5), task(1, 6, 7), task(2, 99, 99, status="killed")], (1, 0))

    assert [step.task_row for step in found.steps] == [0, 1]


def test_clocks_that_disagree_do_not_lead_in_circles() -> None:
    found = path([task(0, 0, 5), task(1, 6, 7), task(2, 9, 8)], (0, 1), (1, 0), (1, 1), (2, 1), (0, 2))

    assert [step.task_row for step in found.steps] == [0, 1, 2]
    assert (found.length_us, found.compute_us, found.wait_us, found.bound_us) == (8, 6, 1 + 2, 6)


TASKS = st.lists(st.tuples(st.integers(0, 20), st.integers(-2, 20)), min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
@given(TASKS, st.lists(st.tuples(st.integers(-1, 8), st.integers(-1, 8)), max_size=14))
def test_it_agrees_with_looking_at_every_chain(tasks: list[tuple[int, int]], pairs: list[tuple[int, int]]) -> None:
    found = path([task(i, start, start + length) for i, (start, length) in enumerate(tasks)], *pairs)
    turn = {i: (start + length, start, i) for i, (start, length) in enumerate(tasks)}
    needs: dict[int, list[int]] = {i: [] for i in turn}
    for i, j in pairs:
        if i in turn and j in turn and turn[j] < turn[i]:
            needs[i].append(j)

    def longest(i: int) -> int:
        return max(0, tasks[i][1]) + max(map(longest, needs[i]), default=0)

    if not any(needs.values()):
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
def test_any_recording_has_one_or_none(blank: bool) -> None:
    recording = make_recording({name: [{}] for name in TABLES}) if blank else read_recording(GOLDEN)

    assert not critical_path(recording).known
    assert not critical_path(make_recording({})).known
