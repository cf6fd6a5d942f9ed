"""Factories for tests, of daskscope and of its users.

No other package imports this one. Recordings are encoded and decoded by the real wire format, so that a test never sees one
that could not have been written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from daskscope.model.recording import Completeness, Recording, Table, concatenate
from daskscope.model.tables import TABLES
from daskscope.wire.decode import read_frame
from daskscope.wire.file import Row, columns_of_rows, frames_of_rows


def make_columns(table: str, rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Return all columns of a table, ready for ``encode_body``; missing values are 0, ``""`` or an empty list."""
    return columns_of_rows(table, rows)


def make_frames(tables: Mapping[str, Sequence[Row]], *, cluster: str = "test-cluster", epoch: int = 1) -> list[bytes]:
    """Return sealed frames of all tables that have rows, numbered from 0."""
    return list(frames_of_rows(tables, cluster=cluster, epoch=epoch))


def make_recording(
    tables: Mapping[str, Sequence[Row]],
    *,
    source: str = "test",
    completeness: Mapping[str, Completeness] | None = None,
    damage: str = "",
    damaged_bytes: int = 0,
) -> Recording:
    """Return a recording of the given rows, encoded and decoded by the real wire format; complete by default."""
    decoded = _decode(make_frames(tables))
    complete = {name: Completeness(table.rows) for name, table in decoded.items()}
    return Recording(source, decoded, {**complete, **(completeness or {})}, damage, damaged_bytes)


def _decode(frames: Iterable[bytes]) -> dict[str, Table]:
    batches: dict[str, list[Table]] = {}
    for data in frames:
        table = read_frame(data).table()
        batches.setdefault(table.name, []).append(table)
    return {name: concatenate(TABLES[name], tables) for name, tables in batches.items()}


__all__ = ["make_columns", "make_frames", "make_recording"]
