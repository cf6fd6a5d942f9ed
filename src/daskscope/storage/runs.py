"""A run as a recording: what is in Parquet and what is still buffered, together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from daskscope.storage.database import Database, StorageError
from daskscope.storage.ingest import SECRET
from daskscope.storage.parquet import from_parquet
from daskscope.storage.vault import BrokenSeal, Vault
from daskscope.wire.decode import read_frame
from daskscope.wire.file import concatenate, latest, rows_by_table

#: Times a run is read whose files a compaction puts together meanwhile. One merges a run every five seconds at most, and most
#: runs are read in less: three in a row do not happen by themselves.
ATTEMPTS = 3
#: Rows a run may have when it is read: one for each byte that is stored of it, where real ones take five and more, and so many
#: besides. Frames of constants claim a thousand a byte, and each takes 300 bytes of memory when it is read.
SPARE_ROWS = 2_000_000


@dataclass(frozen=True)
class StoredBatch:
    """A buffered batch; without a frame where its seal is broken."""

    id: int
    epoch: int
    sequence: int
    name: str
    frame: bytes
    #: As its header says.
    rows: int
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


@dataclass(frozen=True)
class Most:
    """How much of a buffer is read at once."""

    nbytes: int
    rows: int


def buffered(
    connection: Connection, vault: Vault, account: int, run: int, names: Iterable[str], most: Most | None = None
) -> list[StoredBatch]:
    """Batches that are not compacted, in the order in which they were written; as many as fit, and one at least."""
    table = schema.batches
    query = (
        sa.select(table.c.id, table.c.epoch, table.c.sequence, table.c.name, table.c.frame, table.c.rows)
        .where(table.c.run_id == run, table.c.frame.is_not(None), table.c.damage == "", table.c.name.in_(list(names)))
        .order_by(table.c.epoch, table.c.sequence)
        .execution_options(yield_per=100)
    )
    batches: list[StoredBatch] = []
    nbytes = rows = 0
    with connection.execute(query) as found:
        for row in found:
            nbytes, rows = nbytes + len(row.frame), rows + row.rows
            if most is not None and batches and (nbytes > most.nbytes or rows > most.rows):
                break
            batches.append(_opened(connection, vault, account, row))
    return batches


def _opened(connection: Connection, vault: Vault, account: int, row: Any) -> StoredBatch:
    frame, damage = bytes(row.frame), ""
    if row.name in SECRET:
        try:
            frame = vault.open(connection, account, frame)
        except BrokenSeal as error:
            frame, damage = b"", str(error)
    return StoredBatch(row.id, row.epoch, row.sequence, row.name, frame, row.rows, damage)


@dataclass(frozen=True)
class Lost:
    """Something of a run that is stored and cannot be read."""

    name: str
    rows: int
    nbytes: int
    why: str


def quarantined(connection: Connection, run: int) -> list[Lost]:
    """Batches that cannot be read and were put aside."""
    table = schema.batches
    query = sa.select(table.c.name, table.c.rows, sa.func.length(table.c.frame), table.c.damage).where(
        table.c.run_id == run, table.c.frame.is_not(None), table.c.damage != ""
    )
    rows = connection.execute(query.order_by(table.c.id))
    return [Lost(name, count, nbytes, _unreadable(why)) for name, count, nbytes, why in rows]


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
    """The run's tables. What cannot be read is said in ``damage``; it never keeps the rest from being shown.

    Within one transaction: who reads for others wants ``read_steadily``.
    """
    return _recording(connection, run, source, part, _read(connection, vault, store, account, run, part))


def read_steadily(
    database: Database, vault: Vault, store: BlobStore, account: int, run: int, source: str, part: Part = WHOLE
) -> Recording:
    """The run's tables at one moment, whatever a compaction does meanwhile.

    It deletes the files it put together as soon as nobody names them. Where one is gone that is no longer named, nothing is lost:
    the list is old, and a new one is read.
    """
    for _ in range(ATTEMPTS):
        with database.snapshot() as connection:
            read = _read(connection, vault, store, account, run, part)
            recording = _recording(connection, run, source, part, read)
        if not read.missing:
            break
        with database.read() as connection:
            named = {file.path for file in files_of(connection, run, part.tables)}
        if named.issuperset(file.path for file in read.missing):
            break
    return recording


@dataclass
class _Read:
    """What was found of a run."""

    parts: dict[str, list[Table]] = field(default_factory=dict)
    lost: list[Lost] = field(default_factory=list)
    #: Files that were named and are not there.
    missing: list[StoredFile] = field(default_factory=list)


def _read(connection: Connection, vault: Vault, store: BlobStore, account: int, run: int, part: Part) -> _Read:
    load, read = loader(connection, vault, store), _Read()
    files = files_of(connection, run, part.tables)
    batches = buffered(connection, vault, account, run, part.tables)
    _check_rows(files, batches)
    for file in files:
        try:
            table = _table(load(account, file), file, part)
        except (MissingBlob, BrokenSeal, UnreadableFile) as error:
            read.lost.append(Lost(file.name, file.rows, file.nbytes, str(error)))
            if isinstance(error, MissingBlob):
                read.missing.append(file)
            continue
        read.parts.setdefault(file.name, []).append(table)
    for batch in batches:
        try:
            read.parts.setdefault(batch.name, []).append(batch.table())
        except WireError as error:
            read.lost.append(Lost(batch.name, batch.rows, len(batch.frame), _unreadable(str(error))))
    read.lost += quarantined(connection, run)
    return read


class TooManyRows(StorageError):
    """A run has more rows than real ones could be in its bytes."""


def _check_rows(files: Sequence[StoredFile], batches: Sequence[StoredBatch]) -> None:
    rows = sum(file.rows for file in files) + sum(batch.rows for batch in batches)
    nbytes = sum(file.nbytes for file in files) + sum(len(batch.frame) for batch in batches)
    if rows > SPARE_ROWS + nbytes:
        raise TooManyRows(
            f"This run has {rows:,} rows in {nbytes:,} bytes: no recorder wrote them, and they are not read. Delete the cluster."
        )


def _recording(connection: Connection, run: int, source: str, part: Part, read: _Read) -> Recording:
    tables = {name: join(name, read.parts[name]) for name in part.tables if name in read.parts}
    counts = _without(completeness(connection, run), read.lost)
    damage = next((lost.why for lost in read.lost), "")
    nbytes = sum(lost.nbytes for lost in read.lost)
    return Recording(source, tables, counts, damage, nbytes, missing_batches(connection, run))


def _without(counts: Mapping[str, Completeness], lost: Iterable[Lost]) -> dict[str, Completeness]:
    """How much there is of each table where some of what arrived cannot be read."""
    left = dict(counts)
    for part in lost:
        known = left.get(part.name, Completeness())
        rows = min(part.rows, known.rows)
        left[part.name] = replace(known, rows=known.rows - rows, missing=known.missing + rows)
    return left


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
