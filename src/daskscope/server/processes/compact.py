"""Compact one run in a process of its own, with a limit on its memory.

Decoding and sorting two million tasks takes seconds and a gigabyte. In the server's own process that would delay the batches of
every other cluster. Small buffers are compacted in the server: starting a process takes a second of CPU time.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from typing import Literal

import msgspec

from daskscope.errors import DaskscopeError
from daskscope.server.processes.child import ENVIRONMENT, NICE, ChildProcesses, run_job
from daskscope.server.settings import Storage
from daskscope.storage.base.blobs import StoreAway
from daskscope.storage.runs.compaction import Compacted

MODULE = "daskscope.server.processes.compact"
#: Buffers with more bytes or rows are compacted in a process of their own.
MAX_NBYTES_HERE, MAX_ROWS_HERE = 2 * 1024 * 1024, 500_000
#: Joining and sorting the rows of one pass takes 1 GB.
MEMORY_NBYTES = 2 * 1024 * 1024 * 1024
#: One pass takes some seconds. A slow object store gets the rest.
COMPACT_S = 600.0


class CompactionError(DaskscopeError):
    """A compaction in another process failed."""


class CompactJob(msgspec.Struct, frozen=True):
    """A run to compact."""

    storage: Storage
    keep_replaced_us: int
    account: int
    run: int
    over: bool


class CompactResult(msgspec.Struct, frozen=True):
    """The result of a compaction, None if another server did it, or the error."""

    done: Compacted | None = None
    error: Literal["", "store", "failed"] = ""
    detail: str = ""


def compact_apart(processes: ChildProcesses, job: CompactJob) -> Compacted | None:
    """Compact a run in another process. Return None if another server did so in the meantime."""
    # All batches wait for the process while it holds the lock of SQLite.
    nice = NICE if job.storage.database.startswith("postgresql") else 0
    ended = processes.run(MODULE, job, COMPACT_S, {**os.environ, **ENVIRONMENT}, nice=nice)
    if ended is None:
        # The server stops. The run is compacted after its next start.
        return None
    try:
        result = msgspec.json.decode(ended[0], type=CompactResult)
    except msgspec.DecodeError:
        raise CompactionError(f"compacting run {job.run} ended with status {ended[1]}") from None
    if result.error == "store":
        raise StoreAway(result.detail)
    if result.error:
        raise CompactionError(f"compacting run {job.run} failed: {result.detail}")
    return result.done


def _compact(job: CompactJob) -> CompactResult:
    from daskscope.server.rendering import open_archive
    from daskscope.storage.base.database import DatabaseError, detail_of
    from daskscope.storage.runs.compaction import compact

    try:
        with closing(open_archive(job.storage)) as archive:
            keeping = replace(archive, keep_replaced_us=job.keep_replaced_us)
            return CompactResult(compact(keeping, job.account, job.run, over=job.over))
    except StoreAway as error:
        return CompactResult(error="store", detail=str(error))
    except (DatabaseError, DaskscopeError, OSError) as error:
        return CompactResult(error="failed", detail=detail_of(error))
    except MemoryError:
        return CompactResult(error="failed", detail="it takes too much memory")


if __name__ == "__main__":
    run_job(CompactJob, _compact, lambda _: MEMORY_NBYTES)
