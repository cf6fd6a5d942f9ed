"""Recordings from literal rows."""

from __future__ import annotations

import pytest

from daskscope.model.recording import Completeness
from daskscope.model.tables import TABLES
from daskscope.testing import make_columns, make_frames, make_recording
from daskscope.wire.decode import read_frame


def test_missing_columns_are_empty() -> None:
    columns = make_columns("spans", [{"span": "a", "tags": ["x"]}, {"start_us": 5}])

    assert columns == {
        "span": ["a", ""],
        "seen_us": [0, 0],
        "tags": [["x"], []],
        "parent": ["", ""],
        "enqueued_us": [0, 0],
        "start_us": [0, 5],
        "stop_us": [0, 0],
        "active_cpu_us": [0, 0],
    }


def test_a_misspelt_column_is_refused() -> None:
    with pytest.raises(KeyError, match="spans has no column tag"):
        make_columns("spans", [{"tag": "x"}])


def test_frames_are_numbered_and_skip_empty_tables() -> None:
    frames = make_frames({"logs": [{"message": "a"}], "events": [], "edges": [{}, {}]}, cluster="c", epoch=7)

    headers = [read_frame(frame).header for frame in frames]
    assert [(h.table, h.cluster, h.epoch, h.sequence, h.rows, h.kept) for h in headers] == [
        ("logs", "c", 7, 0, 1, 1),
        ("edges", "c", 7, 1, 2, 2),
    ]


def test_a_made_recording_is_complete() -> None:
    recording = make_recording({"logs": [{"message": "a"}, {"message": "b"}]})

    assert recording["logs"]["message"].tolist() == ["a", "b"]
    assert recording.completeness == {"logs": Completeness(rows=2)}


def test_a_made_recording_can_be_damaged() -> None:
    recording = make_recording({}, completeness={"logs": Completeness(0, 3, 4)}, damage="why", damaged_bytes=9)

    assert (recording.completeness, recording.damage, recording.damaged_bytes) == (
        {"logs": Completeness(0, 3, 4)},
        "why",
        9,
    )


def test_every_table_can_be_made_from_an_empty_row() -> None:
    recording = make_recording({name: [{}] for name in TABLES})

    assert {name: recording[name].rows for name in TABLES} == dict.fromkeys(TABLES, 1)
