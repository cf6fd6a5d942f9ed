"""A selection keeps exactly the rows that belong to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daskscope.analysis.selection import Selection, select, spans_within
from daskscope.model.recording import Completeness, Recording
from daskscope.model.tables import TABLES
from daskscope.testing import make_recording
from daskscope.wire.file import read_recording

GOLDEN = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"


def task(id_: int, start: int, stop: int, **columns: Any) -> dict[str, Any]:
    return {"id": id_, "start_us": start, "stop_us": stop, **columns}


def ids(recording: Recording) -> list[int]:
    found: list[int] = recording["tasks"]["id"].tolist()
    return found


def test_an_empty_selection_keeps_everything() -> None:
    recording = make_recording({"tasks": [task(0, 1, 2)]})

    assert select(recording, Selection()) is recording


def test_rows_that_overlap_the_time_are_kept() -> None:
    recording = make_recording(
        {"tasks": [task(0, 1, 10), task(1, 5, 11), task(2, 10, 10), task(3, 19, 30), task(4, 20, 25), task(5, 1, 99)]}
    )

    assert ids(select(recording, Selection(10, 20))) == [1, 2, 3, 5]
    assert ids(select(recording, Selection(start_us=20))) == [3, 4, 5]
    assert ids(select(recording, Selection(stop_us=5))) == [0, 5]


def test_a_reading_of_a_process_covers_the_time_before_it() -> None:
    readings = [{"worker": name, "time_us": time, "wall_us": 10} for name, time in (("a", 9), ("b", 25), ("c", 40))]

    kept = select(make_recording({"processes": readings}), Selection(10, 20))["processes"]
    assert kept["worker"].tolist() == ["b"]


def test_a_worker_is_kept_while_it_is_connected() -> None:
    workers = [
        {"server_id": "gone", "start_us": 1, "end_us": 9},
        {"server_id": "there", "start_us": 1, "end_us": 0},
        {"server_id": "late", "start_us": 50, "end_us": 0},
    ]

    assert select(make_recording({"workers": workers}), Selection(10, 20))["workers"]["server_id"].tolist() == ["there"]


def test_a_worker_that_left_later_counts_as_connected() -> None:
    lost = {
        "verdict": "vanished",
        "evidence": "broke",
        "processing": ["a", "b"],
        "processing_count": 2,
        "lost_count": 3,
    }
    recording = make_recording(
        {
            "workers": [
                {"server_id": "before", "start_us": 1, "end_us": 15, **lost},
                {"server_id": "after", "start_us": 1, "end_us": 25, **lost},
                {"server_id": "at the end", "start_us": 1, "end_us": 20, **lost, "processing": ["c"]},
            ]
        }
    )

    workers = select(recording, Selection(10, 20))["workers"]

    assert workers["end_us"].tolist() == [15, 0, 20]
    assert workers["verdict"].tolist() == ["vanished", "", "vanished"]
    assert workers["processing"].tolist() == [["a", "b"], [], ["c"]]
    assert workers["lost_count"].tolist() == [3, 0, 3]


def test_rows_without_duration_and_open_windows_are_selected_by_time() -> None:
    found = select(
        make_recording(
            {
                "samples": [{"time_us": 9}, {"time_us": 10}, {"time_us": 20}],
                "windows": [{"window": "open", "start_us": 3}, {"window": "shut", "start_us": 3, "stop_us": 4}],
                "clients": [{"client": "a", "connect_us": 1, "disconnect_us": 5}, {"client": "b", "connect_us": 1}],
                "clusters": [{"cluster": "c", "start_us": 1, "end_us": 2}],
            }
        ),
        Selection(10, 20),
    )

    assert found["samples"]["time_us"].tolist() == [10]
    assert found["windows"]["window"].tolist() == ["open"]
    assert found["clients"]["client"].tolist() == ["b"]
    assert found["clusters"]["cluster"].tolist() == ["c"]


def test_a_span_includes_the_spans_inside_it() -> None:
    spans = [
        {"span": "leaf", "parent": "inner"},
        {"span": "inner", "parent": "outer"},
        {"span": "outer"},
        {"span": "other"},
        {"span": "loop", "parent": "loop"},
    ]
    recording = make_recording(
        {"spans": spans, "tasks": [task(i, 1, 2, span=span["span"]) for i, span in enumerate(spans)]}
    )

    assert ids(select(recording, Selection(span="inner"))) == [0, 1]
    assert sorted(spans_within(recording["spans"], "outer")) == ["inner", "leaf", "outer"]
    assert spans_within(recording["spans"], "loop") == ("loop",)
    assert ids(select(recording, Selection(span="unheard of"))) == []


def test_names_select_in_every_table_that_has_them() -> None:
    recording = make_recording(
        {
            "tasks": [
                task(0, 1, 2, prefix="add", worker="a", computation="x"),
                task(1, 1, 2, prefix="mul", worker="b"),
            ],
            "activities": [{"prefix": "mul"}, {"prefix": "add"}, {"prefix": "add"}],
            "samples": [{"worker": "a"}, {"worker": "b"}],
            "transfers": [{"source": "a", "destination": "c"}, {"source": "c", "destination": "b"}],
            "profiles": [{"worker": "a", "source": "b"}, {"worker": "b", "source": "a"}],
            "computations": [{"computation": "x"}, {"computation": "y"}],
        }
    )

    def rows(selection: Selection) -> dict[str, int]:
        found = select(recording, selection)
        assert {name: part.rows for name, part in found.completeness.items()} == {
            n: t.rows for n, t in found.tables.items()
        }
        return {name: table.rows for name, table in found.tables.items()}

    everything = {"tasks": 2, "activities": 3, "samples": 2, "transfers": 2, "profiles": 2, "computations": 2}
    assert rows(Selection(prefix="add")) == {**everything, "tasks": 1, "activities": 2, "profiles": 0}
    by_worker = {"tasks": 1, "samples": 1, "transfers": 1, "profiles": 1}
    assert rows(Selection(worker="a")) == {**everything, **by_worker}
    assert rows(Selection(computation="x")) == {**everything, "tasks": 1, "computations": 1}
    assert rows(Selection(computation="x", worker="b"))["tasks"] == 0


def test_edges_are_kept_with_their_dependents() -> None:
    recording = make_recording(
        {
            "tasks": [task(3, 1, 2), task(4, 5, 6)],
            "edges": [{"task": 4, "dependency": 3}, {"task": 3, "dependency": -1}],
        },
        completeness={"edges": Completeness(2, dropped=7, missing=1)},
    )
    found = select(recording, Selection(start_us=5))

    assert found["edges"]["dependency"].tolist() == [3]
    assert found.completeness["edges"] == Completeness(1, dropped=7, missing=1)


@pytest.mark.parametrize(
    "selection", [Selection(1, 2), Selection(5, 1), Selection(span=""), Selection(0, 2**62, "x", "y", "z", "w")]
)
def test_any_recording_can_be_selected_from(selection: Selection) -> None:
    for recording in (read_recording(GOLDEN), make_recording({}), make_recording({name: [{}] for name in TABLES})):
        assert set(select(recording, selection)) == set(TABLES)
