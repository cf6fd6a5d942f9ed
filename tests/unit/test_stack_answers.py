"""The answer to a request for stacks: tasks with their frames, all merged into one tree, and how complete it is."""

from __future__ import annotations

import json
from typing import Any

from daskscope.analysis.profiles import MAX_DEPTH, NO_STACKS, Stacks, TaskStack, Tree, answer_of, merge
from daskscope.testing import make_recording

A, B, C = "a.py\tf\t1", "a.py\tg\t22", "/b.py\th\t3"


def row(key: str, *stack: str, request: int = 7, **values: Any) -> dict[str, Any]:
    base = {"time_us": 100, "request": request, "worker": "tcp://w", "key": key, "prefix": "inc", "thread": 5}
    return {**base, "start_us": 50, "stack": list(stack), **values}


def answer(*rows: dict[str, Any], request: int = 7) -> Stacks:
    return answer_of(make_recording({"stacks": list(rows)})["stacks"], request)


def test_stacks_of_other_requests_do_not_count() -> None:
    found = answer(row("old", A, request=6), row("x", A, B, start_us=60), row("y", A, C))
    assert found.frames == [("a.py", "f", 1), ("a.py", "g", 22), ("/b.py", "h", 3)]
    assert found.items == [
        TaskStack(100, "tcp://w", "y", "inc", 5, 50, (0, 2)),
        TaskStack(100, "tcp://w", "x", "inc", 5, 60, (0, 1)),
    ]
    assert found.tree == Tree([0, 2, 1], [-1, 0, 0], [0, 1, 1])
    assert not found.is_complete


def test_the_last_row_tells_how_many_workers_answered() -> None:
    note = {"workers": 9, "asked": 4, "answered": 3, "why": "the worker has no agent"}
    found = answer(row("x", A), row("", worker="scheduler", note=json.dumps(note)))
    assert (found.is_complete, found.workers, found.asked, found.answered) == (True, 9, 4, 3)
    assert found.why == "the worker has no agent"
    assert [item.key for item in found.items] == ["x"]


def test_a_hostile_answer_is_cut() -> None:
    deep = row("x", *(f"{number}\tf\tno line" for number in range(2 * MAX_DEPTH)))
    found = answer(deep, row("", note='{"workers": -1, "asked": "many", "answered": true, "why": ["x"]}'))
    assert len(found.items[0].frames) == MAX_DEPTH
    assert found.frames[0] == ("0", "f", 0)
    assert (found.workers, found.asked, found.answered, found.why) == (0, 0, 0, "")
    assert answer(row("", note="[")).is_complete


def test_without_rows_there_is_nothing() -> None:
    assert answer() == NO_STACKS


def test_equal_stacks_are_merged_and_recursion_is_not() -> None:
    assert merge([(0, 1), (0, 1), (0, 0), ()]) == Tree([0, 1, 0], [-1, 0, 0], [0, 2, 1])
