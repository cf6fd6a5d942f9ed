"""Rows of the tables that are not hot: plain dicts until they are encoded, bounded, counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..model.tables import TABLES

#: Rows of one table that wait for the next flush; more are dropped and counted. At 2 s a flush this is 10,000 rows a second.
LIMIT = 20_000

_EMPTY: dict[str, Any] = {"time": 0, "int": 0, "float": 0.0, "str": ""}


class Rows:
    """Collects rows by table."""

    def __init__(self) -> None:
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._dropped: dict[str, int] = {}

    def add(self, table: str, **row: Any) -> None:
        rows = self._rows.setdefault(table, [])
        if len(rows) < LIMIT:
            rows.append(row)
        else:
            self._dropped[table] = self._dropped.get(table, 0) + 1

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))

    def take(self) -> Iterator[tuple[str, dict[str, list[Any]], int]]:
        """Every table with rows: its columns and how many rows were dropped since the last time."""
        rows, self._rows = self._rows, {}
        dropped, self._dropped = self._dropped, {}
        for table, mine in rows.items():
            yield table, columns(table, mine), dropped.get(table, 0)


def columns(table: str, rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Columns of all the table's names; what a row does not say is empty."""
    return {
        column.name: [row.get(column.name, _EMPTY.get(column.kind, ())) for row in rows]
        for column in TABLES[table].columns
    }
