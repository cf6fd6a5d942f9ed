"""Ask questions about recorded tables in SQL: DuckDB over their Parquet files.

A query sees the files it is given and nothing else. DuckDB may not open other files, connect anywhere, load extensions or look at
Python's variables, and its configuration is locked before the query is read. It has limits of memory, time and rows. Which queries
may run at all is in ``sql_check``.

A file's path has the number of its cluster (``tasks/place=3/0.parquet``), whose ID becomes a column of every row. The ID itself may
be longer than a file name, and DuckDB gives some texts in paths a meaning.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
import sys
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, tzinfo
from datetime import time as clock_time
from decimal import Decimal
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from daskscope import units
from daskscope.errors import MissingExtra, WireError
from daskscope.model.columns import TableDef
from daskscope.model.recording import concatenate
from daskscope.model.tables import TABLES
from daskscope.storage.sql.check import CheckedQuery, SqlError, check_query, check_text
from daskscope.wire.decode import read_frame

#: The DuckDB type of each kind of column.
TYPES = {"time": "BIGINT", "int": "BIGINT", "float": "DOUBLE", "str": "VARCHAR"}
#: JavaScript reads larger integers inexactly.
MAX_EXACT = 2**53
MIB = 1024 * 1024
#: Rows that are fetched at once: all of them may be larger than the limit on bytes.
STEP = 500
#: Errors of DuckDB itself. Their messages have stack traces.
INTERNAL = ("InternalException", "FatalException", "SerializationException", "Error")
#: Errors of a file that is missing or damaged, beside others.
UNREADABLE = ("IOException", "InvalidInputException", "PermissionException", "SerializationException")


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
    #: Clusters that the query did not read, because a file is missing or damaged.
    skipped: tuple[str, ...] = ()


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

    def without(self, skipped: Collection[str]) -> SqlFiles:
        """Return the files of all other clusters."""
        names = {place for place, cluster in enumerate(self.clusters) if cluster in skipped}
        paths = {table: [p for p in paths if _place(p) not in names] for table, paths in self.paths.items()}
        return SqlFiles(self.clusters, paths)


def frames_path(path: Path) -> Path:
    """Return where the frames are that a Parquet file is made of, if it does not exist yet."""
    return path.with_suffix(".frames")


def parse_query(query: str) -> CheckedQuery:
    """Return a query that may run, with the recorded tables it reads. Raise ``SqlError`` for any other."""
    duckdb = _duckdb()
    check_text(query)
    with duckdb.connect(":memory:") as connection:
        _lock(connection, (), SqlLimits(threads=1))
        try:
            return check_query(connection, query)
        except duckdb.Error as error:
            raise _refused(error, SqlLimits()) from None


def run_query(query: CheckedQuery, directory: Path, files: SqlFiles, limits: SqlLimits) -> SqlResult:
    """Run a query over the files of each table, which have paths below the directory. Skip clusters with unreadable files."""
    duckdb = _duckdb()
    for table, paths in files.paths.items():
        for path in paths:
            _write_parquet(TABLES[table], directory / path)
    try:
        return _run(duckdb, query, directory, files, limits)
    except duckdb.Error as error:
        bad = _unreadable(duckdb, directory, files) if type(error).__name__ in UNREADABLE else set()
        if not bad:
            raise _refused(error, limits, directory) from None
    try:
        found = _run(duckdb, query, directory, files.without(bad), limits)
    except duckdb.Error as error:
        raise _refused(error, limits, directory) from None
    return replace(found, skipped=tuple(sorted(bad)))


def _write_parquet(table: TableDef, path: Path) -> None:
    """Write a Parquet file from frames, if that is what there is. Damaged ones are left out: compaction reports them."""
    frames = frames_path(path)
    if not frames.exists():
        return
    # Most queries read only files, and pyarrow takes 0.2 s to import.
    from daskscope.storage.runs.parquet import to_parquet

    parts = []
    for frame in msgspec.msgpack.decode(frames.read_bytes(), type=list[bytes]):
        with contextlib.suppress(WireError):
            parts.append(read_frame(frame).table())
    path.write_bytes(to_parquet(concatenate(table, parts)))
    frames.unlink()


def _run(duckdb: Any, query: CheckedQuery, directory: Path, files: SqlFiles, limits: SqlLimits) -> SqlResult:
    known = {table: [str(directory / path) for path in files.paths.get(table, ())] for table in query.tables}
    with duckdb.connect(":memory:") as connection:
        _lock(connection, [path for paths in known.values() for path in paths], limits)
        timer = threading.Timer(limits.seconds, connection.interrupt)
        timer.start()
        try:
            for table in query.tables:
                connection.execute(f'CREATE VIEW "{table}" AS {_view(TABLES[table], known[table], files.clusters)}')
            cursor = connection.execute(query.text)
            columns = tuple(SqlColumn(str(column[0]), str(column[1])) for column in cursor.description or ())
            rows = _rows(cursor, limits)
        finally:
            timer.cancel()
    return SqlResult(columns, rows[: limits.rows], len(rows) > limits.rows)


def _rows(cursor: Any, limits: SqlLimits) -> list[list[Any]]:
    """Return rows as JSON values, and one more than the limit if there are. Refuse too many bytes: few rows may have long texts."""
    made, size = list[list[Any]](), 0
    while len(made) <= limits.rows:
        rows = cursor.fetchmany(min(STEP, limits.rows + 1 - len(made)))
        if not rows:
            break
        for row in rows:
            made.append([_json(value) for value in row])
            size += sum(len(value) if isinstance(value, str) else len(json.dumps(value)) for value in made[-1])
            if size > limits.nbytes:
                raise SqlError(
                    f"The result is larger than {units.nbytes(limits.nbytes)}. Ask for fewer or shorter columns."
                )
    return made


def _unreadable(duckdb: Any, directory: Path, files: SqlFiles) -> set[str]:
    """Return the clusters with files that are missing or damaged."""
    bad = set[str]()
    paths = [path for paths in files.paths.values() for path in paths]
    with duckdb.connect(":memory:") as connection:
        _lock(connection, [str(directory / path) for path in paths], SqlLimits(threads=1))
        for path in paths:
            try:
                connection.execute("SELECT * FROM parquet_file_metadata(?)", [str(directory / path)]).fetchall()
            except duckdb.Error:
                bad.add(files.clusters[_place(path)])
    return bad


def _place(path: str) -> int:
    """Return the number of the cluster that a path has."""
    return int(Path(path).parent.name.removeprefix("place="))


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("duckdb", "sql", "SQL") from None
    if "pytz" not in sys.modules and importlib.util.find_spec("pytz") is None:
        # DuckDB imports it to return times with a zone.
        sys.modules["pytz"] = _utc_only()
    return duckdb


class _Utc(tzinfo):
    """The only time zone of queries, with the methods that DuckDB calls."""

    def utcoffset(self, _: datetime | None) -> timedelta:
        return timedelta(0)

    def dst(self, _: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, _: datetime | None) -> str:
        return "UTC"

    def localize(self, moment: datetime) -> datetime:
        return moment.replace(tzinfo=self)


def _utc_only() -> ModuleType:
    """Return a module that stands in for pytz."""
    module, utc = ModuleType("pytz"), _Utc()
    vars(module).update(utc=utc, UTC=utc, timezone=lambda _: utc)
    return module


def _lock(connection: Any, paths: Sequence[str], limits: SqlLimits) -> None:
    """Take everything away from a connection that a query does not need. The order matters: locked settings stay."""
    for setting in (
        "python_enable_replacements = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "allow_community_extensions = false",
        "TimeZone = 'UTC'",
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


def _refused(error: Exception, limits: SqlLimits, directory: Path | None = None) -> SqlError:
    """Return an error of DuckDB for a user: without paths and stack traces."""
    kind = type(error).__name__
    if kind == "InterruptException":
        return SqlError(f"The query took longer than {limits.seconds:.0f} s. Ask for fewer clusters or a shorter time.")
    if kind == "OutOfMemoryException":
        memory = units.nbytes(limits.memory_nbytes)
        return SqlError(f"The query needs more than {memory} of memory. Ask for fewer rows, columns or clusters.")
    if kind == "PermissionException":
        return SqlError("A query can only read the recorded tables, not files or addresses.")
    if kind in INTERNAL:
        return SqlError("DuckDB failed to run this query. Write it in another way.")
    # Without the excerpt of the query, which takes several lines.
    text = " ".join(re.split(r"\n\nLINE |Traceback \(|Stack Trace", str(error))[0].split())
    if directory is not None and (str(directory) in text or str(directory.resolve()) in text):
        return SqlError("A stored file cannot be read. Look for damaged files with: daskscope doctor")
    return SqlError(text)


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
