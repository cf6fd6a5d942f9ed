"""Compact one run in a process of its own, with a limit on its memory.

Decoding and sorting two million tasks takes seconds and a gigabyte. In the server's own process that would delay the batches of
every other cluster. Small buffers are compacted in the server: starting a process takes a second of CPU time.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from daskscope.errors import DaskscopeError
from daskscope.server.processes.child import NICE
from daskscope.server.processes.job import Job, Kind, Reply, Runner, do_job
from daskscope.storage.base.archive import Archive
from daskscope.storage.base.blobs import StoreAway
from daskscope.storage.runs.compaction import Compacted, compact

#: Buffers with more bytes or rows are compacted in a process of their own.
MAX_NBYTES_HERE, MAX_ROWS_HERE = 2 * 1024 * 1024, 500_000
#: Joining and sorting the rows of one pass takes 1 GB.
MEMORY_NBYTES = 2 * 1024 * 1024 * 1024


class CompactionError(DaskscopeError):
    """A compaction in another process failed."""


class CompactRequest(msgspec.Struct, frozen=True):
    """A run to compact."""

    keep_replaced_us: int
    account: int
    run: int
    over: bool


#: One pass takes some seconds. A slow object store gets the rest.
COMPACT = Kind("daskscope.server.processes.compact", Job[CompactRequest], Reply[Compacted], 600.0)


def compact_apart(runner: Runner, request: CompactRequest) -> Compacted | None:
    """Compact a run in another process. Return None if another server did so in the meantime."""
    # All batches wait for the process while it holds the lock of SQLite.
    nice = NICE if runner.storage.database.startswith("postgresql") else 0
    reply = runner.run_job(COMPACT, request, [MEMORY_NBYTES], nice=nice)
    if reply.error == "away":
        raise StoreAway(reply.detail)
    # A server that stops compacts the run after its next start.
    if reply.error not in (None, "stopped"):
        raise CompactionError(f"compacting run {request.run} failed: {reply.detail}")
    return reply.result


def _compact(archive: Archive, request: CompactRequest) -> Compacted | None:
    keeping = replace(archive, keep_replaced_us=request.keep_replaced_us)
    return compact(keeping, request.account, request.run, over=request.over)


if __name__ == "__main__":
    do_job(COMPACT, _compact)
