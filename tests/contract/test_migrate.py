"""A catalog is created, upgraded or refused, with the same schema either way; on SQLite and on PostgreSQL."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.archive import Archive, numbered, task
from tests.helpers.services import Postgres
from tests.helpers.waiting import until

from daskscope.model.untrusted import LARGEST
from daskscope.storage import schema
from daskscope.storage.base import database as database_module
from daskscope.storage.base.blobs import LocalStore
from daskscope.storage.base.database import Database, StorageError, network_file_system
from daskscope.storage.base.migrate import (
    LOCK,
    MIGRATIONS,
    TABLE_WAIT,
    VERSIONS,
    alone,
    other_version,
    prepare,
    upgrade,
    version,
)
from daskscope.storage.people.accounts import find_account


@pytest.fixture(params=["sqlite", "postgresql"])
def two_empty_databases(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Database]]:
    """Two databases without tables."""
    postgres: Postgres | None = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    urls = [postgres.empty() if postgres else f"{tmp_path}/empty{n}.sqlite" for n in range(2)]
    databases = [Database(url) for url in urls]
    yield databases
    for database, url in zip(databases, urls, strict=True):
        database.close()
        if postgres:
            postgres.drop(url)


def describe(database: Database) -> dict[str, Any]:
    """Return everything that a database reports about its tables."""
    inspector = sa.inspect(database.engine)
    tables: dict[str, Any] = {}
    for name in sorted(inspector.get_table_names()):
        if name == VERSIONS.name:
            continue
        columns = [{**column, "type": str(column["type"])} for column in inspector.get_columns(name)]
        tables[name] = {
            "columns": columns,
            "primary key": inspector.get_pk_constraint(name),
            "foreign keys": sorted(map(repr, inspector.get_foreign_keys(name))),
            "unique": sorted(map(repr, inspector.get_unique_constraints(name))),
            "indexes": sorted(map(repr, inspector.get_indexes(name))),
        }
    if database.is_sqlite:
        with database.read() as connection:
            texts = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
            # Only the SQL text says whether numbers are reused.
            tables["autoincrement"] = sorted(name for name, sql in texts if "AUTOINCREMENT" in sql)
    return tables


def test_a_new_catalog_has_the_schema_that_migrations_make(two_empty_databases: list[Database]) -> None:
    made, migrated = two_empty_databases
    assert prepare(made) == "created"
    with migrated.write() as connection:
        upgrade(connection, schema.HEAD)
        assert version(connection) == schema.HEAD
    found = describe(migrated)
    assert set(found) >= {table.name for table in schema.metadata.sorted_tables}
    assert found == describe(made)


def test_opening_a_populated_catalog_does_not_change_it(archive: Archive) -> None:
    archive.ingest(numbered([[task(0)], [task(1)]]))
    archive.compact(archive.run()["id"])
    archive.ingest(numbered([[task(2)]], epoch=2))
    again = Database(archive.database.url.render_as_string(hide_password=False))
    assert prepare(again) == ""
    later = Archive(again, archive.store, account=archive.account)
    assert later.recording(later.run()["id"])["tasks"].rows == 3
    with later.read() as tx:
        assert find_account(tx, "team") is not None
    again.close()


def test_servers_that_start_at_once_create_one_catalog(two_empty_databases: list[Database]) -> None:
    url = two_empty_databases[0].url.render_as_string(hide_password=False)
    databases = [Database(url) for _ in range(4)]
    done: list[Any] = []

    def start(database: Database) -> None:
        try:
            done.append(prepare(database))
        except BaseException as error:  # noqa: BLE001 (asserted in the main thread)
            done.append(error)

    threads = [threading.Thread(target=start, args=(database,)) for database in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for database in databases:
        database.close()
    assert sorted(done, key=str) == ["", "", "", "created"]


def test_a_server_waits_while_another_creates_the_sqlite_file(tmp_path: Path) -> None:
    """SQLite itself does not wait: switching to WAL fails at once while another connection writes."""
    path = tmp_path / "catalog.sqlite"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.2, other.rollback)
    release.start()
    database = Database(str(path))
    assert prepare(database) == "created"
    with database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
    release.join()
    other.close()
    database.close()


def test_a_permanently_locked_sqlite_file_raises_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "BUSY_MS", 50)
    path = tmp_path / "catalog.sqlite"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    database = Database(str(path))
    with pytest.raises(StorageError, match="database is locked"):
        prepare(database)
    other.close()
    database.close()


def test_a_server_waits_for_a_migration_without_a_time_limit(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit on waiting for a row lock does not apply."""
    monkeypatch.setattr(database_module, "LOCK_S", 0.05)
    url = postgres.empty()
    database, done = Database(url), list[str]()
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    thread = threading.Thread(target=lambda: done.append(prepare(database)))
    with Database(url).engine.connect() as migrating:
        migrating.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        thread.start()
        until(lambda: migrating.execute(sa.text(waiting)).scalar_one() == 1, "a waiting server")
        # Four times the limit for any other lock.
        time.sleep(0.2)
        migrating.rollback()
    thread.join(60)
    assert done == ["created"]
    with database.write() as connection, alone(connection):
        # A limit of its own applies to the tables.
        assert connection.execute(sa.text("SELECT current_setting('lock_timeout')")).scalar_one() == TABLE_WAIT
    database.close()
    postgres.drop(url)


