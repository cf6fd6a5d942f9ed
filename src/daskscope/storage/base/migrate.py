"""Bring a catalog to this version's schema: create it, upgrade it, or refuse a newer one.

One query recognises an up-to-date catalog. Alembic, which takes a second to import, is imported only if there is
something to migrate. Servers that start at the same time take turns.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.base.database import Database, StorageError, detail_of

MIGRATIONS = Path(__file__).parent.parent / "migrations"
#: The number of the lock among servers on one PostgreSQL. Any constant works.
LOCK = 0x6461736B73636F70
#: How long to wait for a table that is to be changed, and how often. Everything else that needs the table waits meanwhile.
TABLE_WAIT, ATTEMPTS = "3s", 30
#: PostgreSQL's code of a lock that was not available in time.
LOCK_TIMEOUT = "55P03"

VERSIONS = sa.Table("alembic_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True))


def prepare(database: Database) -> str:
    """Prepare the catalog. Return the step that was taken: ``created``, ``upgraded from 0001``, or empty."""
    try:
        with database.read() as connection:
            found = version(connection)
    except sa.exc.OperationalError as error:
        raise StorageError(f"The database cannot be reached: {detail_of(error)}") from None
    if found == schema.HEAD:
        return ""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _migrate(database)
        except sa.exc.OperationalError as error:
            # A backup or a long query locks the tables that it reads.
            if attempt == ATTEMPTS or getattr(error.orig, "sqlstate", "") != LOCK_TIMEOUT:
                raise
            time.sleep(random.uniform(0.5, 1.5))
    raise AssertionError


def _migrate(database: Database) -> str:
    """Create or upgrade the catalog, alone and in one transaction."""
    with database.write() as connection, alone(connection):
        # Check again: another server may have migrated while we waited.
        found = version(connection)
        if found == schema.HEAD:
            return ""
        if not found:
            schema.metadata.create_all(connection)
            VERSIONS.create(connection, checkfirst=True)
            connection.execute(sa.insert(VERSIONS).values(version_num=schema.HEAD))
            return "created"
        if found > schema.HEAD:
            raise StorageError(
                f"The database was created by a newer daskscope (schema {found}, this one knows {schema.HEAD}). "
                "Upgrade with: pip install --upgrade 'daskscope[server]'"
            )
        if database.is_sqlite:
            # A reader next to our transaction sees the catalog as it was, and nothing can write to it meanwhile.
            _back_up(Path(str(database.url.database)), found)
        upgrade(connection, schema.HEAD)
        return f"upgraded from {found}"


def version(connection: Connection) -> str:
    """Return the schema version of a catalog; empty for an empty database."""
    if not sa.inspect(connection).has_table(VERSIONS.name):
        return ""
    return str(connection.execute(sa.select(VERSIONS.c.version_num)).scalar() or "")


def other_version(connection: Connection) -> str:
    """Return the problem of a catalog's schema; empty if it is this version's or a newer one.

    Migrations only add: a server goes on while a newer one migrates its catalog.
    """
    found = version(connection)
    return "" if found >= schema.HEAD else f"the schema is {found or 'missing'}, this version needs {schema.HEAD}"


def upgrade(connection: Connection, target: str) -> None:
    """Run the migrations up to ``target`` inside the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, target)


@contextmanager
def alone(connection: Connection) -> Iterator[None]:
    """Keep other servers from migrating the same catalog until the transaction ends."""
    # SQLite: the transaction holds the write lock already.
    if connection.dialect.name == "postgresql":
        # Another server's migration of many runs takes longer than the lock timeout, so lift it here.
        wait = sa.text("SELECT set_config('lock_timeout', :patience, true)")
        connection.execute(wait, {"patience": "0"})
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        connection.execute(wait, {"patience": TABLE_WAIT})
    yield


def _back_up(path: Path, found: str) -> None:
    """Copy the catalog to a file next to it: a migration cannot be undone."""
    copy = path.with_name(f"{path.name}.before-{schema.HEAD}-from-{found}")
    with sqlite3.connect(path) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    source.close()
    target.close()
    copy.chmod(0o600)
