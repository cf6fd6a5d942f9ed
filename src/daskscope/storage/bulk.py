"""Insert many rows with one statement that was compiled once.

SQLAlchemy handles every value of every row in Python, which took half of the time of a small commit. Here the driver gets the
rows as they are: SQLite as tuples, PostgreSQL as one array per column, so that any number of rows is one statement with one plan
(``INSERT … SELECT … FROM unnest(…)``) and one round trip.
"""

from __future__ import annotations

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

from daskscope.storage.database import insert_for
from daskscope.storage.schema import metadata
from daskscope.storage.schema.base import Words, storable

Row = dict[str, Any]
#: Returns the values of a column as the driver takes them.
Clean = Callable[[list[Any]], Any]
#: Adds an ``ON CONFLICT`` clause to an INSERT.
OnConflict = Callable[[Any], Any]


@dataclass(frozen=True)
class Bulk:
    """An INSERT of some columns of a table."""

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
        # The values of the rows come first, then those of ON CONFLICT.
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
    """Return what makes an array of PostgreSQL of values: its text, because the driver makes one item by item in Python."""
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
