"""Build one document in a process of its own, with a limit on its memory.

A run of five million tasks takes gigabytes. In the server's own process, whatever exceeds the memory of the machine would end the
server, and with it the ingest of every other cluster.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from pathlib import Path
from typing import Literal

import msgspec

from daskscope.server.processes.child import ENVIRONMENT, ChildProcesses, run_job
from daskscope.server.settings import Storage

#: The module that a process runs.
MODULE = "daskscope.server.processes.build"


class Job(msgspec.Struct, frozen=True):
    """A document to build: of a run, or of the recording file that a user uploads."""

    storage: Storage
    memory_nbytes: int
    account: int
    title: str
    run: int = 0
    computation: str = ""
    recording: str = ""


class Result(msgspec.Struct, frozen=True):
    """What became of a job."""

    #: ``lost`` if the process ended without a result.
    outcome: Literal["built", "memory", "no computation", "refused", "storage", "failed", "lost"]
    path: str = ""
    nbytes: int = 0
    is_complete: bool = True
    #: The cluster of an uploaded recording.
    cluster: str = ""
    #: The message of the error.
    detail: str = ""


def run_build(processes: ChildProcesses, job: Job, timeout_s: float) -> Result:
    """Build a document in a process of its own."""
    ended = processes.run(MODULE, job, timeout_s, {**os.environ, **ENVIRONMENT})
    return _result(*ended) if ended is not None else Result("lost", detail="the server stops")


def _result(text: bytes, status: int) -> Result:
    try:
        return msgspec.json.decode(text, type=Result)
    except msgspec.DecodeError:
        why = signal.Signals(-status).name if status < 0 else f"status {status}"
        return Result("lost", detail=f"the process ended with {why}")


def build(job: Job) -> Result:
    """Build and store the document of a job."""
    from daskscope.server.rendering import Subject, open_archive, render_subject, render_upload, store_document

    with closing(open_archive(job.storage)) as archive:
        is_complete, cluster = True, ""
        if job.recording:
            document, cluster = render_upload(Path(job.recording), job.title)
        else:
            subject = Subject(job.account, job.run, job.title, job.computation)
            document, is_complete = render_subject(archive, subject)
        path = store_document(archive, job.account, document)
        return Result("built", path, document.nbytes, is_complete, cluster)


def attempt(job: Job) -> Result:
    """Build the document of a job, and turn an error into a result."""
    from daskscope.server.rendering import describe_error

    try:
        return build(job)
    except Exception as error:  # noqa: BLE001 (the server raises or logs it)
        kind, detail = describe_error(error)
        return Result(kind, detail=detail)


def _use_cores() -> None:
    """Let pyarrow decode several columns at a time; ``OMP_NUM_THREADS`` would limit it to one."""
    import pyarrow as pa

    from daskscope.report.blocks import usable_cores

    pa.set_cpu_count(usable_cores())


def main(job: Job) -> Result:
    # pyarrow imports pandas if there is one, which takes 100 MB, and does not need it here.
    sys.modules["pandas"] = None  # type: ignore[assignment]
    _use_cores()
    return attempt(job)


if __name__ == "__main__":
    run_job(Job, main, lambda job: job.memory_nbytes)
