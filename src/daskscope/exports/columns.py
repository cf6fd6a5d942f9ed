"""Tables as Parquet, CSV and JSON, a file a table.

Moments become timestamps in UTC, and a moment that is not known (0) becomes empty: what other tools mean by it.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from daskscope.errors import MissingExtra
from daskscope.model.recording import Recording
from daskscope.model.table import Lists, Strings, Table

#: Rows that are made into Python objects at a time.
CHUNK = 50_000


def write_parquet(recording: Recording, directory: Path, tables: Iterable[str]) -> list[Path]:
    """Each table as a Parquet file; DuckDB, pandas and Dask read them as they are."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "Writing Parquet") from None

    def write(table: Table, path: Path) -> None:
        columns = {name: _arrow(pyarrow, table, name) for name in table}
        pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="zstd", row_group_size=200_000)

    return _files(recording, directory, tables, ".parquet", write)


def write_csv(recording: Recording, directory: Path, tables: Iterable[str]) -> list[Path]:
    """Each table as a CSV file; lists are JSON arrays in a cell."""

    def write(table: Table, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8", errors="replace") as file:
            writer = csv.writer(file)
            writer.writerow(table)
            for row in _rows(table):
                writer.writerow([json.dumps(cell) if isinstance(cell, list) else _inert(cell) for cell in row])

    return _files(recording, directory, tables, ".csv", write)


def write_json(recording: Recording, directory: Path, tables: Iterable[str]) -> list[Path]:
    """Each table as a file of JSON lines, an object a row."""

    def write(table: Table, path: Path) -> None:
        names = list(table)
        with path.open("w", encoding="utf-8", errors="replace") as file:
            for row in _rows(table):
                file.write(json.dumps(dict(zip(names, row)), ensure_ascii=False, allow_nan=False) + "\n")

    return _files(recording, directory, tables, ".jsonl", write)


def _files(
    recording: Recording, directory: Path, tables: Iterable[str], suffix: str, write: Callable[[Table, Path], None]
) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in tables:
        path = directory / f"{name}{suffix}"
        write(recording[name], path)
        paths.append(path)
    return paths


def _arrow(pyarrow: Any, table: Table, name: str) -> Any:
    values, kind = table.columns[name], table.kind(name)
    if isinstance(values, Strings):
        return pyarrow.array(map(_sound, values.to_numpy().tolist()), type=pyarrow.string())
    if isinstance(values, Lists):
        if kind != "str[]":
            return pyarrow.array(values.to_numpy(), type=pyarrow.list_(pyarrow.int64()))
        texts = [list(map(_sound, row)) for row in values.to_numpy()]
        return pyarrow.array(texts, type=pyarrow.list_(pyarrow.string()))
    if kind == "time":
        return pyarrow.array(values, mask=values == 0).cast(pyarrow.timestamp("us", tz="UTC"))
    return pyarrow.array(values)


def _sound(text: str) -> str:
    """A text that can be encoded: names may hold halves of surrogate pairs."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _rows(table: Table) -> Iterable[list[Any]]:
    for first in range(0, table.rows, CHUNK):
        part = table.take(np.arange(first, min(first + CHUNK, table.rows)))
        columns = [[_plain(value, table.kind(name)) for value in part[name].tolist()] for name in part]
        yield from map(list, zip(*columns, strict=True))


def _plain(value: Any, kind: str) -> Any:
    if kind == "time":
        return str(np.datetime64(value, "us")) + "Z" if value else None
    return value if not isinstance(value, float) or math.isfinite(value) else None


def _inert(cell: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets a quote in front."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
