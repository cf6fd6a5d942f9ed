"""A catalog is created, upgraded or refused, with the same schema either way; on SQLite and on PostgreSQL.

Until there is a second migration, upgrades are tested with a made-up one.
"""

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
from tests.helpers.next_version import MIGRATION, NEXT, write_migrations
from tests.helpers.schema_dumps import SCHEMAS, load_dump
from tests.helpers.services import Postgres
from tests.helpers.waiting import until

from daskscope.storage import schema
from daskscope.storage.base import database as database_module
from daskscope.storage.base import migrate
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
    version,
)
from daskscope.storage.catalog.baselines import find_runs
from daskscope.storage.catalog.computations import list_computations
from daskscope.storage.catalog.error_groups import list_error_groups
from daskscope.storage.catalog.reports import list_reports
from daskscope.storage.people.accounts import find_account
from daskscope.storage.people.tokens import list_tokens

#: The schema before ``next_version`` changes it.
CURRENT = schema.HEAD


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


def start_at_once(url: str) -> list[str]:
    """Prepare a catalog from four servers at the same time; return what each did, sorted."""
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
    return sorted(done, key=str)


def test_servers_that_start_at_once_create_one_catalog(two_empty_databases: list[Database]) -> None:
    url = two_empty_databases[0].url.render_as_string(hide_password=False)
    assert start_at_once(url) == ["", "", "", "created"]


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
    monkeypatch.setattr(database_module, "LOCK_S", 0.5)
    url = postgres.empty()
    database, done = Database(url), list[str]()
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    thread = threading.Thread(target=lambda: done.append(prepare(database)))
    with Database(url).engine.connect() as migrating:
        migrating.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        thread.start()
        until(lambda: migrating.execute(sa.text(waiting)).scalar_one() == 1, "a waiting server")
        # Twice the limit for any other lock, which a busy machine must not exceed.
        time.sleep(1.0)
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


#: Digests of released migrations, which catalogs have run. For the next change of the schema:
#: 1. change the tables in ``storage/schema``, add a migration file, and set ``schema.HEAD`` to its number;
#: 2. run ``python -m tests.helpers.schema_dumps``, which adds the dumps of the new schema;
#: 3. add the digest here. Once released, neither the file nor its dumps change.
RELEASED = {
    "0001_catalog": "30b5695428a73bdb",
}


def test_migrations_are_not_changed() -> None:
    found = {
        path.stem: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in (MIGRATIONS / "versions").glob("0*.py")
    }
    assert found == RELEASED


def test_there_are_dumps_of_every_released_schema() -> None:
    expected = {f"{name[:4]}.{kind}.sql" for name in RELEASED for kind in ("sqlite", "postgresql")}
    assert {path.name for path in SCHEMAS.iterdir()} == expected
    assert max(RELEASED)[:4] == schema.HEAD


def check_dumped_rows(archive: Archive) -> None:
    """Check that everything ``schema_dumps.fill`` stored can be read, also encrypted texts."""
    assert archive.run("old")["tasks"] == 3
    assert archive.recording(archive.run("old")["id"])["tasks"].rows == 3
    with archive.database.write() as connection:
        archive.vault.check(connection)
    with archive.read() as tx:
        assert [one.code for one in list_computations(tx, archive.account)] == ["x.compute()"]
        assert [group.sample.traceback for group in list_error_groups(tx, archive.account)] == ["Traceback"]
        assert [one.label for one in list_tokens(tx, archive.account, None, include_inactive=True)] == ["nightly"]
        assert [report.title for report in list_reports(tx, archive.account)] == ["Nightly"]
        assert find_runs(tx, archive.account, "main", "test_sum") == [{"total": 1}]


