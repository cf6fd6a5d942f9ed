"""A run as a recording: what is in Parquet and what is still buffered, together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.errors import WireError
from daskscope.model.recording import Completeness, Recording
from daskscope.model.table import Table
from daskscope.model.tables import TABLES
from daskscope.storage import schema
from daskscope.storage.blobs import BlobStore, MissingBlob
from daskscope.storage.database import StorageError
from daskscope.storage.ingest import SECRET
from daskscope.storage.parquet import from_parquet
from daskscope.storage.vault import BrokenSeal, Vault
from daskscope.wire.decode import read_frame
from daskscope.wire.file import concatenate, latest, rows_by_table


@dataclass(frozen=True)
class StoredBatch:
    """A buffered batch; without a frame where its seal is broken."""

    id: int
    epoch: int
    sequence: int
    name: str
    frame: bytes
    damage: str = ""

    def table(self) -> Table:
        """Its rows, or a ``WireError``."""
        if self.damage:
            raise WireError(self.damage)
        return read_frame(self.frame).table()


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
    #: Rows that overlap it.
    window: tuple[int, int] | None = None
    computation: str | None = None
    #: Which columns; others may be empty.
    columns: tuple[str, ...] | None = None


WHOLE = Part()


def buffered(
    connection: Connection, vault: Vault, account: int, run: int, names: Iterable[str], most_nbytes: int = 0
) -> list[StoredBatch]:
    """Batches that are not compacted, in the order in which they were written; the first of them up to a size, if one is given."""
    table = schema.batches
    query = (
        sa.select(table.c.id, table.c.epoch, table.c.sequence, table.c.name, table.c.frame)
        .where(table.c.run_id == run, table.c.frame.is_not(None), table.c.damage == "", table.c.name.in_(list(names)))
        .order_by(table.c.epoch, table.c.sequence)
        .execution_options(yield_per=100)
    )
    batches: list[StoredBatch] = []
    nbytes = 0
    with connection.execute(query) as rows:
        for row in rows:
            batches.append(_opened(connection, vault, account, row))
            nbytes += len(row.frame)
            if most_nbytes and nbytes >= most_nbytes:
                break
    return batches


def _opened(connection: Connection, vault: Vault, account: int, row: Any) -> StoredBatch:
    frame, damage = bytes(row.frame), ""
    if row.name in SECRET:
        try:
            frame = vault.open(connection, account, frame)
        except BrokenSeal as error:
            frame, damage = b"", str(error)
    return StoredBatch(row.id, row.epoch, row.sequence, row.name, frame, damage)


def quarantined(connection: Connection, run: int) -> list[tuple[str, int]]:
    """Batches that cannot be read and were put aside: why, and how many bytes."""
    table = schema.batches
    query = sa.select(table.c.damage, sa.func.length(table.c.frame)).where(
        table.c.run_id == run, table.c.frame.is_not(None), table.c.damage != ""
    )
    return [(why, nbytes) for why, nbytes in connection.execute(query.order_by(table.c.id))]


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
            table = _table(load(account, file), file, part)
        except (MissingBlob, BrokenSeal, UnreadableFile) as error:
            damage, damaged = damage or str(error), damaged + file.nbytes
            continue
        parts.setdefault(file.name, []).append(table)
    for batch in buffered(connection, vault, account, run, part.tables):
        try:
            parts.setdefault(batch.name, []).append(batch.table())
        except WireError as error:
            damage, damaged = damage or _unreadable(str(error)), damaged + len(batch.frame)
    for why, nbytes in quarantined(connection, run):
        damage, damaged = damage or _unreadable(why), damaged + nbytes
    tables = {name: join(name, parts[name]) for name in part.tables if name in parts}
    counts = completeness(connection, run)
    return Recording(source, tables, counts, damage, damaged, missing_batches(connection, run))


def _unreadable(why: str) -> str:
    return f"a batch cannot be read ({why})"


class UnreadableFile(StorageError):
    """A stored file is not what was stored."""


def _table(data: bytes, file: StoredFile, part: Part) -> Table:
    try:
        window = _window(file.name, part)
        return from_parquet(file.name, data, window=window, computation=part.computation, columns=part.columns)
    except (ValueError, OSError, KeyError) as error:
        # What pyarrow raises for bytes that are no Parquet, or not all of it.
        text = (str(error).splitlines() or [""])[0][:200]
        raise UnreadableFile(f"the stored file {file.path} is damaged ({text})") from None


def _window(name: str, part: Part) -> tuple[int, int] | None:
    # An entity's last row may have been written long after the window: it is needed all the same.
    return None if TABLES[name].key else part.window


def join(name: str, parts: Sequence[Table]) -> Table:
    """One table from its parts; of an entity the newest row."""
    kept = [table for table in parts if table.rows] or [Table.empty(name)]
    joined = concatenate(TABLES[name], kept)
    if not joined.rows or not joined.definition.key:
        return joined
    times = joined[joined.definition.time]
    # A batch that came late lies behind a newer row that was compacted before.
    if (times[1:] < times[:-1]).any():
        joined = joined.take(np.argsort(times, kind="stable"))
    return latest(joined)


def completeness(connection: Connection, run: int) -> dict[str, Completeness]:
    """How much of each table arrived, by the recorder's own counters."""
    streams, epochs, runs = schema.streams, schema.epochs, schema.runs
    same = (epochs.c.run_id == streams.c.run_id) & (epochs.c.epoch == streams.c.epoch)
    query = sa.select(streams, epochs.c.from_start).join(epochs, same).where(streams.c.run_id == run)
    parts: dict[str, Completeness] = {}
    for row in connection.execute(query).mappings():
        before = 0 if row["from_start"] else max(0, row["first"] - 1)
        known = parts.get(row["name"], Completeness())
        missing = max(0, row["kept"] - before - row["rows"])
        dropped = row["dropped"] - (0 if row["from_start"] else max(0, row["dropped_before"] - 1))
        parts[row["name"]] = Completeness(known.rows + row["rows"], known.dropped + dropped, known.missing + missing)
    # A batch tells of its own table only; of one that had no batch since, the cluster's own row does.
    lives = connection.execute(sa.select(epochs.c.from_start).where(epochs.c.run_id == run)).scalars().all()
    if lives == [1]:
        text = connection.execute(sa.select(runs.c.dropped).where(runs.c.id == run)).scalar_one()
        for name, rows in rows_by_table(text).items():
            known = parts.get(name, Completeness())
            parts[name] = replace(known, dropped=max(known.dropped, rows))
    return {name: parts[name] for name in TABLES if name in parts}


def missing_batches(connection: Connection, run: int) -> int:
    """Numbers between the first batch and the last of each life that no batch has."""
    epochs = schema.epochs
    query = sa.select(epochs.c.lowest, epochs.c.highest, epochs.c.taken).where(epochs.c.run_id == run)
    return sum(max(0, row.highest + 2 - row.lowest - row.taken) for row in connection.execute(query) if row.taken)
