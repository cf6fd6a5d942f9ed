"""Processes of the server that do one job each: the job is a line of standard input, the result is their standard output."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec


class ChildProcesses:
    """The running processes of one server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def run(
        self, module: str, job: object, timeout_s: float, environment: Mapping[str, str], directory: Path | None = None
    ) -> tuple[bytes, int] | None:
        """Run a module with a job to its end; return its output and status, or None if the server stops."""
        with self._lock:
            if self._closed:
                return None
            process = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=dict(environment),
                cwd=directory,
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
        return None if self._closed else (text, process.returncode)

    def close(self) -> None:
        """End all processes, and start no more."""
        with self._lock:
            self._closed = True
            for process in self._running:
                process.kill()