@pytest.mark.parametrize("released", [name[:4] for name in RELEASED])
def test_a_catalog_of_every_release_is_upgraded(
    two_empty_databases: list[Database], tmp_path: Path, released: str
) -> None:
    old, fresh = two_empty_databases
    load_dump(old, released)

    assert prepare(old) == ("" if released == schema.HEAD else f"upgraded from {released}")

    prepare(fresh)
    found = describe(old)
    assert set(found) >= {table.name for table in schema.metadata.sorted_tables}
    assert found == describe(fresh)
    check_dumped_rows(Archive(old, LocalStore(tmp_path / "blobs"), account=1))


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make this process the next version, which has one more migration."""
    monkeypatch.setattr(migrate, "MIGRATIONS", write_migrations(tmp_path / "migrations"))
    monkeypatch.setattr(schema, "HEAD", NEXT)
    yield


def create_current_catalog(database: Database) -> None:
    load_dump(database, CURRENT)


def test_the_next_version_upgrades_a_catalog(
    two_empty_databases: list[Database], tmp_path: Path, next_version: None
) -> None:
    old, before = two_empty_databases
    for database in (old, before):
        create_current_catalog(database)

    assert prepare(old) == f"upgraded from {CURRENT}"

    assert prepare(old) == ""
    found, known = describe(old), describe(before)
    assert [column["name"] for column in found["runs"].pop("columns")] == [
        *(column["name"] for column in known["runs"].pop("columns")),
        "made_up",
    ]
    assert found == known
    archive = Archive(old, LocalStore(tmp_path / "blobs"), account=1)
    check_dumped_rows(archive)
    # This version does not know the new column.
    archive.ingest(numbered([[task(0)]], cluster="new"))
    with old.read() as connection:
        rows = connection.execute(sa.text("SELECT cluster, made_up FROM runs ORDER BY id")).all()
    assert [tuple(row) for row in rows] == [("old", 7), ("new", 7)]


def test_servers_that_start_at_once_upgrade_a_catalog_once(
    two_empty_databases: list[Database], next_version: None
) -> None:
    database = two_empty_databases[0]
    create_current_catalog(database)
    done = start_at_once(database.url.render_as_string(hide_password=False))
    assert done == ["", "", "", f"upgraded from {CURRENT}"]


def test_a_failed_migration_changes_nothing(two_empty_databases: list[Database], next_version: None) -> None:
    database, before = two_empty_databases
    for one in two_empty_databases:
        create_current_catalog(one)
    (file,) = (migrate.MIGRATIONS / "versions").glob(f"{NEXT}_*")
    file.write_text(file.read_text() + "    raise OSError('no space')\n")
    with pytest.raises(OSError, match="no space"):
        prepare(database)
    assert describe(database) == describe(before)
    with database.read() as connection:
        assert version(connection) == CURRENT


def test_a_catalog_that_the_next_version_upgraded_is_refused_but_not_by_a_running_server(
    two_empty_databases: list[Database], next_version: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = two_empty_databases[0]
    create_current_catalog(database)
    with database.read() as connection:
        assert other_version(connection) == f"the schema is {CURRENT}, this version needs {NEXT}"
    prepare(database)
    monkeypatch.setattr(schema, "HEAD", CURRENT)
    with pytest.raises(StorageError, match=rf"newer daskscope \(schema {NEXT}, this one knows {CURRENT}\)"):
        prepare(database)
    with database.read() as connection:
        assert other_version(connection) == ""


def test_a_catalog_is_backed_up_before_the_upgrade(tmp_path: Path, next_version: None) -> None:
    database = Database(str(tmp_path / "catalog.sqlite"))
    create_current_catalog(database)

    prepare(database)

    database.close()
    copy = tmp_path / f"catalog.sqlite.before-{NEXT}-from-{CURRENT}"
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT tasks FROM runs").fetchone() == (3,)
        (text,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'runs'").fetchone()
    assert "made_up" not in text


#: What a migration may do while a server of the previous version is running; ``op.f`` only names an index.
ADDITIVE = {"add_column", "create_table", "create_index", "f"}


def forbidden_operations(migration: str) -> list[str]:
    """Return the operations of a migration after which a server of the previous version could not store batches."""
    calls = re.findall(r"\bop\.(\w+)\((.*)", migration)
    # A server of the previous version inserts rows without the new columns.
    return [
        name
        for name, rest in calls
        if name not in ADDITIVE
        or (name == "add_column" and "server_default" not in rest and "nullable=True" not in rest)
    ]


def test_migrations_only_add() -> None:
    """Servers of the previous version go on storing batches while a new one migrates."""
    for path in sorted((MIGRATIONS / "versions").glob("0*.py")):
        assert forbidden_operations(path.read_text()) == [], path.name
    assert forbidden_operations(MIGRATION) == []
    assert forbidden_operations(MIGRATION.replace("server_default", "default")) == ["add_column"]
    assert forbidden_operations('op.drop_column("runs", "tasks")\nop.execute("DELETE FROM runs")') == [
        "drop_column",
        "execute",
    ]


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
        with one.read() as connection:
            # Incremental: deleted rows free space.
            assert connection.exec_driver_sql("PRAGMA auto_vacuum").scalar_one() == 2
        one.close()
