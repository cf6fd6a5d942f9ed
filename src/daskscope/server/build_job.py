"""Jobs for processes that build one document each."""

from __future__ import annotations

import os
import signal
from typing import Literal

import msgspec

from daskscope.server.child_processes import ChildProcesses

#: The module that a process runs.
MODULE = "daskscope.server.build_process"
#: Return whole columns to the system as soon as they are freed, and reuse what is smaller. The default allocators keep most of what
#: the reading of each column freed. With a threshold of 256 kB, a third of the time went into empty pages from the system.
#: OpenMP and OpenBLAS start no threads, which reserve memory.
ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": str(4 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(8 << 20),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class Storage(msgspec.Struct, frozen=True):
    """How to reach the storage of the server."""

    database: str
    database_timeout: int
    store: str
    store_endpoint: str
    masters: list[bytes]


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
