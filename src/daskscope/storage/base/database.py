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
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, make_url

from daskscope.errors import DaskscopeError

#: Free pages of 4 kB that stay in a SQLite file, and how many are returned in one transaction, which takes 20 ms.
KEEP_FREE_PAGES, SHRINK_PAGES = 1_000, 500
#: How long SQLite waits for a transaction of another process.
BUSY_MS = 30_000
#: SQLite's cache per connection, in KiB (negative means KiB instead of pages). Eight readers stay below 64 MB.
CACHE_KIB = -8_000

#: Maximum values of an IN list: SQLite allows 32,766 variables per statement, PostgreSQL 65,535.
STEP = 5_000
#: How long to wait for PostgreSQL: for a connection, and for a row that another server has locked.
CONNECT_S, LOCK_S = 5, 30
#: Maximum connections to PostgreSQL by default, and how many of them stay open.
CONNECTIONS, KEPT_CONNECTIONS = 20, 10


T = TypeVar("T")


class StorageError(DaskscopeError):
    """The server's storage cannot be used as configured."""


class InvalidInput(StorageError):
    """The caller asks for something that is not allowed. Every other ``StorageError`` is a fault of the server."""


#: Any error of a database driver.
DatabaseError = sa.exc.SQLAlchemyError


def is_outage(error: BaseException) -> bool:
    """Return whether the database is unavailable (down, restarted, full, locked), as opposed to a bad statement."""
    if isinstance(error, sa.exc.DBAPIError) and error.connection_invalidated:
        return True
    return isinstance(error, sa.exc.OperationalError | sa.exc.TimeoutError | OSError)


def detail_of(error: BaseException) -> str:
    """Return the driver's message in one line. For logs only: it contains hosts and users."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else repr(error)


#: Parts of driver messages, and a public message for each that does not reveal the database.
_MEANINGS = (
    (("disk is full", "no space left", "disk full"), "the database's disk is full"),
    (("locked", "lock timeout"), "the database is locked by another program"),
    (("statement timeout", "did not answer"), "the database does not answer in time"),
    (("readonly", "read-only"), "the database is read-only"),
    (("password", "authentication", "permission denied"), "the database refuses this server's credentials"),
)


def database_problem(error: BaseException) -> str:
    """Return the problem of the database, without hosts, users or paths."""
    said = str(getattr(error, "orig", None) or error).lower()
    for parts, meaning in _MEANINGS:
        if any(part in said for part in parts):
            return meaning
    return "the database cannot be reached" if is_outage(error) else "the database failed; see the server's log"


#: How SQLite reports a file that it cannot read.
_DAMAGE = ("malformed", "not a database", "file is encrypted")


@contextmanager
def explained_damage(database: str) -> Iterator[None]:
    """Raise ``StorageError`` with the file and the way back if a SQLite catalog turns out to be damaged."""
    try:
        yield
    except sa.exc.DatabaseError as error:
        if not any(sign in str(error.orig).lower() for sign in _DAMAGE):
            raise
        raise StorageError(
            f"The catalog {database} is damaged ({detail_of(error)}). Restore it from a backup and check it: "
            f"cp BACKUP/catalog.db {database}; rm -f {database}-wal {database}-shm; daskscope doctor. "
            f"Without a backup, save what can be read: sqlite3 {database} .recover | sqlite3 recovered.db"
        ) from None


class Database:
    """Connections to one catalog. ``read`` and ``write`` are transactions.

    ``statement_s`` limits every statement of PostgreSQL; 0 means unlimited.
    """

    def __init__(self, url: str, *, connections: int = CONNECTIONS, statement_s: int = 0) -> None:
        self.url = _normalised(url)
        self._aborted = threading.Event()
        if self.url.get_backend_name() == "sqlite":
            self.engine = _sqlite(self.url)
        else:
            self.engine = _postgresql(self.url, connections, statement_s, self._aborted)
        # One write transaction at a time per process: SQLite allows only one, and a queue in Python is fair while
        # SQLite's busy handler is not.
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
        """Begin a read transaction in which all statements see the same state.

        SQLite always does so. PostgreSQL takes a new snapshot per statement, so rows that move in between are in
        neither result.
        """
        # Not for SQLite: the driver would begin transactions itself again, too late.
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

    def shrink(self) -> int:
        """Return free pages of a SQLite file to the file system, in short transactions, and return how many.

        PostgreSQL does so itself. Some stay for the next rows.
        """
        total = 0
        while self.is_sqlite:
            with self.write() as connection:
                free = self._free_pages(connection)
                if free <= KEEP_FREE_PAGES:
                    break
                pages = min(SHRINK_PAGES, free - KEEP_FREE_PAGES)
                # The driver frees a page per fetched row, and SQLAlchemy fetches none.
                connection.connection.cursor().execute(f"PRAGMA incremental_vacuum({pages})").fetchall()
                freed = free - self._free_pages(connection)
            total += freed
            if not freed:
                # A file restored from ``sqlite3 .dump`` has no ``auto_vacuum`` and never shrinks.
                break
        return total

    @staticmethod
    def _free_pages(connection: Connection) -> int:
        return int(connection.exec_driver_sql("PRAGMA freelist_count").scalar_one())

    def abort(self) -> None:
        """End every statement that waits for PostgreSQL, and refuse new ones: the server shuts down."""
        self._aborted.set()

    def close(self) -> None:
        self.engine.dispose()

    def __repr__(self) -> str:
        return f"<Database {self.url.render_as_string(hide_password=True)}>"


def insert(connection: Connection, table: sa.Table) -> Any:
    """Return an INSERT of the connection's dialect, which supports ON CONFLICT."""
    return insert_for(connection.dialect.name, table)


