"""Columns that are read in several steps are those that were written."""

from __future__ import annotations

import numpy as np
import pytest

from daskscope.model.recording import Strings, Table
from daskscope.storage.runs import parquet
from daskscope.storage.runs.parquet import from_parquet, to_parquet
from daskscope.testing import make_recording

ROWS = 500


def table() -> Table:
    """Return tasks with more texts than 8 bits can number, and lists of different lengths."""
    rows = [
        {
            "id": n,
            "key": f"('x-{n % 7}', {n})" if n % 50 else "",
            "worker": f"tcp://{n % 300}",
            "prefix": "same",
            "start_us": n + 1,
            "stop_us": n + 2,
            "nbytes": 2**40 + n,
            "interval_action": ["transfer", f"action-{n}"][: n % 3],
            "interval_start_us": [n, n + 1][: n % 3],
            "interval_stop_us": [n + 1, n + 2][: n % 3],
            "interval_source": ["", "ü"][: n % 3],
        }
        for n in range(ROWS)
    ]
    return make_recording({"tasks": rows})["tasks"]


def rows_of(found: Table) -> list[tuple[object, ...]]:
    return list(found.records(*found.definition.names))


@pytest.mark.parametrize("unpacked", [2, 10_000])
def test_a_file_of_many_row_groups_is_read_as_it_was_written(monkeypatch: pytest.MonkeyPatch, unpacked: int) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP", 40)
    monkeypatch.setattr(parquet, "GROUPS_AT_ONCE", 3)
    monkeypatch.setattr(parquet, "MAX_UNPACKED", unpacked)
    written = table()
    found = from_parquet("tasks", to_parquet(written))
    assert rows_of(found) == rows_of(written)
    assert {name: found.strings(name).codes.dtype for name in ("prefix", "worker")} == {
        "prefix": np.dtype(np.int8),
        "worker": np.dtype(np.int16),
    }
    assert found.lists("interval_action").offsets is found.lists("interval_stop_us").offsets


def test_columns_of_zeros_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    build = parquet.column_builder

    def builder(kind: str, type_: object, rows: int) -> parquet.ColumnBuilder:
        asked.append(kind)
        return build(kind, type_, rows)

    monkeypatch.setattr("daskscope.storage.runs.parquet.column_builder", builder)
    written = table()
    found = from_parquet("tasks", to_parquet(written))
    numbers = [column.name for column in written.definition.columns if column.kind in ("int", "time")]
    zeros = [name for name in numbers if not written[name].any()]
    assert zeros == ["thread", "queued_us", "assigned_us"]
    assert len(asked) == len(written.definition.columns) - len(zeros)
    assert [found[name].tolist() for name in zeros] == [[0] * ROWS] * 3


def test_offsets_of_texts_grow_beyond_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    class Small:
        max = 10

    monkeypatch.setattr(parquet, "INT32", Small)
    builder = parquet.column_builder("str", pa.string(), 4)
    for part in (["ab", "cdefg"], ["hijklm", ""]):
        builder.append(pa.array(part))
    values = builder.finish()
    assert isinstance(values, Strings)
    assert values.to_numpy().tolist() == ["ab", "cdefg", "hijklm", ""]
