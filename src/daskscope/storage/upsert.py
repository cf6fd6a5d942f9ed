"""Add to roll-up rows, or replace entities' rows by newer ones: the same statements on both databases.

Statements are built once and kept: putting one together takes ten times as long as running it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.database import insert_for
from daskscope.storage.sums import saturated

Row = dict[str, Any]
Names = tuple[str, ...]


def accumulate(
    connection: Connection,
    table: sa.Table,
    rows: Sequence[Row],
    *,
    least: Names = (),
    greatest: Names = (),
    keep: Names = (),
) -> None:
    """Add ``rows`` to the table's sums; ``least`` and ``greatest`` columns keep the extreme, ``keep`` what was there first.

    0 is no value: it never wins as the least. NULL is none either: it is not kept where there is something.
    """
    if rows:
        statement = _accumulating(connection.dialect.name, table.name, tuple(rows[0]), least, greatest, keep)
        connection.execute(statement, _ordered(table, rows))


@functools.cache
def _accumulating(dialect: str, name: str, columns: Names, least: Names, greatest: Names, keep: Names) -> Any:
    table = schema.metadata.tables[name]
    statement = insert_for(dialect, table)
    new = statement.excluded
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


def replace_older(connection: Connection, table: sa.Table, rows: Sequence[Row], newer: str = "seen_us") -> None:
    """Put rows in place of the ones with the same key, unless those are newer: batches may come in any order."""
    if rows:
        statement = _replacing(connection.dialect.name, table.name, tuple(rows[0]), newer)
        connection.execute(statement, _ordered(table, rows))


@functools.cache
def _replacing(dialect: str, name: str, columns: Names, newer: str) -> Any:
    table = schema.metadata.tables[name]
    statement = insert_for(dialect, table)
    changes = {column: statement.excluded[column] for column in columns if not table.c[column].primary_key}
    return statement.on_conflict_do_update(
        index_elements=_key(table), set_=changes, where=statement.excluded[newer] >= table.c[newer]
    )


def _key(table: sa.Table) -> list[str]:
    return [column.name for column in table.primary_key]


def _ordered(table: sa.Table, rows: Sequence[Row]) -> list[Row]:
    """By key: two servers that lock the same rows in the same order cannot block each other."""
    names = _key(table)
    return sorted(rows, key=lambda row: tuple(row[name] for name in names))
