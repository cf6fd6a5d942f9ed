"""Ask questions about recorded tables in SQL: DuckDB over their Parquet files.

A query sees the files it is given and nothing else. DuckDB may not open other files, connect anywhere, load extensions or look at
Python's variables, and its configuration is locked before the query is read. It has limits of memory, time and rows.

A file's path names its cluster (``tasks/cluster=ID/0.parquet``), which becomes a column of every row.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import quote

from daskscope import units
from daskscope.errors import DaskscopeError, MissingExtra
from daskscope.model.columns import TableDef
from daskscope.model.tables import TABLES

#: The DuckDB type of each kind of column.
TYPES = {"time": "BIGINT", "int": "BIGINT", "float": "DOUBLE", "str": "VARCHAR"}
#: JavaScript reads larger integers inexactly.
MAX_EXACT = 2**53
MIB = 1024 * 1024


class SqlError(DaskscopeError):
    """A query is invalid, not allowed, or exceeds a limit."""


@dataclass(frozen=True)
class SqlLimits:
    """What a query may use."""

    seconds: float = 30.0
    memory_nbytes: int = 512 * MIB
    rows: int = 10_000
    threads: int = 2


@dataclass(frozen=True)
class SqlColumn:
    """A column of a result, with its DuckDB type."""

    name: str
    type: str


@dataclass(frozen=True)
class SqlResult:
    """The rows of a query as JSON values."""

    columns: tuple[SqlColumn, ...]
    rows: list[list[Any]]
    #: Whether the query has more rows than the limit.
    is_cut: bool


def file_path(table: str, cluster: str, number: int) -> str:
    """Return where to place a Parquet file of a cluster, below the directory of a query."""
    return f"{table}/cluster={quote(cluster, safe='')}/{number}.parquet"


def tables_of(query: str) -> set[str]:
    """Return the recorded tables that a query reads. Raise ``SqlError`` unless it is one SELECT."""
    duckdb = _duckdb()
    with duckdb.connect(":memory:") as connection:
        _lock(connection, (), SqlLimits())
        try:
            (text,) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchone()
        except duckdb.Error as error:
            raise _refused(error, SqlLimits()) from None
    parsed = json.loads(text)
    if parsed["error"] and parsed["error_type"] == "parser":
        raise SqlError(f"The query is not valid: {' '.join(parsed['error_message'].split())}.")
    if parsed["error"] or len(parsed["statements"]) != 1:
        raise SqlError("Give one SELECT statement. Recordings cannot be changed.")
    return {name.lower() for name in _table_names(parsed)} & TABLES.keys()


def _table_names(node: Any) -> Iterator[str]:
    """Yield the names of the tables in a parsed query."""
    if isinstance(node, dict):
        if node.get("type") == "BASE_TABLE":
            yield str(node["table_name"])
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from _table_names(part)


def run_query(query: str, directory: Path, files: Mapping[str, Sequence[str]], limits: SqlLimits) -> SqlResult:
    """Run one SELECT over the files of each table, which have paths below the directory."""
    duckdb = _duckdb()
    known = {table: [str(directory / path) for path in files.get(table, ())] for table in tables_of(query)}
    with duckdb.connect(":memory:") as connection:
        _lock(connection, [path for paths in known.values() for path in paths], limits)
        timer = threading.Timer(limits.seconds, connection.interrupt)
        timer.start()
        try:
            for table in TABLES:
                connection.execute(f'CREATE VIEW "{table}" AS {_view(TABLES[table], known.get(table, ()))}')
            cursor = connection.execute(query)
            columns = tuple(SqlColumn(str(column[0]), str(column[1])) for column in cursor.description or ())
            rows = cursor.fetchmany(limits.rows + 1)
        except duckdb.Error as error:
            raise _refused(error, limits) from None
        finally:
            timer.cancel()
    return SqlResult(columns, [[_json(value) for value in row] for row in rows[: limits.rows]], len(rows) > limits.rows)


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("duckdb", "sql", "SQL") from None
    return duckdb


def _lock(connection: Any, paths: Sequence[str], limits: SqlLimits) -> None:
    """Take everything away from a connection that a query does not need. The order matters: locked settings stay."""
    for setting in (
        "python_enable_replacements = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "allow_community_extensions = false",
        f"memory_limit = '{limits.memory_nbytes // MIB}MiB'",
        f"threads = {limits.threads}",
        # It would write what does not fit into memory.
        "temp_directory = ''",
        f"allowed_paths = {_list(paths)}",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


def _list(texts: Sequence[str]) -> str:
    return "[" + ", ".join("'" + text.replace("'", "''") + "'" for text in texts) + "]"


def _view(definition: TableDef, paths: Sequence[str]) -> str:
    """Return the query of a table's view: all columns of the definition, also those that no file has."""
    columns = _columns(definition)
    nothing = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in columns)
    empty = f"SELECT {nothing} WHERE false"
    if not paths:
        return empty
    # The path of a cluster's own table names it once more.
    hive = "hive_partitioning = false" if "cluster" in definition.names else (
        "hive_partitioning = true, hive_types = {'cluster': VARCHAR}"
    )  # fmt: skip
    found = f"SELECT * FROM read_parquet({_list(paths)}, union_by_name = true, {hive})"
    names = ", ".join(f'"{name}"' for name, _ in columns)
    return f"SELECT {names} FROM ({empty} UNION ALL BY NAME {found}){_latest(definition)}"


def _latest(definition: TableDef) -> str:
    """Keep the last row of an entity, as readers of recordings do: files and rows that are not compacted yet may both have it."""
    if not definition.key:
        return ""
    keys = ", ".join(f'"{name}"' for name in dict.fromkeys(("cluster", *definition.key)))
    return f' QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY "{definition.time}" DESC) = 1'


def _columns(definition: TableDef) -> list[tuple[str, str]]:
    """Return the columns of a table with their types. All have the cluster."""
    columns = [(column.name, _type(column.kind)) for column in definition.columns]
    return columns if "cluster" in definition.names else [("cluster", "VARCHAR"), *columns]


def _type(kind: str) -> str:
    return f"{TYPES[kind[:-2]]}[]" if kind.endswith("[]") else TYPES[kind]


def _refused(error: Exception, limits: SqlLimits) -> SqlError:
    kind = type(error).__name__
    if kind == "InterruptException":
        return SqlError(f"The query took longer than {limits.seconds:.0f} s. Ask for fewer clusters or a shorter time.")
    if kind == "OutOfMemoryException":
        memory = units.nbytes(limits.memory_nbytes)
        return SqlError(f"The query needs more than {memory} of memory. Ask for fewer rows, columns or clusters.")
    if kind == "PermissionException":
        return SqlError("A query can only read the recorded tables, not files or addresses.")
    # Without the picture of the place, which needs several lines.
    return SqlError(" ".join(str(error).partition("\n\nLINE ")[0].split()))


def _json(value: Any) -> Any:
    """Return a value of DuckDB as one that JSON has."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_EXACT else str(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Decimal):
        return _json(int(value)) if value == value.to_integral_value() else float(value)
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _json(item) for name, item in value.items()}
    if isinstance(value, datetime | date | clock_time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.hex() if isinstance(value, bytes) else str(value)
