"""A server of this version goes on storing batches while one of a made-up next version migrates their PostgreSQL."""

from __future__ import annotations

import json
import threading
import urllib.request
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.helpers.load import Load
from tests.helpers.next_version import NEXT, write_migrations, write_source
from tests.helpers.server_process import ServerProcess, archive_of, check_complete
from tests.helpers.services import Postgres
from tests.helpers.waiting import until

from daskscope.storage import schema
from daskscope.storage.base import migrate
from daskscope.storage.base.database import Database
from daskscope.storage.base.migrate import prepare, version


def readiness(server: ServerProcess) -> dict[str, object]:
    with urllib.request.urlopen(f"{server.url}/readyz", timeout=20) as response:
        found: dict[str, object] = json.loads(response.read())
    return found


def test_an_old_server_stores_batches_while_a_new_one_migrates(tmp_path: Path, postgres: Postgres) -> None:
    url, store, key = postgres.empty(), str(tmp_path / "blobs"), str(tmp_path / "master.key")
    database = Database(url)
    flags = ("--database", url, "--store", store, "--key-file", key, "--compact-after", "1")
    environment = {"PYTHONPATH": str(write_source(tmp_path / "next"))}
    old = ServerProcess(tmp_path / "old", *flags, log=tmp_path / "old.log")
    new = ServerProcess(tmp_path / "new", *flags, log=tmp_path / "new.log", environment=environment)
    old.start()
    load = Load(old.url, clusters=3, token=old.secret, pause_s=0.02)
    load.start()
    try:
        until(lambda: load.acknowledged > 20, "batches before the migration", 60)
        new.start()
        with database.read() as connection:
            assert version(connection) == NEXT
        before = load.acknowledged
        until(lambda: load.acknowledged > before + 50, "batches after the migration", 60)
        assert readiness(old)["ready"] is True
        assert readiness(new)["ready"] is True
    finally:
        load.stop()
    assert [server.stop() for server in (old, new)] == [0, 0]
    assert f"catalog upgraded from {schema.HEAD}" in new.log()
    assert load.refused == []
    archive = archive_of(tmp_path, database=url, store=store)
    check_complete(load, archive)
    archive.database.close()
    database.close()
    postgres.drop(url)


def test_a_migration_waits_for_a_long_transaction_without_stopping_others(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup reads the runs in a transaction that lasts for minutes, while servers write to them."""
    database = Database(postgres.empty())
    assert prepare(database) == "created"
    before = schema.HEAD
    monkeypatch.setattr(migrate, "MIGRATIONS", write_migrations(tmp_path / "migrations"))
    monkeypatch.setattr(schema, "HEAD", NEXT)
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
    assert done == [f"upgraded from {before}"]
