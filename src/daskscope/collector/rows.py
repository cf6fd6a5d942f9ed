"""Collect the rows of all tables but ``tasks`` and ``edges``: plain dicts until they are encoded, up to a limit per table.

``Columns``, the other form of a table's rows, is what agents collect on workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..model.columns import TableDef
from ..model.tables import TABLES

#: Rows of one table that may wait for the next flush; more are dropped and counted. With a flush every 2 s this is 10,000 rows/s.
MAX_ROWS = 20_000

_EMPTY: dict[str, Any] = {"time": 0, "int": 0, "float": 0.0, "str": ""}

#: A row, or a function that makes a costly row off the event loop.
Row = dict[str, Any] | Callable[[], dict[str, Any]]

#: Column name -> values; every list has the same length, ``str[]`` columns hold a list or tuple of str per row.
Columns = dict[str, list[Any]]


class Rows:
    """Collects rows by table."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Row]] = {}
        self._dropped: dict[str, int] = {}

    def add(self, table: str, **row: Any) -> None:
        self.add_lazy(table, row)

    def add_lazy(self, table: str, row: Row) -> None:
        """Add a row; if it is a function, it is called when the row is encoded."""
        rows = self._rows.setdefault(table, [])
        if len(rows) < MAX_ROWS:
            rows.append(row)
        else:
            self._dropped[table] = self._dropped.get(table, 0) + 1

    def drain(self) -> Iterator[tuple[str, Callable[[], Columns], int, int]]:
        """Remove all rows. Yield per table: its name, a function that makes its columns, the number of rows and of dropped rows."""
        all_rows, self._rows = self._rows, {}
        dropped, self._dropped = self._dropped, {}
        for table, rows in all_rows.items():
            yield table, partial(columns, table, rows), len(rows), dropped.get(table, 0)


def columns(table: str, rows: list[Row]) -> Columns:
    """Return rows as columns; values missing in a row are empty. 20,000 rows take 30 ms: do not call it on the event loop."""
    made = [row() if callable(row) else row for row in rows]
    return {column.name: _values(column.name, column.kind, made) for column in TABLES[table].columns}


def _values(name: str, kind: str, rows: list[dict[str, Any]]) -> list[Any]:
    empty = _EMPTY.get(kind, ())
    values = [row.get(name, empty) for row in rows]
    if kind == "str":
        # A single value that is not text would make the whole batch unreadable.
        return [value if type(value) is str else str(value) for value in values]
    return values


def empty(table: TableDef) -> Columns:
    """Return all columns of a table without rows."""
    return {name: [] for name in table.names}
