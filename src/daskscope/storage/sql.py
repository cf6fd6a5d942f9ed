"""Ask questions about recorded tables in SQL: DuckDB over their Parquet files.

A query sees the files it is given and nothing else. DuckDB may not open other files, connect anywhere, load extensions or look at
Python's variables, and its configuration is locked before the query is read. It has limits of memory, time and rows.

A file's path has the number of its cluster (``tasks/place=3/0.parquet``), whose ID becomes a column of every row. The ID itself may
be longer than a file name, and DuckDB gives some texts in paths a meaning.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any

from daskscope import units
from daskscope.errors import DaskscopeError, MissingExtra
from daskscope.model.columns import TableDef
from daskscope.model.tables import TABLES

#: The DuckDB type of each kind of column.
TYPES = {"time": "BIGINT", "int": "BIGINT", "float": "DOUBLE", "str": "VARCHAR"}
#: JavaScript reads larger integers inexactly.
MAX_EXACT = 2**53
MIB = 1024 * 1024
#: Functions whose arguments name tables, which would be read without being given.
HIDING = frozenset({"query", "query_table"})


class SqlError(DaskscopeError):
    """A query is invalid, not allowed, or exceeds a limit."""


@dataclass(frozen=True)
class SqlLimits:
    """Limits of a query."""

    seconds: float = 30.0
    memory_nbytes: int = 512 * MIB
    rows: int = 10_000
    #: Of the result as JSON.
    nbytes: int = 32 * MIB
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


@dataclass
class SqlFiles:
    """Parquet files of tables, by paths below the directory of a query, and the clusters whose numbers the paths have."""

    clusters: list[str] = field(default_factory=list)
    paths: dict[str, list[str]] = field(default_factory=dict)

    def add(self, table: str, cluster: str) -> str:
        """Return the path of another file of a cluster."""
        if cluster not in self.clusters[-1:]:
            self.clusters.append(cluster)
        mine = self.paths.setdefault(table, [])
        mine.append(f"{table}/place={len(self.clusters) - 1}/{len(mine)}.parquet")
        return mine[-1]


def tables_of(query: str) -> set[str]:
    """Return the recorded tables that a query reads. Raise ``SqlError`` unless it is one SELECT."""
    duckdb = _duckdb()
    with duckdb.connect(":memory:") as connection:
        _lock(connection, (), SqlLimits())
        try:
            (text,) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchone()
        except duckdb.Error as error:
            raise _refused(error, SqlLimits()) from None
    try:
        parsed = json.loads(text)
        names, functions = _names(parsed, "BASE_TABLE", "table_name"), _names(parsed, "FUNCTION", "function_name")
    except RecursionError:
        raise SqlError("The query is nested too deeply.") from None
    if parsed["error"] and parsed["error_type"] == "parser":
        raise SqlError(f"The query is not valid: {' '.join(parsed['error_message'].split())}.")
    if parsed["error"] or len(parsed["statements"]) != 1:
        raise SqlError("Give one SELECT statement. Recordings cannot be changed.")
    if functions & HIDING:
        raise SqlError("query() and query_table() are not available: name the tables in FROM.")
    return names & TABLES.keys()


def _names(node: Any, kind: str, name: str) -> set[str]:
    """Return the names in all nodes of a kind of a parsed query."""
    found: set[str] = set()
    if isinstance(node, dict):
        if node.get("type") == kind:
            found.add(str(node.get(name, "")).lower())
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            found |= _names(part, kind, name)
    return found


def run_query(query: str, directory: Path, files: SqlFiles, limits: SqlLimits) -> SqlResult:
    """Run one SELECT over the files of each table, which have paths below the directory."""
    duckdb = _duckdb()
    known = {table: [str(directory / path) for path in files.paths.get(table, ())] for table in tables_of(query)}
    with duckdb.connect(":memory:") as connection:
        _lock(connection, [path for paths in known.values() for path in paths], limits)
        timer = threading.Timer(limits.seconds, connection.interrupt)
        timer.start()
        try:
            for table in TABLES:
                connection.execute(
                    f'CREATE VIEW "{table}" AS {_view(TABLES[table], known.get(table, ()), files.clusters)}'
                )
            cursor = connection.execute(query)
            columns = tuple(SqlColumn(str(column[0]), str(column[1])) for column in cursor.description or ())
            rows = cursor.fetchmany(limits.rows + 1)
        except duckdb.Error as error:
            raise _refused(error, limits) from None
        finally:
            timer.cancel()
    return SqlResult(columns, _limited(rows[: limits.rows], limits.nbytes), len(rows) > limits.rows)


def _limited(rows: Sequence[Sequence[Any]], nbytes: int) -> list[list[Any]]:
    """Return rows as JSON values. Refuse a result with too many bytes: few rows may have very long texts."""
    made, size = [], 0
    for row in rows:
        made.append([_json(value) for value in row])
        size += sum(len(value) if isinstance(value, str) else len(json.dumps(value)) for value in made[-1])
        if size > nbytes:
            raise SqlError(f"The result is larger than {units.nbytes(nbytes)}. Ask for fewer or shorter columns.")
    return made


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
        # No spilling: DuckDB would write to the server's disk.
        "temp_directory = ''",
        f"allowed_paths = {_list(paths)}",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


def _list(texts: Sequence[str]) -> str:
    return "[" + ", ".join("'" + text.replace("'", "''") + "'" for text in texts) + "]"


def _view(definition: TableDef, paths: Sequence[str], clusters: Sequence[str]) -> str:
    """Return the query of a table's view: all columns of the definition, also those that no file has."""
    columns = _columns(definition)
    nothing = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in columns)
    empty = f"SELECT {nothing} WHERE false"
    if not paths:
        return empty
    cluster = "" if "cluster" in definition.names else f", ({_list(clusters)})[place + 1] AS cluster"
    hive = "hive_partitioning = true, hive_types = {'place': BIGINT}"
    found = f"SELECT * EXCLUDE (place){cluster} FROM read_parquet({_list(paths)}, union_by_name = true, {hive})"
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
    # Without the excerpt of the query, which takes several lines.
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
