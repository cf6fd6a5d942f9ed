"""Run a server in its own process, and check that its data is complete."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from os import environ
from pathlib import Path

import sqlalchemy as sa
from tests.helpers.load import Load
from tests.helpers.processes import set_constants

from daskscope.storage import schema
from daskscope.storage.base.archive import Archive
from daskscope.storage.base.blobs import open_store
from daskscope.storage.base.database import Database
from daskscope.storage.base.vault import Vault, load_master_keys
from daskscope.storage.doctor import examine
from daskscope.storage.runs.read import Part, read_run

START = "import sys; from daskscope.cli.main import main; sys.exit(main(sys.argv[1:]))"


class ServerProcess:
    """``daskscope serve`` in its own process, always on the same port, with other values of some constants."""

    def __init__(
        self,
        data: Path,
        *flags: str,
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
        constants: Mapping[str, float] | None = None,
    ) -> None:
        self.data = data
        self.flags = flags
        self.start_code = set_constants(constants or {}) + START
        self.log_path = log or data.parent / "server.log"
        self.environment = {**environ, **(environment or {})}
        self.port = 0
        self.process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def secret(self) -> str:
        """Return the secret in its URL, if it has no sign-in."""
        return (self.data / "local.secret").read_text().strip()

    def start(self) -> None:
        command: Sequence[str] = [
            sys.executable,
            "-c",
            self.start_code,
            "serve",
            "--data",
            str(self.data),
            "--port",
            str(self.port),
        ]
        with self.log_path.open("a") as log:
            self.process = subprocess.Popen(
                [*command, *self.flags], stdout=subprocess.PIPE, stderr=log, text=True, env=self.environment
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = re.search(r":(\d+)", line)
        assert match, (line, self.log())
        self.port = int(match[1])

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(30)

    def log(self) -> str:
        return self.log_path.read_text()


def stored_tasks(archive: Archive) -> dict[str, list[str]]:
    """Return the task keys of every run, from its files and its buffer."""
    with archive.read() as tx:
        rows = tx.execute(sa.select(schema.runs.c.id, schema.runs.c.account_id, schema.runs.c.cluster)).all()
        result = {}
        for row in rows:
            part = Part(tables=("tasks",))
            recording = read_run(tx, row.account_id, row.id, row.cluster, part)
            assert recording.damage == ""
            result[row.cluster] = recording["tasks"]["key"].tolist()
    return result


def check_complete(load: Load, archive: Archive) -> None:
    """Check that every epoch acknowledged to its end is complete: each task stored once, and matching sums."""
    wanted = sorted(f"work-{number}-{n}" for number in range(load.batches) for n in range(load.rows))
    stored = stored_tasks(archive)
    assert {cluster for cluster in load.ended if sorted(stored[cluster]) != wanted} == set()
    with archive.read() as tx:
        runs = schema.runs
        sums = tx.execute(sa.select(runs.c.cluster, runs.c.tasks, runs.c.end_us)).all()
    assert {row.cluster: (row.tasks, row.end_us > 0) for row in sums if row.cluster in load.ended} == dict.fromkeys(
        load.ended, (load.batches * load.rows, True)
    )
    found = [problem.text for name, problems in examine(archive) for problem in problems if name != "orphans"]
    assert found == []


def archive_of(data: Path, database: str = "", store: str = "", endpoint: str = "") -> Archive:
    vault = Vault(load_master_keys(data / "master.key"))
    blobs = open_store(store or str(data / "blobs"), endpoint=endpoint)
    return Archive(
        Database(database or str(data / "catalog.db")), vault, blobs, lambda: time.time_ns() // 1000, 60_000_000
    )
