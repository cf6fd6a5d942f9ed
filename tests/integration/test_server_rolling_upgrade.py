"""A server of the previous version goes on storing batches while a new one migrates their PostgreSQL."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import urllib.request
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.helpers.load import Load
from tests.helpers.server_process import ServerProcess, archive_of, check_complete
from tests.helpers.services import Postgres
from tests.helpers.waiting import until

from daskscope.storage import schema
from daskscope.storage.base.database import Database
from daskscope.storage.base.migrate import prepare, upgrade, version

BEFORE = f"{int(schema.HEAD) - 1:04}"
#: The migration after this one adds columns to the table of runs, which locks it.
BEFORE_A_LOCK = "0010"
ROOT = Path(__file__).parents[2]
#: Built files, which are not in the history.
BUILT = ("report/viewer.html", "server/static")


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


@pytest.fixture(scope="module")
def previous_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of the version before the newest migration, from the history of this repository."""
    newest = f"src/daskscope/storage/migrations/versions/{schema.HEAD}_*"
    try:
        added = git("log", "--diff-filter=A", "--format=%H", "--", newest).decode().split()
        packed = git("archive", f"{added[-1]}^", "src") if added else b""
    except (OSError, subprocess.CalledProcessError):
        packed = b""
    if not packed:
        pytest.skip("needs the history of the repository")
    directory = tmp_path_factory.mktemp("previous")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(directory, filter="data")
    for name in BUILT:
        (directory / "src/daskscope" / name).symlink_to(ROOT / "src/daskscope" / name)
    return directory / "src"


class PreviousRecorder:
    """Makes batches with the code of the previous version: a server refuses those of a newer recorder."""

    CODE = """
import base64, json, sys
from tests.helpers.load import cluster_batches
for line in sys.stdin:
    print(json.dumps([base64.b64encode(frame).decode() for frame in cluster_batches(*json.loads(line))]), flush=True)
"""

    def __init__(self, source: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-c", self.CODE]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.lock = threading.Lock()

    def batches(self, cluster: str, batches: int, rows: int) -> list[bytes]:
        assert self.process.stdin is not None and self.process.stdout is not None
        with self.lock:
            self.process.stdin.write(json.dumps([cluster, batches, rows]) + "\n")
            self.process.stdin.flush()
            return [base64.b64decode(text) for text in json.loads(self.process.stdout.readline())]

    def close(self) -> None:
        self.process.communicate()


def readiness(server: ServerProcess) -> dict[str, object]:
    with urllib.request.urlopen(f"{server.url}/readyz", timeout=20) as response:
        found: dict[str, object] = json.loads(response.read())
    return found


def test_an_old_server_stores_batches_while_a_new_one_migrates(
    tmp_path: Path, postgres: Postgres, previous_source: Path
) -> None:
    url, store, key = postgres.empty(), str(tmp_path / "blobs"), str(tmp_path / "master.key")
    database = Database(url)
    with database.write() as connection:
        upgrade(connection, BEFORE)
    flags = ("--database", url, "--store", store, "--key-file", key, "--compact-after", "1")
    environment = {"PYTHONPATH": str(previous_source)}
    old = ServerProcess(tmp_path / "old", *flags, log=tmp_path / "old.log", environment=environment)
    new = ServerProcess(tmp_path / "new", *flags, log=tmp_path / "new.log")
    old.start()
    recorder = PreviousRecorder(previous_source)
    load = Load(old.url, clusters=3, token=old.secret, make=recorder.batches)
    load.start()
    try:
        until(lambda: load.acknowledged > 20, "batches before the migration", 60)
        new.start()
        with database.read() as connection:
            assert version(connection) == schema.HEAD
        before = load.acknowledged
        until(lambda: load.acknowledged > before + 50, "batches after the migration", 60)
        assert readiness(old)["ready"] is True
        assert readiness(new)["ready"] is True
    finally:
        load.stop()
        recorder.close()
    assert [server.stop() for server in (old, new)] == [0, 0]
    assert f"catalog upgraded from {BEFORE}" in new.log()
    assert load.refused == []
    archive = archive_of(tmp_path, database=url, store=store)
    check_complete(load, archive)
    archive.database.close()
    database.close()
    postgres.drop(url)


def test_a_migration_waits_for_a_long_transaction_without_stopping_others(postgres: Postgres) -> None:
    """Compactions of earlier versions read the runs in a transaction that lasts for minutes, and write to them in others."""
    database = Database(postgres.empty())
    with database.write() as connection:
        upgrade(connection, BEFORE_A_LOCK)
    done: list[str] = []
    migration = threading.Thread(target=lambda: done.append(prepare(database)))
    number = sa.text("SELECT count(*) FROM runs")
    with database.read() as reader:
        reader.execute(number)
        migration.start()
        waits = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'")
        with database.read() as other:
            until(lambda: other.execute(waits).scalar_one() > 0, "the migration to wait for the table")
        with database.read() as other:
            # The migration gives way to it.
            assert other.execute(number).scalar_one() == 0
        assert not done
    migration.join(60)
    assert done == [f"upgraded from {BEFORE_A_LOCK}"]
