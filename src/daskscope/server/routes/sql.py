"""SQL over the rows of all runs of an account."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated, TypedDict, cast

import msgspec

from daskscope.model.columns import Column, TableDef
from daskscope.model.tables import TABLES
from daskscope.server.errors import Refusal
from daskscope.server.http.parameters import Text
from daskscope.server.http.routing import Call, Route
from daskscope.server.processes.sql import PROCESS_NBYTES, SqlReply, sql_process
from daskscope.storage.runs.ingest import SECRET
from daskscope.storage.runs.read import ATTEMPTS
from daskscope.storage.sql.check import MAX_QUERY, SqlError
from daskscope.storage.sql.files import PlacedFiles, SqlFilter, place_files
from daskscope.storage.sql.query import SqlLimits


class SqlResultColumn(TypedDict):
    """A column of a result, with its DuckDB type."""

    name: str
    type: str


class SqlAnswer(TypedDict):
    """The rows of a query."""

    columns: list[SqlResultColumn]
    rows: list[list[object]]
    #: Whether there are more rows.
    is_cut: bool
    #: The clusters that the query read, and all that match its filters.
    clusters: int
    all_clusters: int
    #: The first clusters that the query did not read, because a file of theirs is missing or damaged, and how many there are.
    skipped: list[str]
    skipped_clusters: int
    seconds: float


class SqlTableColumn(TypedDict):
    """A column that queries can use."""

    name: str
    kind: str
    meaning: str


class SqlTable(TypedDict):
    """A table that queries can read."""

    name: str
    row: str
    columns: list[SqlTableColumn]


class SqlTables(TypedDict):
    """All tables that queries can read."""

    tables: list[SqlTable]


#: Maximum names of skipped clusters in a reply.
MAX_SKIPPED = 20
MAX_DAYS = 36_500
DAY_US = 86_400_000_000


class SqlBody(msgspec.Struct, forbid_unknown_fields=True):
    query: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_QUERY)]
    #: Only this cluster; empty for all.
    cluster: Text = ""
    #: Only clusters of this many days; 0 for all.
    days: Annotated[float, msgspec.Meta(ge=0, le=MAX_DAYS)] = 0.0


def run_sql(call: Call) -> SqlAnswer:
    """Run a query and return its rows."""
    began = time.monotonic()
    try:
        result, placed = _run(call, call.body)
    except SqlError as error:
        raise Refusal(400, "sql", str(error)) from None
    skipped = sorted({*placed.missing.values(), *result.skipped})
    return {
        "columns": [{"name": name, "type": kind} for name, kind in result.columns],
        "rows": cast("list[list[object]]", result.rows),
        "is_cut": result.is_cut,
        "clusters": placed.runs,
        "all_clusters": placed.all_runs,
        "skipped": skipped[:MAX_SKIPPED],
        "skipped_clusters": len(skipped),
        "seconds": round(time.monotonic() - began, 3),
    }


def _run(call: Call, body: SqlBody) -> tuple[SqlReply, PlacedFiles]:
    services = call.services
    since_us = call.now_us - round(body.days * DAY_US) if body.days else 0
    wanted = SqlFilter(since_us, body.cluster)
    limits = SqlLimits()
    with services.build_memory.reserve(limits.memory_nbytes + PROCESS_NBYTES, call.account.id):
        for attempt in range(ATTEMPTS):
            with tempfile.TemporaryDirectory(prefix="daskscope-sql-") as name:
                directory = Path(name)
                with sql_process(services.child_processes, directory, limits) as process:
                    tables = process.tables_of(body.query)
                    placed = place_files(services.archive, call.account.id, tables, wanted, directory)
                    result = process.run(placed.directory, placed.files)
                # Files of the store are linked, and a compaction may join and delete them meanwhile.
                if not result.skipped or placed.is_complete or attempt == ATTEMPTS - 1:
                    break
    return result, placed


def _columns(table: TableDef) -> tuple[Column, ...]:
    """Return the columns that a query sees: every row names its cluster."""
    cluster = TABLES["clusters"].by_name["cluster"]
    return table.columns if "cluster" in table.names else (cluster, *table.columns)


def list_tables(_: Call) -> SqlTables:
    """Return the tables that queries can read."""
    return {
        "tables": [
            {
                "name": table.name,
                "row": table.row,
                "columns": [{"name": c.name, "kind": c.kind, "meaning": c.meaning} for c in _columns(table)],
            }
            for table in TABLES.values()
            if table.name not in SECRET
        ]
    }


ROUTES = [
    Route("POST", "/api/v1/sql", run_sql, "read", "Run a SQL query over all clusters", body=SqlBody, heavy=True),
    Route("GET", "/api/v1/sql/tables", list_tables, "read", "List the tables and columns that queries can read"),
]
