"""Read whole runs in a process of its own, with limits on its memory and time: compare them, or write one as a recording file.

Rows take the memory, and the recorder decides how many there are. Small runs are read in the server: starting a process takes a
second.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from daskscope import units
from daskscope.analysis.compare.comparison import Part, compare_parts
from daskscope.errors import DaskscopeError
from daskscope.model.recording import Completeness, Recording
from daskscope.server.processes.child import ENVIRONMENT, ChildProcesses, MemoryBudget, memory_attempts, run_job
from daskscope.server.rendering import JobError, Subject, describe_error, open_archive, raise_again, read
from daskscope.server.settings import Storage
from daskscope.storage.base.archive import Archive
from daskscope.storage.runs.read import Amount, RunTooLarge, read_snapshot
from daskscope.wire.file import frames_of_table
from daskscope.wire.layout import FILE_MAGIC

logger = logging.getLogger("daskscope.server")

MODULE = "daskscope.server.processes.recordings"
#: Memory of a process without rows, and per row: comparing six million samples takes 3.7 GB.
PROCESS_NBYTES, ROW_NBYTES = 300 * 1024 * 1024, 600
#: Comparing 40 runs of a million tasks in total takes 20 s. The rest is for a busy machine and a slow object store.
SECONDS = 120.0


class Run(msgspec.Struct, frozen=True):
    """A run, or one computation of it, and the name that it is shown with."""

    run: int
    title: str
    computation: str = ""
    name: str = ""


class RecordingJob(msgspec.Struct, frozen=True):
    """Two sets of runs to compare, or a run to write to a file."""

    account: int
    before: list[Run] = []
    after: list[Run] = []
    #: The run, its cluster and start, and where to write it.
    run: Run | None = None
    cluster: str = ""
    start_us: int = 0
    path: str = ""
    memory_nbytes: int = 0
    storage: Storage | None = None


class RecordingReply(msgspec.Struct, frozen=True):
    """The comparison, the reason why nothing was written, or the error."""

    #: As JSON: the server passes it on without decoding it. A megabyte takes 0.06 s to decode and encode again.
    comparison: msgspec.Raw = msgspec.Raw(b"null")
    error: JobError | str = ""
    detail: str = ""


class Unreadable(DaskscopeError):
    """Nothing of a run can be read."""


class ReadFailed(DaskscopeError):
    """The process failed. The message can be shown to anyone."""


def compare(archive: Archive, job: RecordingJob, limit: Amount | None = None) -> dict[str, Any]:
    """Compare the runs of a job. Raise ``RunTooLarge`` if there is more to read than a limit, for all runs together."""
    rows = 0

    def parts(side: list[Run]) -> Iterator[Part]:
        nonlocal rows
        for run in side:
            recording, start_us, stop_us = read(
                archive, Subject(job.account, run.run, run.title, run.computation), limit
            )
            rows += sum(table.rows for table in recording.tables.values())
            if limit is not None and rows > limit.rows:
                raise RunTooLarge("These runs have too many rows to compare at once.")
            yield replace(recording, source=run.name), start_us, stop_us

    return compare_parts(parts(job.before), parts(job.after)).to_dict()


def recording_file(archive: Archive, job: RecordingJob, limit: Amount | None = None) -> Iterator[bytes]:
    """Return the parts of a recording file of a run. Raise ``RunTooLarge`` if there is more to read than a limit."""
    assert job.run is not None
    recording = read_snapshot(archive, job.account, job.run.run, job.run.title, limit=limit)
    if recording.damage and not any(table.rows for table in recording.tables.values()):
        # A file without a batch cannot state what is missing.
        raise Unreadable(f"Nothing of this cluster can be read: {recording.damage}")
    return _parts(recording, job.cluster, job.start_us)


def _parts(recording: Recording, cluster: str, start_us: int) -> Iterator[bytes]:
    # A file shows gaps by missing sequence numbers: for batches that never arrived, and one for damaged data. The gap
    # comes after the first batch, because readers take the first number as the start of the recording.
    gap, sequence = recording.missing_batches + bool(recording.damage), 0
    yield FILE_MAGIC
    for name, table in recording.tables.items():
        part = recording.completeness.get(name, Completeness())
        frames = frames_of_table(
            table,
            cluster=cluster,
            epoch=start_us,
            sequence=sequence,
            # Older rows of an entity were replaced by newer ones, so nothing is missing.
            kept=table.rows + part.missing,
            dropped=part.dropped,
        )
        count = 0
        for frame in frames:
            yield frame
            count += 1
        sequence += count
        if count and gap:
            sequence, gap = sequence + gap, 0


def run_apart(processes: ChildProcesses, memory: MemoryBudget, job: RecordingJob, rows: int) -> RecordingReply:
    """Do a job in a process of its own: first with the memory it should need for its rows, then with all there is."""
    reply = RecordingReply(error="memory")
    for nbytes in memory_attempts(PROCESS_NBYTES + rows * ROW_NBYTES, memory.nbytes):
        apart = msgspec.structs.replace(job, memory_nbytes=nbytes)
        with memory.reserve(nbytes, job.account):
            ended = processes.run(MODULE, apart, SECONDS, {**os.environ, **ENVIRONMENT})
        if ended is None:
            raise ReadFailed("The server is shutting down. Try again in a minute.")
        reply = _reply_of(*ended)
        if reply.error != "memory":
            break
    _check(reply, memory.nbytes)
    return reply


def _reply_of(text: bytes, status: int) -> RecordingReply:
    try:
        return msgspec.json.decode(text, type=RecordingReply)
    except msgspec.DecodeError:
        # Killed by the system or by the time limit.
        logger.warning("a process that read a run ended with status %d", status)
        return RecordingReply(error="time")


def _check(reply: RecordingReply, memory: int) -> None:
    """Raise the error of a job that failed."""
    if not reply.error:
        return
    raise_again(reply.error, reply.detail)
    if reply.error == "unreadable":
        raise Unreadable(reply.detail)
    if reply.error in ("memory", "time"):
        raise RunTooLarge(
            f"This takes more than {units.nbytes(memory)} of memory or {SECONDS:.0f} s. Choose single computations, or use "
            "daskscope on a machine with more memory. The server's operator can raise --build-memory."
        )
    logger.error("a run cannot be read: %s", reply.detail)
    raise ReadFailed("This cannot be read. The server's log says why.")


def _do(job: RecordingJob) -> RecordingReply:
    assert job.storage is not None
    try:
        with closing(open_archive(job.storage)) as archive:
            if job.run is None:
                return RecordingReply(_encoded(compare(archive, job)))
            with Path(job.path).open("wb") as file:
                file.writelines(recording_file(archive, job))
            return RecordingReply()
    except Unreadable as error:
        return RecordingReply(error="unreadable", detail=str(error))
    except Exception as error:  # noqa: BLE001 (the server raises or logs it)
        kind, detail = describe_error(error)
        return RecordingReply(error=kind, detail=detail)


def _encoded(comparison: dict[str, Any]) -> msgspec.Raw:
    try:
        return msgspec.Raw(msgspec.json.encode(comparison))
    except UnicodeEncodeError:
        # A lone surrogate from a recorder, as in responses of the server.
        return msgspec.Raw(json.dumps(comparison).encode())


if __name__ == "__main__":
    run_job(RecordingJob, _do, lambda job: job.memory_nbytes)
