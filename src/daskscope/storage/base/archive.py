"""The archive: the database, the keys, the blobs and the clock of a server as one object."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import Executable
from sqlalchemy.engine import Connection, CursorResult

from daskscope import units
from daskscope.storage import schema
from daskscope.storage.base.blobs import BlobStore
from daskscope.storage.base.database import Database, StorageError, T, insert
from daskscope.storage.base.vault import Vault
from daskscope.units import HOUR

if TYPE_CHECKING:
    from typing_extensions import Unpack


#: A channel of its own: servers of earlier versions would not understand its messages.
ACCESS_CHANNEL = "daskscope_access"


def announce_access(tx: Transaction) -> None:
    """Make all servers on this database forget the tokens they have cached, once the transaction is committed.

    PostgreSQL sends the notification with the commit, so it is neither early nor lost while the sending server is alive.
    SQLite has no notifications: a second server on the same file accepts its cached tokens for half a minute.
    """
    if tx.connection.dialect.name == "postgresql":
        tx.execute(sa.select(sa.func.pg_notify(ACCESS_CHANNEL, "")))


# Retention uses the database's clock, and only while it is plausible.
#
# A clock that jumps ahead by 100 days makes every run look old. So a pass compares the time with what it should be: the time of
# the last pass plus the time that has passed since on the monotonic clock. If it is ahead by more than a day, nothing is
# deleted. A clock that still says so a day later was right: the server was off, or its clock was wrong before.

DAY_S = 24 * 3600
#: How far the clock may be ahead, and how long it must stay so to be believed.
MAX_AHEAD_S = BELIEVED_AFTER_S = DAY_S
#: The fact with the time of the last pass of any server.
LAST_PASS = "last retention"


class ClockJump(StorageError):
    """The clock is far ahead of where it should be. The message can be shown to anyone."""


class ClockCheck:
    """Tells the time to the passes of one server."""

    def __init__(self, archive: Archive, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.archive = archive
        self.monotonic = monotonic
        #: The time of the last pass on both clocks: microseconds since the epoch, monotonic seconds.
        self._last: tuple[int, float] | None = None
        #: When the jump was noticed, on the monotonic clock; None while there is none.
        self._noticed: float | None = None

    def now_us(self) -> int:
        """Return the time of the database; raise ``ClockJump`` if it is implausible."""
        here = self.monotonic()
        with self.archive.write() as tx:
            now_us = time_of(tx)
            ahead_s = (now_us - self._expected_us(tx, here, now_us)) / 1e6
            if ahead_s > MAX_AHEAD_S:
                self._noticed = here if self._noticed is None else self._noticed
                left_s = BELIEVED_AFTER_S - (here - self._noticed)
                if left_s > 0:
                    raise ClockJump(
                        f"the clock is {units.duration(int(ahead_s * 1e6))} ahead of where it should be, so nothing is deleted. "
                        f"Correct the clock, or wait: deletion resumes in {units.duration(int(left_s * 1e6))}"
                    )
            self._noticed = None
            statement = insert(tx.connection, schema.facts).values(name=LAST_PASS, value=str(now_us))
            tx.execute(statement.on_conflict_do_update(index_elements=["name"], set_={"value": str(now_us)}))
        self._last = now_us, here
        return now_us

    def _expected_us(self, tx: Transaction, here: float, now_us: int) -> int:
        """Return the expected time; before the first pass of this server, the time of the last event in the database."""
        if self._last is not None:
            wall_us, then = self._last
            return wall_us + int((here - then) * 1e6)
        facts, runs = schema.facts, schema.runs
        stored = tx.execute(sa.select(facts.c.value).where(facts.c.name == LAST_PASS)).scalar()
        if stored is not None:
            return int(stored)
        return int(tx.execute(sa.select(sa.func.max(runs.c.received_us))).scalar() or now_us)


def time_of(tx: Transaction) -> int:
    """Return the time in microseconds: from PostgreSQL's clock, which all servers share, or on SQLite from this server's."""
    if tx.connection.dialect.name == "sqlite":
        return tx.now_us
    return int(tx.execute(sa.text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")).scalar_one())


@dataclass(frozen=True)
class Transaction:
    """One SQL transaction, with everything a query of the catalog needs besides its own arguments."""

    connection: Connection
    vault: Vault
    store: BlobStore
    #: When the transaction began, on the server's clock.
    now_us: int
    #: A cluster that has been silent for longer is lost.
    lost_after_us: int
    #: Called once the transaction is committed, and not if it fails.
    after_commit: list[Callable[[], None]] = field(default_factory=list)

    def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Unpack[tuple[Any, ...]]]:
        return self.connection.execute(statement, parameters)

    @property
    def lost_before_us(self) -> int:
        """A cluster that was last heard from before is lost."""
        return self.now_us - self.lost_after_us

    def rows(self, kind: type[T], query: Executable, parameters: Any = None) -> list[T]:
        """Return the rows of a query as objects of a dataclass whose fields are columns of the query."""
        names = (item.name for item in fields(kind))  # type: ignore[arg-type]
        return [kind(*row) for row in self.execute(query, parameters).columns(*names)]

    def row(self, kind: type[T], query: Executable, parameters: Any = None) -> T | None:
        """Return the only row of a query in the same way; None if there is none."""
        return next(iter(self.rows(kind, query, parameters)), None)

    def seal(self, account: int, data: bytes, place: str) -> bytes:
        return self.vault.seal(self.connection, account, data, place)

    def open(self, account: int, sealed: bytes, place: str) -> bytes:
        return self.vault.open(self.connection, account, sealed, place)

    def sign(self, account: int, text: str) -> str:
        return self.vault.sign(self.connection, account, text)

    def seal_text(self, account: int, text: str, place: str) -> bytes | None:
        return self.vault.seal_text(self.connection, account, text, place)

    def open_text(self, account: int, sealed: bytes | None, place: str) -> str:
        return self.vault.open_text(self.connection, account, sealed, place)


@dataclass
class Archive:
    """The store of a server. Everything is read and written in a transaction."""

    database: Database
    vault: Vault
    store: BlobStore
    clock: Callable[[], int]
    lost_after_us: int
    #: How long files stay after they were replaced.
    keep_replaced_us: int = 48 * HOUR

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        with self.database.read() as connection:
            yield self._transaction(connection)

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        """Begin a read transaction in which every statement sees the same state."""
        with self.database.snapshot() as connection:
            yield self._transaction(connection)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self.database.write() as connection:
            tx = self._transaction(connection)
            yield tx
        for call in tx.after_commit:
            call()

    def close(self) -> None:
        self.database.close()

    def _transaction(self, connection: Connection) -> Transaction:
        return Transaction(connection, self.vault, self.store, self.clock(), self.lost_after_us)
