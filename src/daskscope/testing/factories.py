"""Recordings from a few literal rows: what a test does not care about is filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from daskscope.model.recording import Completeness, Recording
from daskscope.model.table import Table
from daskscope.model.tables import TABLES, Column
from daskscope.wire.decode import read_frame
from daskscope.wire.encode import encode_body, seal
from daskscope.wire.file import concatenate

#: One row by column name; columns that are not given are empty.
Row = Mapping[str, Any]


def make_columns(table: str, rows: Sequence[Row]) -> dict[str, list[Any]]:
    """All columns of a table, ready for ``encode_body``; what a row does not give is 0, ``""`` or an empty list."""
    definition = TABLES[table]
    unknown = {name for row in rows for name in row} - set(definition.names)
    if unknown:
        raise KeyError(f"{table} has no column {', '.join(sorted(unknown))}")
    return {column.name: [row.get(column.name, _empty(column)) for row in rows] for column in definition.columns}


def make_frames(tables: Mapping[str, Sequence[Row]], *, cluster: str = "test-cluster", epoch: int = 1) -> list[bytes]:
    """One sealed frame per table that has rows, numbered from 0."""
    filled = [(table, rows) for table, rows in tables.items() if rows]
    return [
        seal(
            encode_body(table, make_columns(table, rows)),
            cluster=cluster,
            epoch=epoch,
            sequence=sequence,
            kept=len(rows),
            dropped=0,
        )
        for sequence, (table, rows) in enumerate(filled)
    ]


def make_recording(
    tables: Mapping[str, Sequence[Row]],
    *,
    source: str = "test",
    completeness: Mapping[str, Completeness] | None = None,
    damage: str = "",
    damaged_bytes: int = 0,
) -> Recording:
    """A recording of the given rows, encoded and decoded by the real wire; complete unless told otherwise."""
    decoded = _decode(make_frames(tables))
    complete = {name: Completeness(table.rows) for name, table in decoded.items()}
    return Recording(source, decoded, {**complete, **(completeness or {})}, damage, damaged_bytes)


def _decode(frames: Iterable[bytes]) -> dict[str, Table]:
    batches: dict[str, list[Table]] = {}
    for data in frames:
        table = read_frame(data).table()
        batches.setdefault(table.name, []).append(table)
    return {name: concatenate(TABLES[name], tables) for name, tables in batches.items()}


def _empty(column: Column) -> Any:
    if column.kind.endswith("[]"):
        return []
    return {"str": "", "float": 0.0}.get(column.kind, 0)
