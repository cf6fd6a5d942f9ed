"""Insert many rows with one statement that was compiled once.

SQLAlchemy handles every value of every row in Python, which took half of the time of a small commit. Here the driver gets the
rows as they are: SQLite as tuples, PostgreSQL as one array per column, so that any number of rows is one statement with one plan
(``INSERT … SELECT … FROM unnest(…)``) and one round trip.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.engine.interfaces import Dialect

from daskscope.model.untrusted import LARGEST
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.base.database import insert_for
from daskscope.storage.schema import metadata
from daskscope.storage.schema.base import Words, storable

Row = dict[str, Any]
#: Returns the values of a column as the driver takes them.
Clean = Callable[[list[Any]], Any]
#: Adds an ``ON CONFLICT`` clause to an INSERT.
OnConflict = Callable[[Any], Any]


@dataclass(frozen=True)
class Bulk:
    """An INSERT of the given columns of a table."""

    text: str
    columns: tuple[str, ...]
    #: Makes the values of a column storable.
    clean: tuple[Clean, ...]
    #: Values of the statement that are the same for all rows, such as the largest sum.
    constants: dict[str, Any]
    #: Whether the statement takes an array per column instead of a tuple per row.
    takes_arrays: bool

    def execute(self, connection: Connection, rows: Sequence[Row]) -> None:
        columns = [clean([row[name] for row in rows]) for name, clean in zip(self.columns, self.clean, strict=True)]
        if self.takes_arrays:
            connection.exec_driver_sql(self.text, {**dict(zip(self.columns, columns, strict=True)), **self.constants})
        else:
            more = tuple(self.constants.values())
            connection.exec_driver_sql(self.text, [(*row, *more) for row in zip(*columns, strict=True)])


def insert_rows(connection: Connection, table: sa.Table, rows: Sequence[Row]) -> None:
    """Insert rows that all have the same columns."""
    if rows:
        _plain(connection.dialect.name, table.name, tuple(rows[0])).execute(connection, rows)


@cache
def _plain(dialect: str, name: str, columns: tuple[str, ...]) -> Bulk:
    return compile_insert(dialect, metadata.tables[name], columns, lambda statement: statement)


def compile_insert(dialect: str, table: sa.Table, columns: tuple[str, ...], finish: OnConflict) -> Bulk:
    """Return the INSERT of these columns, completed by ``finish``. Rows with the same key must not be inserted together."""
    if dialect == "sqlite":
        compiled = finish(insert_for(dialect, table)).compile(dialect=sqlite.dialect(), column_keys=list(columns))
        order = tuple(compiled.positiontup)
        # The values of the rows come first, then the values of ON CONFLICT.
        assert set(order[: len(columns)]) == set(columns)
        constants = {name: compiled.params[name] for name in order[len(columns) :]}
        kinds = [table.c[name].type for name in order[: len(columns)]]
        clean: tuple[Clean, ...] = tuple(_texts if isinstance(kind, Words) else list for kind in kinds)
        return Bulk(str(compiled), order[: len(columns)], clean, constants, takes_arrays=False)
    rows = given({name: table.c[name].type for name in columns})
    statement = insert_for(dialect, table).from_select(columns, sa.select(*(rows.c[name] for name in columns)))
    compiled = finish(statement).compile(dialect=_psycopg())
    constants = {name: value for name, value in compiled.params.items() if name not in columns}
    text = str(compiled)
    for name in columns:
        if isinstance(table.c[name].type, sa.LargeBinary):
            # As bytes: text would be two digits per byte.
            text = text.replace(f"%({name})s", f"%({name})b")
    clean = tuple(_array_of(table.c[name].type) for name in columns)
    return Bulk(text, columns, clean, constants, takes_arrays=True)


def given(kinds: Mapping[str, Any]) -> Any:
    """Return the rows whose columns are parameters, as a table of PostgreSQL."""
    arrays = [sa.bindparam(name, type_=postgresql.ARRAY(_stored(kind))) for name, kind in kinds.items()]
    return sa.func.unnest(*arrays).table_valued(*kinds).render_derived(name="given")


def among(dialect: str, column: Any, name: str) -> Any:
    """Return the condition that a column has one of the values of the parameter ``name``, for statements that are built once.

    PostgreSQL gets an array and SQLite a JSON array, so that the statement is the same for any number of values.
    """
    if dialect == "sqlite":
        values = sa.func.json_each(sa.bindparam(name, type_=_JsonArray())).table_valued("value")
        return column.in_(sa.select(values.c.value))
    return column == sa.func.any(sa.bindparam(name, type_=postgresql.ARRAY(_stored(column.type))))


class _JsonArray(sa.TypeDecorator[list[Any]]):
    """A list that is sent as a JSON text."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: list[Any] | None, dialect: Dialect) -> str:  # noqa: ARG002 (of the base class)
        return json.dumps(value)


@cache
def _psycopg() -> Dialect:
    # Untyped in SQLAlchemy.
    made: Dialect = import_module("sqlalchemy.dialects.postgresql.psycopg").dialect()
    return made


def _stored(kind: Any) -> Any:
    return sa.Text() if isinstance(kind, Words) else kind


def _texts(values: list[str | None]) -> list[str | None]:
    # Nearly all texts are storable as they are.
    return [value if value is None or (value.isascii() and "\0" not in value) else storable(value) for value in values]


def _array_of(kind: Any) -> Clean:
    """Return values as the text of a PostgreSQL array: the driver would make the array item by item in Python."""
    if isinstance(kind, Words):
        return _text_array
    if isinstance(kind, sa.LargeBinary):
        return list
    return _float_array if isinstance(kind, sa.Float) else _integer_array


def _integer_array(values: list[int | None]) -> str:
    return "{" + ",".join("NULL" if value is None else str(value) for value in values) + "}"


def _float_array(values: list[float | None]) -> str:
    return "{" + ",".join("NULL" if value is None else repr(float(value)) for value in values) + "}"


def _text_array(values: list[str | None]) -> str:
    return "{" + ",".join(map(_quoted, _texts(values))) + "}"


def _quoted(value: str | None) -> str:
    if value is None:
        return "NULL"
    if "\\" in value or '"' in value:
        value = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{value}"'


# The same statements add to roll-up rows, or replace entity rows by newer ones, on both databases.
#
# Statements are built once and cached: building one takes ten times as long as running it.

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
    """Return the sum over the given rows, 0 over none, limited to the largest stored number.

    Add up floats, which are exact up to that number (2⁵³). SQLite's integer sum fails with "integer overflow" if 1,024
    rows have the maximum; PostgreSQL returns a numeric that may not fit into 64 bits.
    """
    return _cut(sa.func.coalesce(sa.func.sum(sa.cast(value, sa.Float)), 0.0))


def greatest_of(value: Any) -> Any:
    """Return the greatest of the given floats as an integer, limited in the same way."""
    return _cut(sa.func.max(value))


def _cut(value: Any) -> Any:
    return sa.cast(sa.case((value > LARGEST, float(LARGEST)), else_=value), sa.BigInteger)
