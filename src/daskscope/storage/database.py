"""The catalog's database: a SQLite file by default, PostgreSQL by URL.

SQLite runs in WAL mode with ``synchronous=FULL``: a commit is on disk before it is acknowledged, and readers never wait for
the writer. Writing transactions take the lock when they begin; one that read first and wrote later could not be retried.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, make_url

from daskscope.errors import DaskscopeError
from daskscope.storage.mounts import network_file_system

#: How long SQLite waits for another process's transaction before it gives up.
BUSY_MS = 30_000
#: Pages SQLite may keep per connection, in KiB (negative: KiB instead of pages). Eight readers stay below 64 MB.
CACHE_KIB = -8_000

#: Values of one IN list: SQLite takes 32,766 variables a statement, and PostgreSQL 65,535.
STEP = 5_000
#: How long PostgreSQL is waited for: to connect, and for a row that another server holds.
CONNECT_S, LOCK_S = 10, 30


class StorageError(DaskscopeError):
    """The server's storage cannot be used as asked."""


#: What goes wrong between us and a database, whatever its driver calls it.
DatabaseError = sa.exc.SQLAlchemyError


def is_outage(error: BaseException) -> bool:
    """Whether the database, not what it was asked, is the trouble: gone, restarted, full, locked."""
    if isinstance(error, sa.exc.DBAPIError) and error.connection_invalidated:
        return True
    return isinstance(error, sa.exc.OperationalError | sa.exc.TimeoutError | OSError)


def detail_of(error: BaseException) -> str:
    """What the driver says, in one line. For a log: it names hosts and users."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else repr(error)


#: Parts of what drivers say, and what that means to somebody who may not know where the database is.
_MEANINGS = (
    (("disk is full", "no space left", "disk full"), "the database's disk is full"),
    (("locked", "lock timeout"), "the database is held by another program"),
    (("readonly", "read-only"), "the database can only be read"),
    (("password", "authentication", "permission denied"), "the database does not let this server in"),
)


def in_our_words(error: BaseException) -> str:
    """What is wrong with the database, without anything that is nobody's business."""
    said = str(getattr(error, "orig", None) or error).lower()
    for parts, meaning in _MEANINGS:
        if any(part in said for part in parts):
            return meaning
    return "the database cannot be reached" if is_outage(error) else "the database failed; the server's log says how"


class Database:
    """Connections to one catalog; ``read`` and ``write`` are transactions."""

    def __init__(self, url: str) -> None:
        self.url = _normalised(url)
        self.engine = _engine(self.url)
        # One writing transaction at a time per process: SQLite allows no more, and a queue in Python is fair where its
        # busy handler is not.
        self._writing = threading.Lock()

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A reading transaction whose statements all see the same moment.

        In SQLite every one does; PostgreSQL looks anew with each statement, and rows that move in between are in neither answer.
        """
        # Not set for SQLite: its driver would begin transactions itself again, late.
        options = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with self.engine.connect().execution_options(**options) as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        if not self.is_sqlite:
            with self.engine.begin() as connection:
                yield connection
            return
        with self._writing, self.engine.connect().execution_options(immediate=True) as connection, connection.begin():
            yield connection

    def close(self) -> None:
        self.engine.dispose()

    def __repr__(self) -> str:
        return f"<Database {self.url.render_as_string(hide_password=True)}>"


def insert(connection: Connection, table: sa.Table) -> Any:
    """An INSERT that knows ON CONFLICT, of the connection's dialect."""
    return insert_for(connection.dialect.name, table)


def insert_for(dialect: str, table: sa.Table) -> Any:
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        return sqlite_insert(table)
    from sqlalchemy.dialects.postgresql import insert as postgresql_insert

    return postgresql_insert(table)


def in_steps(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Values in parts that one statement takes."""
    return (values[first : first + STEP] for first in range(0, len(values), STEP))


def _normalised(text: str) -> URL:
    if "://" not in text:
        text = f"sqlite:///{text}"
    try:
        url = make_url(text)
    except sa.exc.ArgumentError:
        raise StorageError(f"{text!r} is no database. Give a file name or postgresql://user@host/name.") from None
    if url.get_backend_name() in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite":
        raise StorageError(f"{url.get_backend_name()} is not supported. Use SQLite (a file name) or postgresql://…")
    return url


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        return _sqlite(url)
    try:
        import psycopg  # noqa: F401
    except ImportError:
        from daskscope.errors import MissingExtra

        raise MissingExtra("psycopg", "postgres", "A PostgreSQL database") from None
    # A connection that PostgreSQL dropped (restarted) is noticed before it is used, not by the request that gets it.
    waits = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_S}
    engine = sa.create_engine(url, pool_pre_ping=True, pool_size=10, max_overflow=10, connect_args=waits)
    event.listen(engine, "connect", _bound_waits)
    return engine


def _bound_waits(connection: Any, _: Any) -> None:
    """A server that stopped in mid-transaction must not hold up the others for ever."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{LOCK_S}s'")
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{10 * LOCK_S}s'")
    connection.commit()


def _sqlite(url: URL) -> Engine:
    if not url.database or url.database == ":memory:":
        raise StorageError("The catalog cannot live in memory: give a file name.")
    path = Path(url.database)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Tokens' digests and sessions are in it.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror}. Choose another directory with --data."
        ) from None
    network = network_file_system(path)
    if network:
        raise StorageError(
            f"{path} lies on a network file system ({network}), where SQLite loses data. "
            "Choose a local directory with --data, or use --database postgresql://…"
        )
    engine = sa.create_engine(url, pool_size=8, max_overflow=24)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: Any, _: Any) -> None:
    # We begin transactions ourselves; the driver would begin them late, at the first write.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    _write_ahead(cursor)
    for pragma in (
        "synchronous=FULL",
        "foreign_keys=ON",
        f"cache_size={CACHE_KIB}",
        "journal_size_limit=67108864",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _write_ahead(cursor: Any) -> None:
    """Switch a file to WAL, which lasts. Two that switch a new one at once would deadlock, so SQLite fails one of them without
    waiting, whatever its busy timeout: of 100 starts of four servers, six failed."""
    until = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
        time.sleep(0.01)


def _begin(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")
