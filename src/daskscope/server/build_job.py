"""Jobs for processes that build one document each, and the processes of a server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import Literal

import msgspec

#: The module that a process runs.
MODULE = "daskscope.server.build_process"
#: Return freed memory to the system at once, and start no threads that reserve some. The default allocators keep most of what the
#: reading of each column freed.
ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "262144",
    "MALLOC_TRIM_THRESHOLD_": "262144",
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


class BuildProcesses:
    """The running processes of one server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def run(self, job: Job, timeout_s: float) -> Result:
        """Run a job to its end."""
        with self._lock:
            if self._closed:
                return Result("lost", detail="the server stops")
            process = subprocess.Popen(
                [sys.executable, "-m", MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **ENVIRONMENT},
            )
            self._running.add(process)
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(timeout_s, process.kill)
        timer.start()
        try:
            # The pipe stays open: its end tells the process that the server is gone.
            with process.stdin, process.stdout:
                try:
                    process.stdin.write(msgspec.json.encode(job) + b"\n")
                    process.stdin.flush()
                    text = process.stdout.read()
                except OSError:
                    text = b""
            process.wait()
        finally:
            timer.cancel()
            with self._lock:
                self._running.discard(process)
        return _result(text, process.returncode)

    def close(self) -> None:
        """End all processes, and start no more."""
        with self._lock:
            self._closed = True
            for process in self._running:
                process.kill()


def _result(text: bytes, status: int) -> Result:
    try:
        return msgspec.json.decode(text, type=Result)
    except msgspec.DecodeError:
        why = signal.Signals(-status).name if status < 0 else f"status {status}"
        return Result("lost", detail=f"the process ended with {why}")