def insert_for(dialect: str, table: sa.Table) -> Any:
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        return sqlite_insert(table)
    from sqlalchemy.dialects.postgresql import insert as postgresql_insert

    return postgresql_insert(table)


def in_steps(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Split values into parts that fit into one statement."""
    return (values[first : first + STEP] for first in range(0, len(values), STEP))


def of_row(kind: type[T], row: sa.RowMapping, **more: Any) -> T:
    """Return an object of a dataclass whose fields are columns of a row; ``more`` are fields that are not."""
    names = (item.name for item in fields(kind) if item.name not in more)  # type: ignore[arg-type]
    return kind(**{name: row[name] for name in names}, **more)


def _normalised(text: str) -> URL:
    if "://" not in text:
        text = f"sqlite:///{text}"
    try:
        url = make_url(text)
    except sa.exc.ArgumentError:
        raise StorageError(f"{text!r} is not a database. Give a file name or postgresql://user@host/name.") from None
    if url.get_backend_name() in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite":
        raise StorageError(f"{url.get_backend_name()} is not supported. Use SQLite (a file name) or postgresql://…")
    return url


def _postgresql(url: URL, connections: int, statement_s: int, aborted: threading.Event) -> Engine:
    try:
        from daskscope.storage.base import postgresql
    except ImportError:
        from daskscope.errors import MissingExtra

        raise MissingExtra("psycopg", "postgres", "A PostgreSQL database") from None
    waits = {"connect_timeout": CONNECT_S, **postgresql.SILENT_HOST}
    patience = postgresql.Patience(statement_s, aborted)

    def connect(_dialect: Any, _record: Any, arguments: Any, options: dict[str, Any]) -> Any:
        return postgresql.connect(patience, *arguments, **options)

    def bound_waits(connection: Any, _: Any) -> None:
        """Bound waits, so that a server that stops in the middle of a transaction does not block the others forever."""
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{LOCK_S}s'")
            cursor.execute(f"SET statement_timeout = '{statement_s}s'")
            cursor.execute(f"SET idle_in_transaction_session_timeout = '{10 * LOCK_S}s'")
        connection.commit()

    kept = min(connections, KEPT_CONNECTIONS)
    engine = sa.create_engine(
        url,
        # Detect connections that PostgreSQL dropped (on restart) before using them.
        pool_pre_ping=True,
        pool_size=kept,
        max_overflow=connections - kept,
        pool_timeout=CONNECT_S,
        connect_args={name: value for name, value in waits.items() if name not in url.query},
    )
    event.listen(engine, "do_connect", connect)
    event.listen(engine, "connect", bound_waits)
    return engine


def _sqlite(url: URL) -> Engine:
    if not url.database or url.database == ":memory:":
        raise StorageError("The catalog cannot be in memory. Give a file name.")
    path = Path(url.database)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The file contains token digests and sessions.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror}. Choose another directory with --data."
        ) from None
    network = network_file_system(path)
    if network:
        raise StorageError(
            f"{path} is on a network file system ({network}), where SQLite loses data. "
            "Choose a local directory with --data, or use --database postgresql://…"
        )
    engine = sa.create_engine(url, pool_size=8, max_overflow=24)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: Any, _: Any) -> None:
    # We begin transactions ourselves. The driver would do so too late, at the first write.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    if not cursor.execute("PRAGMA page_count").fetchone()[0]:
        # Only takes effect in a new file. In any other file it would wait for the transaction of another connection.
        cursor.execute("PRAGMA auto_vacuum=INCREMENTAL")
    _write_ahead(cursor)
    for pragma in (
        "synchronous=FULL",
        "foreign_keys=ON",
        # Overwrite deleted rows: names, keys and prefixes are not encrypted.
        "secure_delete=ON",
        f"cache_size={CACHE_KIB}",
        "journal_size_limit=67108864",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _write_ahead(cursor: Any) -> None:
    """Switch a file to WAL, permanently.

    Two connections that switch a new file at the same time would deadlock, so SQLite fails one of them at once,
    whatever the busy timeout: 6 of 100 starts of four servers failed.
    """
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


NETWORK = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "afs", "9p", "glusterfs", "fuse.sshfs",
    "fuse.glusterfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.ceph", "pvfs2", "orangefs", "panfs", "wekafs",
}  # fmt: skip
MOUNTS = Path("/proc/mounts")


def network_file_system(path: Path, mounts: Path = MOUNTS) -> str:
    """Return the type of the network file system that ``path`` is on, or "" if it is local or unknown."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    absolute = path.resolve()
    best, kind = -1, ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(fields[1].encode().decode("unicode_escape"))
        # The last mount on a directory is the visible one.
        if (absolute == point or point in absolute.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind if kind in NETWORK else ""
