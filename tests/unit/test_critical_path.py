"""The critical path ends with the last execution, and no chain is longer than the bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskscope.analysis.time.critical_path import UNKNOWN, CriticalPath, Step, critical_path
from daskscope.model.recording import Completeness
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


def test_the_path_follows_the_input_that_was_last() -> None:
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
        busy_us=0,
        scheduler_us=5 + 4,
        bound_us=58,
        by_prefix=(("sum", 30), ("load", 20), ("mul", 1)),
        steps=(step(2, 7, 0, 20, "load", 0), step(3, 8, 25, 26, "mul", 5), step(0, 9, 30, 60, "sum", 4)),
    )


def test_without_dependencies_the_path_is_unknown() -> None:
    assert path([task(0, 0, 5)]) == UNKNOWN
    assert path([task(0, 0, 5)], (0, -1), (0, 7)) == UNKNOWN


def test_a_path_does_not_begin_at_a_task_whose_inputs_were_dropped() -> None:
    groups = [
        {"group": "sum", "prefix": "sum", "dependencies": ["load"], "seen_us": T},
        {"group": "load", "prefix": "load", "seen_us": T},
    ]
    rows = [task(0, 0, 50, "load"), task(1, 0, 50, "load"), task(2, 51, 52, "sum"), task(3, 60, 61, "sum")]
    tables = {"tasks": rows, "edges": edges((2, 0)), "groups": groups}
    whole = make_recording(tables)
    part = replace(whole, completeness={**whole.completeness, "edges": Completeness(1, dropped=7_300)})
    assert [step.task_row for step in critical_path(whole).steps] == [3]
    assert critical_path(part) == UNKNOWN
    # The inputs of the last task are known.
    last = replace(make_recording({**tables, "tasks": rows[:3]}), completeness=part.completeness)
    assert [step.task_row for step in critical_path(last).steps] == [0, 2]


def test_a_killed_execution_is_not_the_end_of_the_path() -> None:
    found = path([task(0, 0, 5), task(1, 6, 7), task(2, 99, 99, status="killed")], (1, 0))

    assert [step.task_row for step in found.steps] == [0, 1]


def test_clocks_that_disagree_do_not_lead_in_circles() -> None:
    found = path([task(0, 0, 5), task(1, 6, 7), task(2, 9, 8)], (0, 1), (1, 0), (1, 1), (2, 1), (0, 2))

    assert [step.task_row for step in found.steps] == [0, 1, 2]
    assert (found.length_us, found.compute_us, found.wait_us, found.bound_us) == (8, 6, 1 + 1, 6)


def on_thread(
    id_: int, key: str, thread: int, assigned: float, start: float, stop: float, **columns: Any
) -> dict[str, Any]:
    """Return an execution on a thread; times in milliseconds. The recorder repeats ``assigned_us`` for tasks it did not queue."""
    assigned_us = T + round(1000 * assigned)
    times: dict[str, Any] = {"assigned_us": assigned_us, "queued_us": assigned_us, **columns}
    row = task(id_, round(1000 * start), round(1000 * stop), key.split("-", maxsplit=1)[0], **times)
    return {**row, "key": key, "thread": thread}


def keys(found: CriticalPath) -> list[tuple[str, bool]]:
    return [(step.key, step.same_thread) for step in found.steps]


def test_an_execution_that_a_thread_preferred_is_part_of_the_path() -> None:
    """The input existed at 50 ms. At 80 ms the only thread started another execution instead of the dependent."""
    found = path(
        [
            on_thread(0, "load", 1, 0, 0, 50),
            on_thread(1, "other-1", 1, 1, 51, 80),
            on_thread(2, "other-2", 1, 1, 80, 150),
            on_thread(3, "sum", 1, 52, 151, 160),
        ],
        (3, 0),
    )

    assert keys(found) == [("load", False), ("other-1", True), ("other-2", True), ("sum", True)]
    assert (found.compute_us, found.busy_us, found.scheduler_us) == (50_000 + 29_000 + 70_000 + 9_000, 0, 2_000)
    assert {type(step.same_thread) for step in found.steps} == {bool}


def queued(at: float) -> dict[str, Any]:
    return {"queued_us": T + round(1000 * at)}


#: One worker with two threads, as recorded in 5 of 10 runs of "a chain of tasks". When chain-0 ends, its thread starts side-5,
#: which the worker already has. The scheduler then assigns chain-1, by the worker's clock before its input ended. It waits 10 ms
#: for side-4.
CHAIN = [
    on_thread(0, "side-1", 2, 8.79, 283.99, 384.60),
    on_thread(1, "side-2", 2, 8.76, 385.72, 489.60),
    on_thread(2, "side-3", 2, 380.82, 490.90, 591.56, **queued(8.86)),
    on_thread(3, "chain-0", 1, 0, 281.22, 682.82),
    on_thread(4, "side-4", 2, 485.63, 592.38, 692.80, **queued(8.83)),
    on_thread(5, "side-5", 1, 588.31, 683.54, 784.14, **queued(8.86)),
    on_thread(6, "chain-1", 2, 678.85, 693.44, 1093.95),
]


def test_the_rest_of_an_execution_that_was_running_is_waiting_time() -> None:
    found = path(CHAIN, (6, 3))

    assert keys(found) == [("chain-0", False), ("chain-1", False)]
    last = found.steps[-1]
    assert (last.wait_us, last.busy_us, last.scheduler_us) == (10_620, 9_980, 640)
    assert (found.wait_us, found.busy_us, found.scheduler_us) == (10_620, 9_980, 640)


def test_an_execution_that_started_before_the_scheduler_could_answer_was_not_preferred() -> None:
    """Both threads start other executions within 2 ms after the end of the input, and the dependent waits for one of them."""
    sides = [on_thread(4, "side-4", 2, 485.63, 684.2, 784.4), *CHAIN[5:6]]
    found = path([*CHAIN[:4], *sides, on_thread(6, "chain-1", 2, 678.85, 785, 1185)], (6, 3))

    assert keys(found) == [("chain-0", False), ("chain-1", False)]
    assert (found.steps[-1].busy_us, found.steps[-1].scheduler_us) == (784_400 - 682_820, 600)


def test_a_thread_that_started_another_execution_during_the_transfer_of_inputs_did_not_prefer_it() -> None:
    moved: dict[str, Any] = {
        "interval_action": ["transfer"],
        "interval_start_us": [T + 105_000],
        "interval_stop_us": [T + 140_000],
    }
    tasks = [
        on_thread(0, "load", 1, 0, 0, 100, worker="v"),
        on_thread(1, "other-1", 1, 1, 1, 120),
        on_thread(2, "other-2", 1, 1, 120, 150),
        on_thread(3, "sum", 1, 102, 151, 160, **moved),
    ]
    found = path(tasks, (3, 0))

    assert keys(found) == [("load", False), ("sum", False)]
    last = found.steps[-1]
    assert (last.wait_us, last.transfer_us, last.busy_us, last.scheduler_us) == (51_000, 35_000, 3_000 + 10_000, 3_000)


def test_tasks_without_inputs_follow_each_other_on_their_thread() -> None:
    tasks = [on_thread(i, f"load-{i}", 1, 10 * i, 10 * i, 10 * i + 10, **queued(1)) for i in range(4)]
    found = path([*tasks, on_thread(4, "sum", 1, 41, 42, 50)], (4, 3))

    assert keys(found) == [("load-0", False), ("load-1", True), ("load-2", True), ("load-3", True), ("sum", False)]


def test_the_last_input_is_the_one_that_the_scheduler_learned_of_last() -> None:
    """The clock of worker ``v`` is 20 ms fast."""
    tasks = [on_thread(0, "early", 1, 0, 20, 70, worker="v"), on_thread(1, "late", 1, 0, 0, 60)]
    found = path([*tasks, on_thread(2, "sum", 1, 61, 62, 70)], (2, 0), (2, 1))

    assert keys(found) == [("late", False), ("sum", False)]


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
    ids = range(len(tasks))
    needs: dict[int, list[int]] = {i: [] for i in ids}
    for i, j in pairs:
        if i in ids and j in ids and j < i:
            needs[i].append(j)

    def longest(i: int) -> int:
        return max(0, tasks[i][1]) + max(map(longest, needs[i]), default=0)

    if not any(i in ids and j in ids and i != j for i, j in pairs):
        assert found == UNKNOWN
        return
    assert found.bound_us == max(map(longest, ids))
    expected = [len(tasks) - 1]
    while needs[expected[-1]]:
        expected.append(max(needs[expected[-1]]))
    assert [step.task_row for step in found.steps] == expected[::-1]
    assert found.compute_us == sum(us for _, us in found.by_prefix) <= sum(max(0, tasks[i][1]) for i in expected)
    # Steps do not overlap, whatever the clocks say, so that the parts add up to the whole.
    assert found.compute_us + found.wait_us == found.length_us
    assert found.compute_us <= found.bound_us


@pytest.mark.parametrize("blank", [False, True])
def test_any_recording_has_a_known_or_unknown_path(blank: bool) -> None:
    recording = make_recording({name: [{}] for name in TABLES}) if blank else read_recording(GOLDEN)

    assert not critical_path(recording).known
    assert not critical_path(make_recording({})).known