def test_a_catalog_of_a_newer_version_is_refused(archive: Archive) -> None:
    archive.execute(sa.update(VERSIONS).values(version_num="9999"))
    with pytest.raises(StorageError, match="newer daskscope"):
        prepare(archive.database)


SCHEMAS = Path(__file__).parents[1] / "data" / "schemas"
#: Schemas of released versions, dumped from databases that those versions made. Today's migration files may not make the same.
RELEASED_SCHEMAS = sorted({path.name[:4] for path in SCHEMAS.glob("*.sql")})


def load_dump(database: Database, released: str) -> None:
    """Fill an empty database with the dump of a released version, with some rows."""
    kind = "sqlite" if database.is_sqlite else "postgresql"
    text = (SCHEMAS / f"{released}.{kind}.sql").read_text()
    if database.is_sqlite:
        with closing(sqlite3.connect(str(database.url.database))) as connection:
            connection.executescript(text)
        return
    with database.write() as connection:
        connection.connection.cursor().execute(text)


def create_old_catalog(database: Database) -> None:
    """Create a catalog of the first version with some rows."""
    load_dump(database, "0001")


def test_there_is_a_dump_of_every_released_schema() -> None:
    assert RELEASED_SCHEMAS == ["0001", "0002", "0003", "0004"]


def test_a_populated_catalog_of_an_older_version_is_upgraded(two_empty_databases: list[Database]) -> None:
    old, fresh = two_empty_databases
    create_old_catalog(old)

    assert prepare(old) == "upgraded from 0001"

    assert prepare(old) == ""
    assert prepare(fresh) == "created"
    assert describe(old) == describe(fresh)
    with old.read() as connection:
        table = schema.computations
        row = connection.execute(sa.select(table.c.computation, table.c.state, table.c.code_digest)).one()
        assert tuple(row) == ("c", "done", "")
        runs = schema.runs
        peaks = sa.select(runs.c.tasks, runs.c.peak_workers, runs.c.peak_threads, runs.c.peak_memory_limit)
        rows = [tuple(row) for row in connection.execute(peaks.order_by(runs.c.id))]
        # The second worker of the first run joined when the first left.
        assert rows == [(7, 2, 5, 250), (0, 2, LARGEST, 2), (0, 0, 0, 0)]
        assert connection.execute(sa.select(schema.tokens.c.parent)).scalars().all() == [0]


VERSIONS_BEFORE = [f"{number:04}" for number in range(1, int(schema.HEAD))]


@pytest.mark.parametrize("before", VERSIONS_BEFORE)
def test_a_catalog_of_every_earlier_version_is_upgraded(two_empty_databases: list[Database], before: str) -> None:
    old, fresh = two_empty_databases
    released = max(one for one in RELEASED_SCHEMAS if one <= before)
    load_dump(old, released)
    if before != released:
        with old.write() as connection:
            upgrade(connection, before)

    assert prepare(old) == f"upgraded from {before}"

    prepare(fresh)
    assert describe(old) == describe(fresh)
    with old.read() as connection:
        assert connection.execute(sa.select(schema.runs.c.cluster).where(schema.runs.c.id == 1)).scalar() == "old"


#: Digests of migrations that catalogs have run. Change the schema by a new one, and add it here.
RELEASED = {
    "0001_catalog": "a8b56cca2bc40601",
    "0002_code_digest": "d886f061f4d33b3a",
    "0003_token_parents_and_peaks": "ad0fa5011b0e2a49",
    "0004_whose_failures": "5c6fcf1bf2be2e24",
    "0005_stalled_runs": "d40ecfdbde187de2",
    "0006_error_words": "2b80b26f70510d22",
    "0007_credentials_and_audit": "7ed6b569b263f49e",
    "0008_replaced_files": "2c90ed8ddace7734",
    "0009_builds": "d4b4848e02a0743d",
    "0010_code_texts": "5cd93e3813cea8f5",
    "0011_progress": "0c91725264dfef42",
    "0012_baselines": "862b0948f6e0a85f",
}


