"""Add to roll-up rows, or replace entity rows by newer ones, with the same statements on both databases.

Statements are built once and cached: building one takes ten times as long as running it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from daskscope.analysis.limits import LARGEST
from daskscope.storage import schema
from daskscope.storage.archive import Transaction
from daskscope.storage.bulk import Bulk, Row, compile_insert

Names = tuple[str, ...]


def accumulate(
    tx: Transaction, table: sa.Table, rows: Sequence[Row], *, least: Names = (), greatest: Names = (), keep: Names = ()
) -> None:
    """Add ``rows`` to the table's sums. ``least`` and ``greatest`` columns keep the extreme, ``keep`` the first value.

    0 and NULL are not values: 0 never wins as the least, and NULL is not kept if there is a value.
    """
    if rows:
        bulk = _accumulating(tx.connection.dialect.name, table.name, tuple(rows[0]), least, greatest, keep)
        bulk.execute(tx.connection, _ordered(table, rows))


@functools.cache
def _accumulating(dialect: str, name: str, columns: Names, least: Names, greatest: Names, keep: Names) -> Bulk:
    table = schema.metadata.tables[name]
    return compile_insert(dialect, table, columns, lambda statement: _adding(statement, columns, least, greatest, keep))


def _adding(statement: Any, columns: Names, least: Names, greatest: Names, keep: Names) -> Any:
    table, new = statement.table, statement.excluded
    changes: dict[str, Any] = {}
    for column in (table.c[column] for column in columns):
        mine = new[column.name]
        if column.primary_key or (column.name in keep and not column.nullable):
            continue
        if column.name in keep:
            changes[column.name] = sa.func.coalesce(column, mine)
            continue
        if column.name in least:
            changes[column.name] = sa.case((sa.and_(mine > 0, sa.or_(column == 0, mine < column)), mine), else_=column)
        elif column.name in greatest:
            changes[column.name] = sa.case((mine > column, mine), else_=column)
        else:
            changes[column.name] = saturated(column, mine)
    return statement.on_conflict_do_update(index_elements=_key(table), set_=changes)


def replace_older(tx: Transaction, table: sa.Table, rows: Sequence[Row], newer: str = "seen_us") -> None:
    """Replace rows with the same key unless they are newer: batches may arrive in any order."""
    if rows:
        bulk = _replacing(tx.connection.dialect.name, table.name, tuple(rows[0]), newer)
        bulk.execute(tx.connection, _ordered(table, rows))


@functools.cache
def _replacing(dialect: str, name: str, columns: Names, newer: str) -> Bulk:
    table = schema.metadata.tables[name]

    def finish(statement: Any) -> Any:
        new = statement.excluded
        changes = {column: new[column] for column in columns if not table.c[column].primary_key}
        return statement.on_conflict_do_update(
            index_elements=_key(table), set_=changes, where=new[newer] >= table.c[newer]
        )

    return compile_insert(dialect, table, columns, finish)


def _key(table: sa.Table) -> list[str]:
    return [column.name for column in table.primary_key]


def _ordered(table: sa.Table, rows: Sequence[Row]) -> list[Row]:
    """Sort by key: two servers that lock the same rows in the same order cannot deadlock."""
    names = _key(table)
    return sorted(rows, key=lambda row: tuple(row[name] for name in names))


def saturated(column: Any, mine: Any) -> Any:
    """Return a column plus an increment, limited to the largest stored number."""
    if isinstance(column.type, sa.Float):
        return column + mine
    return sa.case((column > LARGEST - mine, LARGEST), else_=column + mine)


def summed(value: Any) -> Any:
    """Return the sum over some rows, 0 over none, limited to the largest stored number.

    Add up floats, which are exact up to that number (2⁵³). SQLite's integer sum fails with "integer overflow" if 1,024
    rows have the maximum; PostgreSQL returns a numeric that may not fit into 64 bits.
    """
    return _cut(sa.func.coalesce(sa.func.sum(sa.cast(value, sa.Float)), 0.0))


def greatest_of(value: Any) -> Any:
    """Return the greatest of some floats as an integer, limited in the same way."""
    return _cut(sa.func.max(value))


def _cut(value: Any) -> Any:
    return sa.cast(sa.case((value > LARGEST, float(LARGEST)), else_=value), sa.BigInteger)
