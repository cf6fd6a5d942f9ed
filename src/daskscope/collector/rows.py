"""Rows of the tables that are not hot: plain dicts until they are encoded, bounded, counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..model.tables import TABLES

#: Rows of one table that wait for the next flush; more are dropped and counted. At 2 s a flush this is 10,000 rows a second.
LIMIT = 20_000

_EMPTY: dict[str, Any] = {"time": 0, "int": 0, "float": 0.0, "str": ""}

#: A row, or what makes it where that takes long: called off the event loop.
Row = dict[str, Any] | Callable[[], dict[str, Any]]


class Rows:
    """Collects rows by table."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Row]] = {}
        self._dropped: dict[str, int] = {}

    def add(self, table: str, **row: Any) -> None:
        self.later(table, row)

    def later(self, table: str, row: Row) -> None:
        """Add a row that is only made when it is encoded."""
        rows = self._rows.setdefault(table, [])
        if len(rows) < LIMIT:
            rows.append(row)
        else:
            self._dropped[table] = self._dropped.get(table, 0) + 1

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))

    def take(self) -> Iterator[tuple[str, Callable[[], dict[str, list[Any]]], int, int]]:
        """Every table with rows: what makes its columns, how many rows, and how many were dropped since the last time."""
        rows, self._rows = self._rows, {}
        dropped, self._dropped = self._dropped, {}
        for table, mine in rows.items():
            yield table, partial(columns, table, mine), len(mine), dropped.get(table, 0)


def columns(table: str, rows: list[Row]) -> dict[str, list[Any]]:
    """Columns of all the table's names; what a row does not say is empty. 20,000 rows take 30 ms: not on the event loop."""
    made = [row() if callable(row) else row for row in rows]
    return {column.name: _values(column.name, column.kind, made) for column in TABLES[table].columns}


def _values(name: str, kind: str, rows: list[dict[str, Any]]) -> list[Any]:
    empty = _EMPTY.get(kind, ())
    values = [row.get(name, empty) for row in rows]
    if kind == "str":
        # One value that is no text would make a batch that no reader takes.
        return [value if type(value) is str else str(value) for value in values]
    return values
