"""Collect the rows of all tables but ``tasks`` and ``edges`` until they are encoded, up to a limit per table.

The recorder's own rows are plain dicts. ``Columns``, the other form of a table's rows, is what agents collect on workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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


class WorkerRows:
    """Collects the few rows of each agent, so that all workers share a batch: a batch costs as much as 50 rows."""

    def __init__(self) -> None:
        self._columns: dict[str, Columns] = {}
        self._dropped: dict[str, int] = {}

    def extend(self, table: str, columns: Columns) -> None:
        """Add columns that ``checked`` returned."""
        known = self._columns.setdefault(table, {name: [] for name in columns})
        rows = len(next(iter(columns.values())))
        if len(next(iter(known.values()))) + rows > MAX_ROWS:
            self._dropped[table] = self._dropped.get(table, 0) + rows
            return
        for name, values in columns.items():
            known[name] += values

    def drain(self) -> Iterator[tuple[str, Columns, int, int]]:
        """Remove all rows. Yield per table: its name, its columns, the number of rows and of dropped rows."""
        all_columns, self._columns = self._columns, {}
        dropped, self._dropped = self._dropped, {}
        for table, columns in all_columns.items():
            yield table, columns, len(next(iter(columns.values()))), dropped.get(table, 0)


MAX_INTEGER = 1 << 63
_TYPES: dict[str, type] = {"time": int, "int": int, "str": str}


def checked(table: str, columns: Mapping[str, Any]) -> Columns:
    """Return the columns of an agent. Raise ValueError if they do not fit: one bad value would cost all workers their rows."""
    if columns.keys() != set(TABLES[table].names) or len({len(values) for values in columns.values()}) != 1:
        raise ValueError(f"columns of {table} are missing or differ in length")
    made: Columns = {}
    for column in TABLES[table].columns:
        values, wanted = columns[column.name], _TYPES.get(column.kind)
        if column.kind == "float":
            made[column.name] = [float(value) for value in values]
            continue
        texts = (text for value in values for text in value) if column.kind == "str[]" else values
        texts = list(texts)
        if any(type(value) is not (wanted or str) for value in texts):
            raise ValueError(f"a value of {table}.{column.name} has a wrong type")
        if wanted is int:
            if any(not -MAX_INTEGER <= value < MAX_INTEGER for value in texts):
                raise ValueError(f"a value of {table}.{column.name} is too large")
        else:
            # Messages between workers and scheduler cannot carry lone surrogates, such as of an undecodable file name.
            "".join(texts).encode()
        made[column.name] = list(values)
    return made


def empty(table: TableDef) -> Columns:
    """Return all columns of a table without rows."""
    return {name: [] for name in table.names}
