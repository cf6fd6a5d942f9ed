"""Tables and recordings in memory."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from daskscope.errors import MissingExtra
from daskscope.model.recording import Completeness, Lists, Recording, Strings, Table, object_array
from daskscope.model.tables import TABLES
from daskscope.testing import make_recording


def test_a_recording_has_every_table() -> None:
    recording = Recording("empty", {})

    assert list(recording) == list(TABLES)
    assert {name: table.rows for name, table in recording.items()} == dict.fromkeys(TABLES, 0)


def test_the_error_for_an_unknown_table_lists_the_known_ones() -> None:
    with pytest.raises(KeyError, match="no table 'task'; the tables are clusters, clients"):
        Recording("empty", {})["task"]


def test_the_repr_of_a_recording_lists_its_tables() -> None:
    recording = make_recording({"logs": [{}] * 1_200, "events": [{}]}, source="a.daskscope")

    assert repr(recording) == "<Recording a.daskscope: logs 1,200, events 1>"
    assert repr(Recording("b", {})) == "<Recording b: empty>"


def test_the_repr_of_a_table_says_what_a_row_is() -> None:
    assert (
        repr(make_recording({"logs": [{}]})["logs"]) == "<Table logs: 1 rows of a log line of level WARNING or above>"
    )


def test_the_total_includes_dropped_and_missing_rows() -> None:
    assert Completeness(rows=10, dropped=2, missing=3).total == 15


def test_a_table_is_a_mapping_of_numpy_columns() -> None:
    table = make_recording({"edges": [{"task": 1, "dependency": 2, "seen_us": 3}]})["edges"]

    assert {name: column.tolist() for name, column in table.items()} == {"task": [1], "dependency": [2], "seen_us": [3]}
    assert len(table) == 3


def test_rows_are_selected_by_index_or_by_mask() -> None:
    table = make_recording({"spans": [{"span": s, "tags": [s, s]} for s in "abc"]})["spans"]

    by_index = table.take(np.array([2, 0]))
    by_mask = table.take(np.array([False, True, True]))
    assert (by_index["span"].tolist(), by_index["tags"].tolist()) == (["c", "a"], [["c", "c"], ["a", "a"]])
    assert (by_mask["span"].tolist(), by_mask["tags"].tolist()) == (["b", "c"], [["b", "b"], ["c", "c"]])


def test_numbers_in_lists_are_selected_with_their_rows() -> None:
    lists = Lists(np.array([0, 2, 2, 3]), np.array([10, 11, 12]))

    assert lists.take(np.array([2, 1, 0])).to_numpy().tolist() == [[12], [], [10, 11]]


def test_texts_are_numbered_only_when_needed() -> None:
    strings = Strings.of(["b", "a", "b"])

    assert strings.texts is not None
    assert (strings.codes.tolist(), strings.values.tolist()) == ([0, 1, 0], ["b", "a"])
    assert (len(strings), strings.to_numpy().tolist()) == (3, ["b", "a", "b"])
    assert strings.take(np.array([1])).to_numpy().tolist() == ["a"]


def test_coded_strings_without_values_are_empty() -> None:
    assert Strings(np.zeros(0, dtype=np.int32), object_array([])).to_numpy().tolist() == []


def test_only_string_columns_have_codes_and_only_list_columns_offsets() -> None:
    table = Table.empty("tasks")

    assert len(table.strings("key")) == len(table.lists("interval_action")) == 0
    with pytest.raises(TypeError, match=r"tasks\.id is not a string column"):
        table.strings("id")
    with pytest.raises(TypeError, match=r"tasks\.id is not a list column"):
        table.lists("id")


def test_pandas_gets_timestamps_and_nat_for_unknown_times() -> None:
    recording = make_recording({"spans": [{"span": "a", "start_us": 1_500_000, "tags": ["x", "y"]}]})

    frame = recording.to_pandas("spans")
    assert frame["start_us"].tolist() == [pd.Timestamp("1970-01-01T00:00:01.5", tz="UTC")]
    assert frame["stop_us"].isna().tolist() == [True]
    assert frame["tags"].tolist() == [["x", "y"]]
    assert list(frame) == list(TABLES["spans"].names)


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(MissingExtra, match=r"pip install 'daskscope\[pandas\]'"):
        make_recording({}).to_pandas("tasks")
