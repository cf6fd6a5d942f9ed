"""The archive: the database, the keys, the blobs and the clock of a server as one object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable
from sqlalchemy.engine import Connection, CursorResult

from daskscope.storage.blobs import BlobStore
from daskscope.storage.database import Database, T
from daskscope.storage.vault import Vault
from daskscope.units import HOUR

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