#: What a migration may do while a server of the previous version is running.
ADDITIVE = {"add_column", "create_table", "create_index", "f"}
#: The first migration that the rule applies to.
FIRST_ADDITIVE = "0005"


def test_migrations_only_add() -> None:
    """Servers of the previous version go on storing batches while a new one migrates."""
    for path in sorted((MIGRATIONS / "versions").glob("0*.py")):
        if path.name[:4] < FIRST_ADDITIVE:
            continue
        calls = re.findall(r"\bop\.(\w+)\((.*)", path.read_text())
        other = [(name, rest) for name, rest in calls if name not in ADDITIVE]
        # Everyone signs in again; batches need no session.
        assert other == ([("execute", '"DELETE FROM sessions")')] if path.name.startswith("0007") else []), path.name
        # A server of the previous version inserts rows without the new columns.
        for column in re.findall(r"op\.add_column\((.*)", path.read_text()):
            assert "server_default" in column or "nullable=True" in column, column


def test_a_newer_schema_is_no_problem_of_a_running_server(archive: Archive) -> None:
    with archive.read() as tx:
        assert other_version(tx.connection) == ""
    for found, wrong in (("9999", ""), ("0001", f"the schema is 0001, this version needs {schema.HEAD}")):
        archive.execute(sa.update(VERSIONS).values(version_num=found))
        with archive.read() as tx:
            assert other_version(tx.connection) == wrong


def test_migrations_are_not_changed() -> None:
    found = {
        path.stem: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in (MIGRATIONS / "versions").glob("0*.py")
    }
    assert found == RELEASED


def test_a_shrunken_sqlite_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "KEEP_FREE_PAGES", 10)
    path = tmp_path / "catalog.db"
    database = Database(str(path))
    prepare(database)
    table = schema.facts
    with database.write() as connection:
        connection.execute(sa.insert(table), [{"name": f"fact {n}", "value": "x" * 1000} for n in range(8_000)])
    with database.write() as connection:
        connection.execute(sa.delete(table))

    def pages(name: str) -> int:
        with database.read() as connection:
            return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())

    before = pages("page_count")
    assert pages("freelist_count") > 1_000

    assert database.shrink() > 1_000

    assert pages("freelist_count") == 10
    assert pages("page_count") < before / 10
    assert database.shrink() == 0
    database.close()


def test_an_older_catalog_is_backed_up_before_the_upgrade(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "catalog.sqlite"))
    create_old_catalog(database)

    prepare(database)

    database.close()
    copy = tmp_path / f"catalog.sqlite.before-{schema.HEAD}-from-0001"
    assert copy.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(copy) as connection:
        assert connection.execute("SELECT tasks FROM runs WHERE id = 1").fetchone() == (7,)
        assert (
            "code_digest"
            not in connection.execute("SELECT sql FROM sqlite_master WHERE name = 'computations'").fetchone()[0]
        )
    connection.close()


def test_an_unreachable_database_raises_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "CONNECT_S", 2)
    database = Database("postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(StorageError, match="cannot be reached"):
        prepare(database)


@pytest.mark.parametrize("url", ["mysql://host/name", "sqlite://", "sqlite:///:memory:", "://"])
def test_an_unsupported_database_is_refused(url: str) -> None:
    with pytest.raises(StorageError):
        Database(url)


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        Database(str(tmp_path / "file" / "catalog.sqlite"))
    with pytest.raises(StorageError, match="cannot be written"):
        LocalStore(tmp_path / "file" / "store")


def test_a_network_file_system_is_detected(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "/dev/sda / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0\n/dev/sdb /home/local ext4 rw 0 0\n"
        "server:/a /with\\040space cifs rw 0 0\nshort\n"
    )
    paths = {
        path: network_file_system(Path(path), mounts)
        for path in ("/home/ann/x", "/home/local/x", "/var/x", "/with space/x")
    }
    assert paths == {"/home/ann/x": "nfs4", "/home/local/x": "", "/var/x": "", "/with space/x": "cifs"}
    assert network_file_system(Path("/x"), tmp_path / "none") == ""


def test_a_catalog_is_readable_only_by_its_owner(sqlite_url: str, tmp_path: Path) -> None:
    database = Database(str(tmp_path / "new" / "catalog.sqlite"))
    prepare(database)
    assert (tmp_path / "new" / "catalog.sqlite").stat().st_mode & 0o777 == 0o600
    database.close()


def test_a_new_connection_does_not_wait_for_a_transaction_of_another(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    database = Database(str(path))
    assert prepare(database) == "created"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    fresh = Database(str(path))
    # It would wait for half a minute, and fail.
    with fresh.read() as connection:
        assert version(connection) == schema.HEAD
    other.rollback()
    other.close()
    for one in (database, fresh):
        assert one.can_shrink
        one.close()
