"""A server of the previous version goes on storing batches while a new one migrates their PostgreSQL."""

from __future__ import annotations

import json
import threading
import urllib.request
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.load import Load
from tests.processes import until
from tests.server_process import START, ServerProcess, archive_of, check_complete
from tests.services import Postgres

from daskscope.storage import schema
from daskscope.storage.database import Database
from daskscope.storage.migrate import prepare, upgrade, version

BEFORE = f"{int(schema.HEAD) - 1:04}"
#: What the newest migration added: columns of the catalog, and a query that only the new version makes.
NEW = {"runs": ("longest_running", "stacks_asked_us", "stacks_asked_of"), "computations": ("prefix_states",)}
#: A server that expects the previous schema and knows nothing of the new columns, as the previous version does.
OLD_START = f"""
from daskscope.analysis import rollup
from daskscope.storage import ingest, schema
schema.HEAD = {BEFORE!r}
for table, names in {NEW!r}.items():
    for name in names:
        getattr(schema, table)._columns.remove(getattr(schema, table).c[name])
added = {{name for names in {NEW!r}.values() for name in names}}
for table, names in rollup.ENTITIES.items():
    rollup.ENTITIES[table] = tuple(name for name in names if name not in added)
ingest.COLUMNS = ("cluster", "close_us", "end_us")
ingest.requests_of = lambda *_: None
{START}
"""


def readiness(server: ServerProcess) -> dict[str, object]:
    with urllib.request.urlopen(f"{server.url}/readyz", timeout=20) as response:
        found: dict[str, object] = json.loads(response.read())
    return found


def test_an_old_server_stores_batches_while_a_new_one_migrates(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, store, key = postgres.empty(), str(tmp_path / "blobs"), str(tmp_path / "master.key")
    database = Database(url)
    with database.write() as connection:
        upgrade(connection, BEFORE)
    flags = ("--database", url, "--store", store, "--key-file", key, "--compact-after", "1")
    old = ServerProcess(tmp_path / "old", *flags, log=tmp_path / "old.log")
    new = ServerProcess(tmp_path / "new", *flags, log=tmp_path / "new.log")
    with monkeypatch.context() as patched:
        patched.setattr("tests.server_process.START", OLD_START)
        old.start()
    load = Load(old.url, clusters=3, token=old.secret)
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
        upgrade(connection, BEFORE)
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
    assert done == [f"upgraded from {BEFORE}"]
