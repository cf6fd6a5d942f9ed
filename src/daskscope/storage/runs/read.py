"""A run as a recording: its Parquet files and its buffered batches together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sqlalchemy as sa

from daskscope import units
from daskscope.errors import DaskscopeError, WireError
from daskscope.model.recording import Completeness, Recording, Table, concatenate
from daskscope.model.tables import TABLES
from daskscope.storage import schema
from daskscope.storage.base.archive import Archive, Transaction
from daskscope.storage.base.blobs import MissingBlob
from daskscope.storage.base.database import InvalidInput, StorageError
from daskscope.storage.base.vault import BrokenSeal
from daskscope.storage.runs.ingest import SECRET, batch_place
from daskscope.storage.runs.parquet import from_parquet
from daskscope.wire.decode import read_frame
from daskscope.wire.file import latest, rows_by_table

#: How often to read a run whose files a compaction joins meanwhile. A compaction joins a run at most every five seconds
#: and most runs are read in less, so three in a row do not happen.
ATTEMPTS = 3
#: Maximum rows of a run to read: one per stored byte, where real rows take five bytes and more, plus this many. Frames
#: of constants claim a thousand rows per byte, and each takes 300 bytes of memory to read.
SPARE_ROWS = 2_000_000


@dataclass(frozen=True)
class StoredBatch:
    """A buffered batch; without a frame if it cannot be decrypted."""

    id: int
    epoch: int
    sequence: int
    name: str
    frame: bytes
    #: According to its header.
    rows: int
    damage: str = ""

    def table(self) -> Table:
        """Return its rows; raise ``WireError`` if they cannot be read."""
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
    """The rows to read. More may be returned; the caller selects."""

    tables: tuple[str, ...] = tuple(TABLES)
    #: Rows that overlap this time window.
    window: tuple[int, int] | None = None
    computation: str | None = None
    #: Columns to read; others may be empty.
    columns: tuple[str, ...] | None = None


WHOLE = Part()


@dataclass(frozen=True)
class Amount:
    """The most bytes and rows to read at once."""

    nbytes: int
    rows: int


def buffered(
    tx: Transaction,
    account: int,
    run: int,
    names: Iterable[str],
    most: Amount | None = None,
    since_us: Mapping[str, int] | None = None,
) -> list[StoredBatch]:
    """Return batches that are not compacted yet, in the order they were written: as many as fit, at least one.

    ``since_us`` leaves out batches of a table whose rows are all older.
    """
    table = schema.batches
    query = (
        sa.select(table.c.id, table.c.epoch, table.c.sequence, table.c.name, table.c.frame, table.c.rows)
        .where(table.c.run_id == run, table.c.frame.is_not(None), table.c.damage == "", table.c.name.in_(list(names)))
        .order_by(table.c.epoch, table.c.sequence)
        .execution_options(yield_per=100)
    )
    for name, first in (since_us or {}).items():
        query = query.where(sa.or_(table.c.name != name, table.c.t1 >= first))
    batches: list[StoredBatch] = []
    nbytes = rows = 0
    with tx.execute(query) as found:
        for row in found:
            nbytes, rows = nbytes + len(row.frame), rows + row.rows
            if most is not None and batches and (nbytes > most.nbytes or rows > most.rows):
                break
            batches.append(open_batch(tx, account, run, row))
    return batches


def open_batch(tx: Transaction, account: int, run: int, row: Any) -> StoredBatch:
    """Return a row of ``batches``, decrypted."""
    frame, damage = bytes(row.frame), ""
    if row.name in SECRET:
        try:
            frame = tx.open(account, frame, batch_place(run, row.epoch, row.sequence))
        except BrokenSeal as error:
            frame, damage = b"", str(error)
    return StoredBatch(row.id, row.epoch, row.sequence, row.name, frame, row.rows, damage)


@dataclass(frozen=True)
class Lost:
    """Stored data of a run that cannot be read."""

    name: str
    rows: int
    nbytes: int
    why: str


def quarantined(tx: Transaction, run: int) -> list[Lost]:
    """Return quarantined batches, which cannot be read."""
    table = schema.batches
    query = sa.select(table.c.name, table.c.rows, sa.func.length(table.c.frame), table.c.damage).where(
        table.c.run_id == run, table.c.frame.is_not(None), table.c.damage != ""
    )
    rows = tx.execute(query.order_by(table.c.id))
    return [Lost(name, count, nbytes, _unreadable(why)) for name, count, nbytes, why in rows]


def files_of(tx: Transaction, run: int, names: Iterable[str] = TABLES) -> list[StoredFile]:
    files = schema.files
    query = sa.select(files).where(files.c.run_id == run, files.c.name.in_(list(names))).order_by(files.c.id)
    return [StoredFile(row.id, row.name, row.path, row.rows, row.nbytes) for row in tx.execute(query)]


def count_rows(tx: Transaction, run: int) -> int:
    """Return the number of stored rows of a run, in all tables, without reading them."""
    files, batches = schema.files, schema.batches
    compacted = sa.select(sa.func.coalesce(sa.func.sum(files.c.rows), 0)).where(files.c.run_id == run)
    pending = sa.select(sa.func.coalesce(sa.func.sum(batches.c.rows), 0)).where(
        batches.c.run_id == run, batches.c.frame.is_not(None)
    )
    return int(tx.execute(compacted).scalar_one()) + int(tx.execute(pending).scalar_one())


#: Return the decrypted bytes of a file of an account.
Load = Callable[[int, StoredFile], bytes]


def loader(tx: Transaction) -> Load:
    def load(account: int, file: StoredFile) -> bytes:
        data = tx.store.get(file.path)
        return tx.open(account, data, file.path) if file.name in SECRET else data

    return load


class RunTooLarge(DaskscopeError):
    """There are more rows or bytes to read than the limit. The message can be shown to anyone."""


@dataclass
class _Room:
    """What may still be read."""

    limit: Amount
    rows: int = 0
    nbytes: int = 0

    def take(self, rows: int, nbytes: int) -> None:
        """Count rows and unpacked bytes before they are read; raise ``RunTooLarge`` if there is no room for them."""
        self.rows, self.nbytes = self.rows + rows, self.nbytes + nbytes
        if self.rows > self.limit.rows or self.nbytes > self.limit.nbytes:
            raise RunTooLarge(
                f"This needs more than {units.count(self.limit.rows)} rows or {units.nbytes(self.limit.nbytes)} of this "
                "cluster, which is too much to read at once. Ask for a shorter time, or download the recording."
            )


def read_run(
    tx: Transaction, account: int, run: int, source: str, part: Part = WHOLE, limit: Amount | None = None
) -> Recording:
    """Return the tables of a run. Unreadable parts are reported in ``damage`` and do not prevent reading the rest.

    This reads within one transaction. Use ``read_snapshot`` if a compaction may run at the same time.
    """
    return _recording(tx, run, source, part, _read(tx, account, run, part, limit))


def read_snapshot(
    archive: Archive, account: int, run: int, source: str, part: Part = WHOLE, limit: Amount | None = None
) -> Recording:
    """Return the tables of a run in one state, even if a compaction runs at the same time.

    A compaction deletes the files it joined once they have no name. If a file is missing and no longer named, nothing
    is lost: the list was old, and is read again. Raise ``RunTooLarge`` before more is read than the limit.
    """
    for _ in range(ATTEMPTS):
        with archive.snapshot() as tx:
            read = _read(tx, account, run, part, limit)
            recording = _recording(tx, run, source, part, read)
        if not read.missing:
            break
        with archive.read() as tx:
            named = {file.path for file in files_of(tx, run, part.tables)}
        if named.issuperset(file.path for file in read.missing):
            break
    return recording


@dataclass
class _Read:
    """What was read of a run."""

    parts: dict[str, list[Table]] = field(default_factory=dict)
    lost: list[Lost] = field(default_factory=list)
    #: Files that are named but missing.
    missing: list[StoredFile] = field(default_factory=list)


def _read(tx: Transaction, account: int, run: int, part: Part, limit: Amount | None) -> _Read:
    load, read = loader(tx), _Read()
    files = files_of(tx, run, part.tables)
    room = None if limit is None else _Room(limit)
    if room is not None:
        # Whole files are loaded, whatever is read of them; and frames are loaded before their headers are read.
        _Room(room.limit).take(0, sum(file.nbytes for file in files) + _buffered_nbytes(tx, run, part.tables))
    windows = {name: _window(name, part) for name in part.tables}
    since_us = {name: window[0] for name, window in windows.items() if window is not None}
    batches = buffered(tx, account, run, part.tables, since_us=since_us)
    _check_rows(files, batches)
    for file in files:
        try:
            table = _table(load(account, file), file, part, room)
        except (MissingBlob, BrokenSeal, UnreadableFile) as error:
            read.lost.append(Lost(file.name, file.rows, file.nbytes, str(error)))
            if isinstance(error, MissingBlob):
                read.missing.append(file)
            continue
        read.parts.setdefault(file.name, []).append(table)
    for batch in batches:
        try:
            if room is not None and not batch.damage:
                room.take(batch.rows, read_frame(batch.frame).header.raw)
            read.parts.setdefault(batch.name, []).append(batch.table())
        except WireError as error:
            read.lost.append(Lost(batch.name, batch.rows, len(batch.frame), _unreadable(str(error))))
    read.lost += quarantined(tx, run)
    return read


def _buffered_nbytes(tx: Transaction, run: int, names: Iterable[str]) -> int:
    table = schema.batches
    mine = (table.c.run_id == run) & table.c.frame.is_not(None) & table.c.name.in_(list(names))
    return int(
        tx.execute(sa.select(sa.func.coalesce(sa.func.sum(sa.func.length(table.c.frame)), 0)).where(mine)).scalar_one()
    )


class TooManyRows(InvalidInput):
    """A run has more rows than its bytes can contain."""


def _check_rows(files: Sequence[StoredFile], batches: Sequence[StoredBatch]) -> None:
    rows = sum(file.rows for file in files) + sum(batch.rows for batch in batches)
    nbytes = sum(file.nbytes for file in files) + sum(len(batch.frame) for batch in batches)
    if rows > SPARE_ROWS + nbytes:
        raise TooManyRows(
            f"This run has {rows:,} rows in {nbytes:,} bytes. No recorder sends this, so it is not read. Delete the cluster."
        )


def _recording(tx: Transaction, run: int, source: str, part: Part, read: _Read) -> Recording:
    tables = {name: join(name, read.parts[name]) for name in part.tables if name in read.parts}
    counts = _without(completeness(tx, run), read.lost)
    damage = next((lost.why for lost in read.lost), "")
    nbytes = sum(lost.nbytes for lost in read.lost)
    return Recording(source, tables, counts, damage, nbytes, missing_batches(tx, run))


def _without(counts: Mapping[str, Completeness], lost: Iterable[Lost]) -> dict[str, Completeness]:
    """Subtract rows that cannot be read from the completeness of each table."""
    left = dict(counts)
    for part in lost:
        known = left.get(part.name, Completeness())
        rows = min(part.rows, known.rows)
        left[part.name] = replace(known, rows=known.rows - rows, missing=known.missing + rows)
    return left


def _unreadable(why: str) -> str:
    return f"a batch cannot be read ({why})"


class UnreadableFile(StorageError):
    """A stored file is damaged."""


def _table(data: bytes, file: StoredFile, part: Part, room: _Room | None) -> Table:
    window, check = _window(file.name, part), None if room is None else room.take
    try:
        return from_parquet(
            file.name, data, window=window, computation=part.computation, columns=part.columns, check=check
        )
    except (ValueError, OSError, KeyError) as error:
        # Raised by pyarrow for bytes that are not a complete Parquet file.
        text = (str(error).splitlines() or [""])[0][:200]
        raise UnreadableFile(f"the stored file {file.path} is damaged ({text})") from None


def _window(name: str, part: Part) -> tuple[int, int] | None:
    # The last row of an entity may be written long after the window and is still needed.
    return None if TABLES[name].key else part.window


def join(name: str, parts: Sequence[Table]) -> Table:
    """Join the parts of a table; of entities keep the newest row."""
    kept = [table for table in parts if table.rows] or [Table.empty(name)]
    joined = concatenate(TABLES[name], kept)
    if not joined.rows or not joined.definition.key:
        return joined
    times = joined[joined.definition.time]
    # The batch came late: its rows are older than compacted ones.
    if (times[1:] < times[:-1]).any():
        joined = joined.take(np.argsort(times, kind="stable"))
    return latest(joined)


def completeness(tx: Transaction, run: int) -> dict[str, Completeness]:
    """Return how much of each table arrived, from the recorder's own counters."""
    streams, epochs, runs = schema.streams, schema.epochs, schema.runs
    same = (epochs.c.run_id == streams.c.run_id) & (epochs.c.epoch == streams.c.epoch)
    query = sa.select(streams, epochs.c.from_start).join(epochs, same).where(streams.c.run_id == run)
    parts: dict[str, Completeness] = {}
    for row in tx.execute(query).mappings():
        before = 0 if row["from_start"] else max(0, row["first"] - 1)
        known = parts.get(row["name"], Completeness())
        missing = max(0, row["kept"] - before - row["rows"])
        dropped = row["dropped"] - (0 if row["from_start"] else max(0, row["dropped_before"] - 1))
        parts[row["name"]] = Completeness(known.rows + row["rows"], known.dropped + dropped, known.missing + missing)
    # A batch counts only its own table. For tables without a later batch, the cluster's row has the counters.
    lives = tx.execute(sa.select(epochs.c.from_start).where(epochs.c.run_id == run)).scalars().all()
    if lives == [1]:
        text = tx.execute(sa.select(runs.c.dropped).where(runs.c.id == run)).scalar_one()
        for name, rows in rows_by_table(text).items():
            known = parts.get(name, Completeness())
            parts[name] = replace(known, dropped=max(known.dropped, rows))
    return {name: parts[name] for name in TABLES if name in parts}


def missing_batches(tx: Transaction, run: int) -> int:
    """Return the sequence numbers missing between the first and last batch of each epoch."""
    epochs = schema.epochs
    query = sa.select(epochs.c.lowest, epochs.c.highest, epochs.c.taken).where(epochs.c.run_id == run)
    return sum(max(0, row.highest + 2 - row.lowest - row.taken) for row in tx.execute(query) if row.taken)
