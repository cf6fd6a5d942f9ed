"""Check and run one SQL query in a process of its own, which has no credentials and limits on its memory and CPU time.

DuckDB runs what users write. Whatever it may do wrong, it does in a process that knows neither the database nor the keys, and that
can be ended. That includes parsing: the server itself never looks into a query.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from daskscope.errors import DaskscopeError
from daskscope.server.processes.child import Child, ChildProcesses, limit_memory, limit_time, reply_to_jobs
from daskscope.storage.sql.check import CheckedQuery, SqlError
from daskscope.storage.sql.query import SqlFiles, SqlLimits, parse_query, run_query

logger = logging.getLogger("daskscope.server")

Reply = TypeVar("Reply")
MODULE = "daskscope.server.processes.sql"
#: Added to the limits of a query: Python, DuckDB itself, and starting them.
PROCESS_NBYTES = 256 * 1024 * 1024
START_S = 10.0
#: CPU seconds to import DuckDB and to parse a query. A query of 20 kB takes 0.05 s.
PARSE_S = 4.0
TOO_MUCH = "The query needed too much time or memory. Ask for fewer clusters or a shorter time."
#: The only variables of the environment that the process gets. Others may be credentials.
ENVIRONMENT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR")


class SqlJob(msgspec.Struct, frozen=True, tag="query"):
    """A query to check, and the limits of this process."""

    query: str
    seconds: float
    memory_nbytes: int
    rows: int
    nbytes: int


class FilesJob(msgspec.Struct, frozen=True, tag="files"):
    """The files that the query before may read: then it is run."""

    directory: str
    clusters: list[str]
    paths: dict[str, list[str]]


class TablesReply(msgspec.Struct, frozen=True):
    """The tables that a query reads, or why it may not run."""

    tables: list[str] = []
    error: str = ""


class SqlReply(msgspec.Struct, frozen=True):
    """The result of a query, or the error."""

    columns: list[tuple[str, str]] = []
    #: As JSON: the server passes up to 32 MiB of rows on without decoding them.
    rows: msgspec.Raw = msgspec.Raw(b"[]")
    is_cut: bool = False
    skipped: tuple[str, ...] = ()
    error: str = ""


class SqlProcess:
    """A process that checks queries and runs them, one at a time."""

    def __init__(self, child: Child, limits: SqlLimits) -> None:
        self._child = child
        self._limits = limits

    def tables_of(self, query: str) -> set[str]:
        """Return the recorded tables that a query reads. Raise ``SqlError`` if it may not run."""
        limits = self._limits
        reply = self._ask(SqlJob(query, limits.seconds, limits.memory_nbytes, limits.rows, limits.nbytes), TablesReply)
        if reply.error:
            raise SqlError(reply.error)
        return set(reply.tables)

    def run(self, directory: Path, files: SqlFiles) -> SqlReply:
        """Return the result of the query that was checked."""
        reply = self._ask(FilesJob(str(directory), files.clusters, files.paths), SqlReply)
        if reply.error:
            raise SqlError(reply.error)
        return reply

    def _ask(self, job: SqlJob | FilesJob, reply: type[Reply]) -> Reply:
        text = self._child.read_line() if self._child.send(job) else b""
        try:
            return msgspec.json.decode(text, type=reply)
        except msgspec.DecodeError:
            raise SqlError(TOO_MUCH) from None


@contextmanager
def sql_process(processes: ChildProcesses, directory: Path, limits: SqlLimits) -> Iterator[SqlProcess]:
    """Start a process for one query. Its time limit includes checking the query and placing its files."""
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    with processes.start(MODULE, limits.seconds + START_S, environment, directory) as child:
        if child is None:
            raise SqlError("The server is shutting down. Try again in a minute.")
        yield SqlProcess(child, limits)


class _Server:
    """The other side of ``SqlProcess``."""

    def __init__(self) -> None:
        self._limits = SqlLimits()
        self._query: CheckedQuery | None = None

    def reply(self, line: bytes) -> TablesReply | SqlReply:
        job = msgspec.json.decode(line, type=SqlJob | FilesJob)
        kind = TablesReply if isinstance(job, SqlJob) else SqlReply
        try:
            return self._check(job) if isinstance(job, SqlJob) else self._run(job)
        except DaskscopeError as error:
            return kind(error=str(error))
        except (MemoryError, RecursionError):
            return kind(error="The query needs too much memory. Ask for fewer rows, columns or clusters.")
        except Exception as error:  # noqa: BLE001 (its text may have paths)
            logger.warning("a query failed: %r", error)
            return kind(error="This query cannot be run. Write it in another way.")

    def _check(self, job: SqlJob) -> TablesReply:
        self._query = None
        self._limits = SqlLimits(job.seconds, job.memory_nbytes, job.rows, job.nbytes, threads=1)
        limit_memory(job.memory_nbytes + PROCESS_NBYTES)
        limit_time(PARSE_S)
        self._query = parse_query(job.query)
        return TablesReply(sorted(self._query.tables))

    def _run(self, job: FilesJob) -> SqlReply:
        if self._query is None:
            raise SqlError("This query cannot be run.")
        limit_time(self._limits.seconds + PARSE_S)
        result = run_query(self._query, Path(job.directory), SqlFiles(job.clusters, job.paths), self._limits)
        columns = [(column.name, column.type) for column in result.columns]
        rows = msgspec.Raw(msgspec.json.encode(result.rows))
        return SqlReply(columns, rows, result.is_cut, result.skipped)


if __name__ == "__main__":
    reply_to_jobs(_Server().reply)
