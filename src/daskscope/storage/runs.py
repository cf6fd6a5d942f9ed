"""A run as a recording: what is in Parquet and what is still buffered, together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.errors import WireError
from daskscope.model.recording import Completeness, Recording
from daskscope.model.table import Table
from daskscope.model.tables import TABLES
from daskscope.storage import schema
from daskscope.storage.blobs import BlobStore, MissingBlob
from daskscope.storage.ingest import SECRET
from daskscope.storage.parquet import from_parquet
from daskscope.storage.vault import Vault
from daskscope.wire.decode import read_frame
from daskscope.wire.file import concatenate, latest


@dataclass(frozen=True)
class StoredBatch:
    """A buffered batch."""

    id: int
    epoch: int
    sequence: int
    name: str
    frame: bytes


@dataclass(frozen=True)
class StoredFile:
    """A Parquet file of a run."""

    id: int
    name: str
    path: str
    rows: int
    nbytes: int


@dataclass(frozen=True)
class Part:
    """Which rows somebody wants: others may come along, a caller selects."""

    tables: tuple[str, ...] = tuple(TABLES)
    window: tuple[int, int] | None = None
    computation: str | None = None


WHOLE = Part()


def buffered(connection: Connection, vault: Vault, account: int, run: int, names: Iterable[str]) -> list[StoredBatch]:
    """Batches that are not compacted, in the order in which they were written."""
    table = schema.batches
    query = (
        sa.select(table.c.id, table.c.epoch, table.c.sequence, table.c.name, table.c.frame)
        .where(table.c.run_id == run, table.c.frame.is_not(None), table.c.damage == "", table.c.name.in_(list(names)))
        .order_by(table.c.epoch, table.c.sequence)
    )
    return [
        StoredBatch(
            row.id, row.epoch, row.sequence, row.name,
            vault.open(connection, account, bytes(row.frame)) if row.name in SECRET else bytes(row.frame),
        )
        for row in connection.execute(query)
    ]  # fmt: skip


def files_of(connection: Connection, run: int, names: Iterable[str] = TABLES) -> list[StoredFile]:
    files = schema.files
    query = sa.select(files).where(files.c.run_id == run, files.c.name.in_(list(names))).order_by(files.c.id)
    return [StoredFile(row.id, row.name, row.path, row.rows, row.nbytes) for row in connection.execute(query)]


#: The bytes of a file of an account, unsealed.
Load = Callable[[int, StoredFile], bytes]


def loader(connection: Connection, vault: Vault, store: BlobStore) -> Load:
    def load(account: int, file: StoredFile) -> bytes:
        data = store.get(file.path)
        return vault.open(connection, account, data) if file.name in SECRET else data

    return load


def read_run(
    connection: Connection, vault: Vault, store: BlobStore, account: int, run: int, source: str, part: Part = WHOLE
) -> Recording:
    """The run's tables. What cannot be read is said in ``damage``; it never keeps the rest from being shown."""
    load = loader(connection, vault, store)
    parts: dict[str, list[Table]] = {}
    damage, damaged = "", 0
    for file in files_of(connection, run, part.tables):
        try:
            table = from_parquet(
                file.name, load(account, file), window=_window(file.name, part), computation=part.computation
            )
        except MissingBlob as error:
            damage, damaged = damage or str(error), damaged + file.nbytes
            continue
        parts.setdefault(file.name, []).append(table)
    for batch in buffered(connection, vault, account, run, part.tables):
        try:
            parts.setdefault(batch.name, []).append(read_frame(batch.frame).table())
        except WireError as error:
            damage, damaged = damage or f"a batch cannot be read ({error})", damaged + len(batch.frame)
    tables = {name: join(name, parts[name]) for name in part.tables if name in parts}
    return Recording(source, tables, completeness(connection, run), damage, damaged)


def _window(name: str, part: Part) -> tuple[int, int] | None:
    # An entity's last row may have been written long after the window: it is needed all the same.
    return None if TABLES[name].key else part.window


def join(name: str, parts: Sequence[Table]) -> Table:
    """One table from its parts; of an entity the newest row."""
    kept = [table for table in parts if table.rows] or [Table.empty(name)]
    joined = concatenate(TABLES[name], kept)
    return latest(joined) if joined.rows else joined


def completeness(connection: Connection, run: int) -> dict[str, Completeness]:
    """How much of each table arrived, by the recorder's own counters."""
    streams, epochs = schema.streams, schema.epochs
    same = (epochs.c.run_id == streams.c.run_id) & (epochs.c.epoch == streams.c.epoch)
    query = sa.select(streams, epochs.c.from_start).join(epochs, same).where(streams.c.run_id == run)
    parts: dict[str, Completeness] = {}
    for row in connection.execute(query).mappings():
        before = 0 if row["from_start"] else max(0, row["first"] - 1)
        known = parts.get(row["name"], Completeness())
        missing = max(0, row["kept"] - before - row["rows"])
        parts[row["name"]] = Completeness(
            known.rows + row["rows"], known.dropped + row["dropped"], known.missing + missing
        )
    return {name: parts[name] for name in TABLES if name in parts}
