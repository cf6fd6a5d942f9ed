"""Frames from plain rows or a table, for whoever makes recordings outside of a scheduler: the importer, a server, tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from daskscope.model.table import Table
from daskscope.model.tables import TABLES, Column
from daskscope.wire.encode import encode_body, seal

#: One row by column name; columns that are not given are empty.
Row = Mapping[str, Any]

#: Rows of one frame; a reader takes no more than 100,000.
FRAME_ROWS = 20_000


def columns_of_rows(table: str, rows: Sequence[Row]) -> dict[str, list[Any]]:
    """All columns of a table, ready for ``encode_body``; what a row does not give is 0, ``""`` or an empty list."""
    definition = TABLES[table]
    unknown = {name for row in rows for name in row} - set(definition.names)
    if unknown:
        raise KeyError(f"{table} has no column {', '.join(sorted(unknown))}")
    return {column.name: [row.get(column.name, _empty(column)) for row in rows] for column in definition.columns}


def frames_of_rows(tables: Mapping[str, Sequence[Row]], *, cluster: str, epoch: int) -> Iterator[bytes]:
    """Sealed frames of all tables that have rows, numbered from 0."""
    sequence = 0
    for table, rows in tables.items():
        for first in range(0, len(rows), FRAME_ROWS):
            part = rows[first : first + FRAME_ROWS]
            body = encode_body(table, columns_of_rows(table, part))
            yield seal(body, cluster=cluster, epoch=epoch, sequence=sequence, kept=first + len(part), dropped=0)
            sequence += 1


def _empty(column: Column) -> Any:
    if column.kind.endswith("[]"):
        return []
    return {"str": "", "float": 0.0}.get(column.kind, 0)


def frames_of_table(
    table: Table, *, cluster: str, epoch: int, sequence: int, kept: int = 0, dropped: int = 0
) -> Iterator[bytes]:
    """Sealed frames of one table, numbered from ``sequence``; the last one says what the writer had ``kept`` and ``dropped``."""
    for first in range(0, table.rows, FRAME_ROWS):
        part = table.take(np.arange(first, min(first + FRAME_ROWS, table.rows)))
        body = encode_body(table.name, {name: part[name].tolist() for name in table.definition.names})
        last = first + part.rows == table.rows
        count = max(first + part.rows, kept if last else 0)
        yield seal(body, cluster=cluster, epoch=epoch, sequence=sequence, kept=count, dropped=dropped if last else 0)
        sequence += 1
