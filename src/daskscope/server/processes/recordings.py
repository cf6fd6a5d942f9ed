"""Read whole runs in a process of its own, with limits on its memory and time: compare them, or write one as a recording file.

Rows take the memory, and the recorder decides how many there are. Small runs are read in the server: starting a process takes a
second.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from daskscope import units
from daskscope.analysis.compare.comparison import Part, compare_parts
from daskscope.model.recording import Completeness, Recording
from daskscope.server.build_document import Subject, read
from daskscope.server.processes.job import Job, Kind, Reply, Runner, Unreadable, do_job, raise_again
from daskscope.storage.base.archive import Archive
from daskscope.storage.runs.read import Amount, RunTooLarge, read_snapshot
from daskscope.wire.file import frames_of_table
from daskscope.wire.layout import FILE_MAGIC

#: Memory of a process without rows, and per row: comparing six million samples takes 3.7 GB.
PROCESS_NBYTES, ROW_NBYTES = 300 * 1024 * 1024, 600


class Run(msgspec.Struct, frozen=True):
    """A run, or one computation of it, and the name that it is shown with."""

    run: int
    title: str
    computation: str = ""
    name: str = ""


class RecordingRequest(msgspec.Struct, frozen=True):
    """Two sets of runs to compare, or a run to write to a file."""

    account: int
    before: list[Run] = []
    after: list[Run] = []
    #: The run, its cluster and start, and where to write it.
    run: Run | None = None
    cluster: str = ""
    start_us: int = 0
    path: str = ""


class RecordingResult(msgspec.Struct, frozen=True):
    """The comparison, or nothing of a run that was written."""

    #: As JSON: the server passes it on without decoding it. A megabyte takes 0.06 s to decode and encode again.
    comparison: msgspec.Raw = msgspec.Raw(b"null")


#: Comparing 40 runs of a million tasks in total takes 20 s. The rest is for a busy machine and a slow object store.
READ = Kind("daskscope.server.processes.recordings", Job[RecordingRequest], Reply[RecordingResult], 120.0)


def compare(archive: Archive, request: RecordingRequest, limit: Amount | None = None) -> dict[str, Any]:
    """Compare runs. Raise ``RunTooLarge`` if there is more to read than a limit, for all runs together."""
    rows = 0

    def parts(side: list[Run]) -> Iterator[Part]:
        nonlocal rows
        for run in side:
            recording, start_us, stop_us = read(
                archive, Subject(request.account, run.run, run.title, run.computation), limit
            )
            rows += sum(table.rows for table in recording.tables.values())
            if limit is not None and rows > limit.rows:
                raise RunTooLarge("These runs have too many rows to compare at once.")
            yield replace(recording, source=run.name), start_us, stop_us

    return compare_parts(parts(request.before), parts(request.after)).to_dict()


def recording_file(archive: Archive, request: RecordingRequest, limit: Amount | None = None) -> Iterator[bytes]:
    """Return the parts of a recording file of a run. Raise ``RunTooLarge`` if there is more to read than a limit."""
    assert request.run is not None
    recording = read_snapshot(archive, request.account, request.run.run, request.run.title, limit=limit)
    if recording.damage and not any(table.rows for table in recording.tables.values()):
        # A file without a batch cannot state what is missing.
        raise Unreadable(f"Nothing of this cluster can be read: {recording.damage}")
    return _parts(recording, request.cluster, request.start_us)


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


def run_apart(runner: Runner, request: RecordingRequest, rows: int) -> RecordingResult:
    """Compare runs, or write one, in a process of its own: first with the memory it should need for its rows."""
    limits = runner.memory_attempts(PROCESS_NBYTES + rows * ROW_NBYTES)
    reply = runner.run_job(READ, request, limits, request.account)
    if reply.result is not None:
        return reply.result
    raise_again(reply, "this cannot be read")
    raise RunTooLarge(
        f"This takes more than {units.nbytes(runner.memory.nbytes)} of memory or {READ.timeout_s:.0f} s. Choose single "
        "computations, or use daskscope on a machine with more memory. The server's operator can raise --build-memory."
    )


def _do(archive: Archive, request: RecordingRequest) -> RecordingResult:
    if request.run is None:
        return RecordingResult(_encoded(compare(archive, request)))
    with Path(request.path).open("wb") as file:
        file.writelines(recording_file(archive, request))
    return RecordingResult()


def _encoded(comparison: dict[str, Any]) -> msgspec.Raw:
    try:
        return msgspec.Raw(msgspec.json.encode(comparison))
    except UnicodeEncodeError:
        # A lone surrogate from a recorder, as in responses of the server.
        return msgspec.Raw(json.dumps(comparison).encode())


if __name__ == "__main__":
    do_job(READ, _do)
