"""Run schedulers and workers in separate processes, with or without daskscope installed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.helpers.waiting import until

#: Runs at the start of each process and hides the package.
BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "daskscope":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def set_constants(constants: Mapping[str, float]) -> str:
    """Return code that sets constants of modules, by their full names, in the process that runs it."""
    parts = [(*name.rpartition("."), value) for name, value in constants.items()]
    return "".join(f"import {module}\n{module}.{name} = {value!r}\n" for module, _, name, value in parts)


class Processes:
    """Processes of ``dask scheduler`` and ``dask worker`` that end with the ``with`` block."""

    def __init__(
        self, directory: Path, *, python: str = sys.executable, environment: Mapping[str, str] | None = None
    ) -> None:
        self.directory = directory
        self.python = python
        self.environment = dict(environment or {})
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.scheduler_file = directory / "scheduler.json"
        self.blocked = directory / "blocked"
        self.blocked.mkdir(parents=True)
        (self.blocked / "sitecustomize.py").write_text(BLOCKER)

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Kill instead of terminate: a worker that is terminated while it closes because its scheduler left never ends.
        for name in list(self.running):
            self.kill(name)

    def scheduler(self, *arguments: str, installed: bool = False, constants: Mapping[str, float] | None = None) -> None:
        """Start the scheduler, with other values of some constants, and wait until it listens."""
        if constants:
            (self.directory / "constants.py").write_text(set_constants(constants))
            arguments = ("--preload", str(self.directory / "constants.py"), *arguments)
        options = ("--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(self.scheduler_file))
        self.dask("scheduler", "distributed.cli.dask_scheduler", *options, *arguments, installed=installed)
        until(self.scheduler_file.exists, "the scheduler's start")

    def worker(self, name: str, *arguments: str, installed: bool = False) -> None:
        """Start a worker with one thread."""
        place = ("--scheduler-file", str(self.scheduler_file), "--no-dashboard", "--no-nanny")
        options = (*place, "--nthreads", "1", "--name", name)
        self.dask(name, "distributed.cli.dask_worker", *options, *arguments, installed=installed)

    def dask(self, name: str, module: str, *arguments: str, installed: bool) -> None:
        self.start(name, [self.python, "-m", module, *arguments], installed=installed)

    def start(self, name: str, command: list[str], *, installed: bool) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **self.environment}
        if not installed:
            environment["PYTHONPATH"] = str(self.blocked)
        with (self.directory / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command, env=environment, cwd=self.directory, stdout=log, stderr=subprocess.STDOUT
            )
        return self.running[name]

    def log(self, name: str) -> str:
        """Return the output of a process."""
        return (self.directory / f"{name}.log").read_text()

    def kill(self, name: str) -> None:
        """Kill a process without giving it a chance to clean up."""
        process = self.running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait(10)

    def terminate(self, name: str) -> int:
        """Terminate a process and return its exit code."""
        process = self.running.pop(name)
        process.terminate()
        return process.wait(30)
