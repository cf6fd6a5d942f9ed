"""Run a server in its own process on a given data directory."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.ingest import START


@dataclass(frozen=True)
class Served:
    """A running server without sign-in."""

    port: int
    secret: str
    process: psutil.Process

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serve_data(data: Path, *flags: str) -> Iterator[Served]:
    """Yield a server on a data directory."""
    command = [sys.executable, "-c", START, "serve", "--port", "0", "--data", str(data), *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.search(r":(\d+)", line)
        assert match, line
        yield Served(int(match[1]), (data / "local.secret").read_text().strip(), psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait(60)
