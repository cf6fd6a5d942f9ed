"""Run one SQL query in a process of its own, which has no credentials and a limit on its memory.

DuckDB runs what users write. Whatever it may do wrong, it does in a process that knows neither the database nor the keys, and that
can be ended.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from daskscope.errors import DaskscopeError
from daskscope.server.child_main import run_job
from daskscope.server.child_processes import ChildProcesses
from daskscope.storage.sql import SqlColumn, SqlError, SqlFiles, SqlLimits, SqlResult, run_query

MODULE = "daskscope.server.sql_process"
#: Added to the limits of a query: Python, DuckDB itself, and starting them.
PROCESS_NBYTES = 512 * 1024 * 1024
START_S = 10.0
#: The only variables of the environment that the process gets. Others may be credentials.
ENVIRONMENT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR")


class SqlJob(msgspec.Struct, frozen=True):
    """A query, and the files it may read."""

    query: str
    directory: str
    clusters: list[str]
    paths: dict[str, list[str]]
    seconds: float
    memory_nbytes: int
    rows: int


class SqlReply(msgspec.Struct, frozen=True):
    """The result of a query, or the error."""

    columns: list[tuple[str, str]] = []
    rows: list[list[Any]] = []
    is_cut: bool = False
    error: str = ""


def query_in_process(
    processes: ChildProcesses, query: str, directory: Path, files: SqlFiles, limits: SqlLimits
) -> SqlResult:
    """Return the result of a query that runs in another process."""
    job = SqlJob(query, str(directory), files.clusters, files.paths, limits.seconds, limits.memory_nbytes, limits.rows)
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    ended = processes.run(MODULE, job, limits.seconds + START_S, environment, directory)
    if ended is None:
        raise SqlError("The server is shutting down. Try again in a minute.")
    try:
        reply = msgspec.json.decode(ended[0], type=SqlReply)
    except msgspec.DecodeError:
        raise SqlError("The query needed too much time or memory. Ask for fewer clusters or a shorter time.") from None
    if reply.error:
        raise SqlError(reply.error)
    return SqlResult(tuple(SqlColumn(*column) for column in reply.columns), reply.rows, reply.is_cut)


def _reply(job: SqlJob) -> SqlReply:
    limits, files = SqlLimits(job.seconds, job.memory_nbytes, job.rows, threads=1), SqlFiles(job.clusters, job.paths)
    try:
        result = run_query(job.query, Path(job.directory), files, limits)
    except DaskscopeError as error:
        return SqlReply(error=str(error))
    except MemoryError:
        return SqlReply(error="The query needs too much memory. Ask for fewer rows, columns or clusters.")
    return SqlReply([(column.name, column.type) for column in result.columns], result.rows, result.is_cut)


if __name__ == "__main__":
    run_job(SqlJob, _reply, lambda job: job.memory_nbytes + PROCESS_NBYTES)
