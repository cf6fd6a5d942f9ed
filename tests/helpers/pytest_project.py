"""A directory of tests, and pytest runs in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# A dashboard would take 0.5 s of CPU time. The worker needs its process: on a busy machine, CPU time is compared.
CONFTEST = """
import pytest
from distributed import Client, LocalCluster

@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client
"""


class Project:
    """A directory of tests, and pytest runs in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "conftest.py").write_text(CONFTEST)
        (directory / "pytest.ini").write_text(
            "[pytest]\naddopts = --strict-markers -p no:schemathesis -p no:cacheprovider\n"
        )

    def write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text)

    def run(self, *arguments: str, steps: int = 100_000) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", *arguments]
        environment = {**os.environ, "STEPS": str(steps), "COLUMNS": "400"}
        environment.pop("PYTEST_XDIST_WORKER", None)
        return subprocess.run(
            command, cwd=self.directory, env=environment, capture_output=True, text=True, timeout=280, check=False
        )
