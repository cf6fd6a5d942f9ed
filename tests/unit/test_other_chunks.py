"""What-if with other chunks: tasks are joined or divided, and a fixed part of their time is paid once per chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.helpers.eight_tasks import MS, S, T, eight_task_rows, row, worker

from daskscope.analysis.time.waiting import GIL, REASONS
from daskscope.analysis.what_if import from_recording as recorded_graph_module
from daskscope.analysis.what_if.chunks import with_chunks
from daskscope.analysis.what_if.from_recording import CannotReplay, Replayable, recorded_graph
from daskscope.analysis.what_if.predict import Options, what_if
from daskscope.errors import DaskscopeError
from daskscope.model.recording import Array, Recording, Strings
from daskscope.testing import make_recording


def with_keys(keys: list[Any]) -> Recording:
    """Return eight tasks and their sum, with other keys."""
    tables = eight_task_rows()
    for one, key in zip(tables["tasks"], keys, strict=False):
        one["key"] = str(key)
    return make_recording(tables)


def changed(recording: Recording, factor: float) -> Replayable:
    return with_chunks(recording, recorded_graph(recording), factor).recorded


def inputs_of(recorded: Replayable, task: int) -> list[int]:
    graph = recorded.graph
    return sorted(graph.inputs[graph.inputs_from[task] : graph.inputs_from[task + 1]])


def test_larger_chunks_join_neighbouring_tasks_of_a_group() -> None:
    found = changed(with_keys([("load-1", i) for i in range(8)]), 4)

    assert found.graph.us == [4.0 * S, 4.0 * S, 0.5 * S]
    assert found.graph.nbytes == [4000, 4000, 1000]
    assert found.graph.group == [0, 0, 1]
    assert [group.size for group in found.graph.groups] == [2, 1]
    assert inputs_of(found, 2) == [0, 1]
    assert [list(part.roots) for part in found.graph.submissions] == [[0, 1]]


def test_neighbours_are_found_by_the_numbers_in_keys_and_not_by_when_tasks_started() -> None:
    # The tasks started in this order; the first, third, fifth and seventh are chunks 0 to 3.
    tables = eight_task_rows()
    for number, index in enumerate([0, 4, 1, 5, 2, 6, 3, 7]):
        tables["tasks"][number].update(key=str(("load-1", index)), nbytes=10**index)
    found = changed(make_recording(tables), 4)

    assert sorted(found.graph.nbytes[:2]) == [1111, 11_110_000]


def test_keys_with_absurd_numbers_have_some_order() -> None:
    found = changed(with_keys([f"('load-1', {'7' * 5000})", "('load-1', ²)", *["('a', 1"] * 6]), 2)

    assert sum(found.graph.us) == 8.5 * S


def test_smaller_chunks_divide_the_tasks_of_groups_with_several() -> None:
    found = changed(with_keys([("load-1", i) for i in range(8)]), 0.5)

    assert found.graph.us == [0.5 * S] * 17
    assert found.graph.nbytes == [500] * 16 + [1000]
    assert inputs_of(found, 16) == list(range(16))


def test_parts_of_divided_tasks_depend_on_the_same_part_of_their_inputs() -> None:
    rows = [row(i, 100 * i, 100 * i + 100, key=str(("load-1", i))) for i in range(2)]
    rows += [
        row(i + 2, 100 * i + 200, 100 * i + 300, key=str(("add-1", i)), group="add", prefix="add", queued_us=0)
        for i in range(2)
    ]
    edges = [{"task": i + 2, "dependency": i, "seen_us": T + S} for i in range(2)]
    found = changed(make_recording({"tasks": rows, "edges": edges, "workers": [worker()]}), 0.5)

    assert [inputs_of(found, task) for task in range(8)] == [[], [], [], [], [0], [1], [2], [3]]


def varied(threads: int = 1) -> Recording:
    """Return tasks that take 20 ms and 1 ms per kB, of 10 to 40 kB."""
    rows, at = [], 0
    for i in range(24):
        size = 10 + 10 * (i % 4)
        rows.append(row(i, at, at + 20 + size, key=str(("load-1", i)), nbytes=1000 * size))
        at += 20 + size
    return make_recording({"tasks": rows, "workers": [worker(nthreads=threads)]})


def test_the_fixed_part_of_the_time_is_paid_once_per_chunk() -> None:
    found = with_chunks(varied(), recorded_graph(varied()), 4)

    # 100 kB each: 20 + 100 instead of four times 20 and 100.
    assert found.recorded.graph.us == pytest.approx([120 * MS] * 6)
    assert found.assumptions == (
        "With such chunks, 4 neighbouring tasks of a group become one. Paid once per chunk: 20 ms of load. The rest of the "
        "time follows the data.",
    )
    smaller = changed(varied(), 0.5)
    assert sum(smaller.graph.us) == pytest.approx(24 * 2 * 20 * MS + 600 * MS)


def test_a_faster_prefix_has_a_smaller_fixed_part() -> None:
    found = what_if(varied(), workers=[1], options=Options({"load": 2.0}, chunks=4))

    # Half of 20 and 100 ms.
    assert found.predictions[0].wall_us == pytest.approx(6 * 60 * MS, rel=0.05)
    assert any("Paid once per chunk: 10 ms of load." in text for text in found.assumptions)


def test_time_spent_waiting_for_the_lock_is_no_fixed_part(monkeypatch: pytest.MonkeyPatch) -> None:
    run = varied(threads=4)

    def waiting(recording: Recording, prefixes: Strings) -> Array:
        shares = np.zeros((len(prefixes.values), len(REASONS)))
        shares[:, GIL] = 0.6
        return shares

    monkeypatch.setattr(recorded_graph_module, "waiting_shares", waiting)
    # Two fifths of 20 and 100 ms are the own time of the tasks.
    assert changed(run, 4).graph.us == pytest.approx([48 * MS] * 6)


def test_a_third_may_be_rounded() -> None:
    assert len(changed(varied(), 0.33).graph.us) == 72


def test_what_if_predicts_other_chunks_and_names_what_it_assumes() -> None:
    found = what_if(varied(), workers=[1], options=Options(chunks=4))

    (prediction,) = found.predictions
    assert prediction.wall_us == pytest.approx(6 * 120 * MS, rel=0.05)
    assert any("4 neighbouring tasks" in text for text in found.assumptions)
    assert not any("neighbouring" in text for text in what_if(varied(), workers=[1]).assumptions)


def test_a_chain_inside_of_a_group_is_joined() -> None:
    rows = [row(i, 100 * i, 100 * i + 100, key=str(("step-1", i)), queued_us=0) for i in range(4)]
    edges = [{"task": i + 1, "dependency": i, "seen_us": T + S} for i in range(3)]
    found = changed(make_recording({"tasks": rows, "edges": edges, "workers": [worker()]}), 2)

    # The first task is submitted, the others follow: they are of different submissions, and only the others are joined.
    assert sum(found.graph.us) == 400 * MS
    assert max(found.graph.us) == 200 * MS


def test_chunks_that_would_wait_for_each_other_are_not_joined() -> None:
    rows = [
        row(0, 0, 100, key="('a-1', 0)", group="a", prefix="a"),
        row(1, 100, 200, key="('b-1', 0)", group="b", prefix="b", queued_us=0),
        row(2, 200, 300, key="('a-1', 1)", group="a", prefix="a", queued_us=0),
        row(3, 300, 400, key="('b-1', 1)", group="b", prefix="b", queued_us=0),
        row(4, 400, 500, key="('a-1', 2)", group="a", prefix="a", queued_us=0),
    ]
    edges = [{"task": i + 1, "dependency": i, "seen_us": T + S} for i in range(4)]
    run = make_recording({"tasks": rows, "edges": edges, "workers": [worker()]})

    with pytest.raises(CannotReplay, match="wait for each other"):
        changed(run, 2)
    refused = what_if(run, options=Options(chunks=2))
    assert "wait for each other" in refused.reason
    # The page still offers them.
    assert refused.prefixes == ("a", "b")


@pytest.mark.parametrize("factor", [0, -1, 1.5, 0.4, 0.7, 9, 1 / 9, 2.005, 1.005, 0.999, float("nan"), float("inf")])
def test_sizes_that_are_no_whole_multiple_are_refused(factor: float) -> None:
    with pytest.raises(DaskscopeError, match="Give a whole number from 2 to 8, or one divided by it"):
        what_if(varied(), options=Options(chunks=factor))
