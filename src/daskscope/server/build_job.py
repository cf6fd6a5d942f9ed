"""Jobs for processes that build one document each."""

from __future__ import annotations

import os
import signal
from typing import Literal

import msgspec

from daskscope.server.child_processes import ENVIRONMENT, ChildProcesses, Storage

#: The module that a process runs.
MODULE = "daskscope.server.build_process"


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
