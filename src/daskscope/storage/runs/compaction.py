"""Compaction: the batches of a run become one Parquet file per table once it has ended, and a few while it is running.

Files are written first and named in one transaction afterwards. If another server compacted or deleted the run
meanwhile, its batches are gone and the new files are deleted again. A crash in between leaves unnamed files, which the
sweep deletes. An acknowledged batch is always in one of the two places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import sqlalchemy as sa

from daskscope.errors import WireError
from daskscope.model.recording import Table
from daskscope.model.tables import TABLES
from daskscope.storage import schema
from daskscope.storage.base.archive import Archive, Transaction
from daskscope.storage.base.blobs import MissingBlob, new_path
from daskscope.storage.runs.ingest import SECRET, lock_run
from daskscope.storage.runs.parquet import from_parquet, to_parquet
from daskscope.storage.runs.read import Amount, StoredBatch, StoredFile, buffered, files_of, join, loader
from daskscope.storage.runs.retention import replace_files

#: A running run is compacted when its buffer is larger than this.
BUFFER_NBYTES = 32 * 1024 * 1024
#: Files per table of a running run. More are joined by the next compaction.
MAX_FILES = 8
#: What one pass reads from a buffer. A limit on bytes alone is not enough: 12 kB of frames with only constants claim 16
#: million rows, which took 5 GB.
PASS_NBYTES = 64 * 1024 * 1024
PASS_ROWS = 2_000_000
#: Files with more rows than this are not joined again. Joining and sorting a million task rows takes half a gigabyte:
#: with a limit of five million, the next pass over those 16 million rows took 2 GB, with two million 1 GB.
MAX_ROWS = 2_000_000


#: The first bits of the lock of a run among servers on one PostgreSQL; the last 40 are the run's number.
CLAIM = 0x6463 << 40


@dataclass
class Compacted:
    """The result of a compaction."""

    batches: int = 0
    rows: int = 0
    nbytes: int = 0
    files: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Due:
    """A run to compact."""

    run: int
    account: int
    #: Whether it has ended, or was silent for long.
    is_over: bool
    #: Bytes and rows of its buffer.
    nbytes: int
    rows: int


def due(tx: Transaction, quiet_us: int, limit: int = 20) -> list[Due]:
    """Return runs to compact."""
    runs = schema.runs
    over = sa.or_(runs.c.end_us > 0, runs.c.received_us < tx.now_us - quiet_us)
    # A run that has just ended may still get its last batches.
    quiet = runs.c.received_us < tx.now_us - min(quiet_us, 10_000_000)
    wanted = sa.or_(sa.and_(over, quiet), runs.c.buffered_nbytes > BUFFER_NBYTES)
    batches = schema.batches
    rows = sa.select(sa.func.coalesce(sa.func.sum(batches.c.rows), 0)).where(
        batches.c.run_id == runs.c.id, batches.c.frame.is_not(None)
    )
    query = (
        sa.select(
            runs.c.id,
            runs.c.account_id,
            over.label("over"),
            runs.c.buffered_nbytes,
            rows.scalar_subquery().label("rows"),
        )
        .where(runs.c.buffered_nbytes > 0, wanted)
        # Not the largest first: a run that cannot be compacted would block all others.
        .order_by(runs.c.compacted_us, runs.c.id)
        .limit(limit)
    )
    return [
        Due(row.id, row.account_id, bool(row.over), row.buffered_nbytes, int(row.rows)) for row in tx.execute(query)
    ]


@contextmanager
def claim(archive: Archive, run: int) -> Iterator[bool]:
    """Claim a run for a compaction. Yield False if another server compacts it or has done so since it was found to be due.

    An advisory lock, not a lock on the run's row: batches of the run must be stored meanwhile. It ends with the connection, so that
    a server that dies leaves no claim. SQLite has one server.
    """
    if archive.database.is_sqlite:
        yield True
        return
    with archive.read() as tx:
        # A compaction may take minutes, during which this connection does nothing.
        tx.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        is_free = tx.execute(sa.select(sa.func.pg_try_advisory_xact_lock(CLAIM | run))).scalar_one()
        yield bool(is_free) and _has_buffer(archive, run)


def _has_buffer(archive: Archive, run: int) -> bool:
    """Return whether a run still has batches to compact.

    It uses a short transaction of its own. The claim's transaction stays open for the whole compaction: its table lock would
    block a migration, and the waiting migration would block everyone else.
    """
    runs = schema.runs
    left = sa.select(runs.c.id).where(runs.c.id == run, runs.c.buffered_nbytes > 0)
    with archive.read() as tx:
        return tx.execute(left).scalar() is not None


def compact(archive: Archive, account: int, run: int, *, over: bool) -> Compacted | None:
    """Compact a run's buffer. Return None if another server did so in the meantime."""
    _look(archive, run)
    # Keep transactions short: the store may be slow.
    with archive.snapshot() as tx:
        batches = buffered(tx, account, run, TABLES, Amount(PASS_NBYTES, PASS_ROWS))
        files = files_of(tx, run)
    damaged: dict[int, str] = {}
    parts = _decoded(batches, damaged)
    merged = _merged(files, parts, over=over)
    try:
        with archive.read() as tx:
            load = loader(tx)
            for file in merged:
                parts[file.name].insert(0, from_parquet(file.name, load(account, file)))
    except MissingBlob:
        if _named(archive, merged):
            raise
        # Another server joined and deleted them while we decoded.
        return None
    done = Compacted(len(batches) - len(damaged))
    written = []
    for name, tables in parts.items():
        table = join(name, tables)
        data = to_parquet(table)
        path = new_path(account, f"runs/{run}", f"{name}.parquet")
        archive.store.put(path, _sealed(archive, account, data, path) if name in SECRET else data)
        written.append(_file_row(run, name, path, table, len(data), archive.clock()))
        done.rows, done.nbytes = done.rows + table.rows, done.nbytes + len(data)
        done.files.append(path)
    kept = [batch for batch in batches if batch.id not in damaged]
    if not _commit(archive, run, kept, damaged, merged, written):
        for path in done.files:
            archive.store.delete(path)
        return None
    return done


def _named(archive: Archive, files: Sequence[StoredFile]) -> bool:
    """Return whether the catalog still names all of the files."""
    table = schema.files
    query = sa.select(sa.func.count()).select_from(table).where(table.c.id.in_([file.id for file in files]))
    # A new transaction: an older one would see the old state.
    with archive.read() as tx:
        return int(tx.execute(query).scalar_one()) == len(files)


def _look(archive: Archive, run: int) -> None:
    """Record the time of this attempt, whatever its result."""
    runs = schema.runs
    with archive.write() as tx:
        tx.execute(sa.update(runs).where(runs.c.id == run).values(compacted_us=tx.now_us))


def _sealed(archive: Archive, account: int, data: bytes, path: str) -> bytes:
    with archive.read() as tx:
        return tx.seal(account, data, path)


def _decoded(batches: Sequence[StoredBatch], damaged: dict[int, str]) -> dict[str, list[Table]]:
    parts: dict[str, list[Table]] = {}
    for batch in batches:
        try:
            table = batch.table()
            parts.setdefault(batch.name, []).append(table)
        except WireError as error:
            # Keys are not decoded at ingest. Keep the batch as it is for inspection.
            damaged[batch.id] = str(error)[:500]
    return parts


def _merged(files: Sequence[StoredFile], parts: Mapping[str, list[Table]], *, over: bool) -> list[StoredFile]:
    """Return the files to join: all files of a run that is over, else the files of tables with too many."""
    merged = []
    for name, tables in parts.items():
        mine = [file for file in files if file.name == name]
        rows = sum(table.rows for table in tables)
        # Smallest first: a large file stays as it is.
        for file in sorted(mine, key=lambda file: file.rows) if over or len(mine) >= MAX_FILES else ():
            rows += file.rows
            if rows > MAX_ROWS:
                break
            merged.append(file)
    return sorted(merged, key=lambda file: file.id)


def _file_row(run: int, name: str, path: str, table: Table, nbytes: int, now_us: int) -> dict[str, object]:
    times = table[table.definition.time]
    low, high = (int(times.min()), int(times.max())) if table.rows else (0, 0)
    return {
        "run_id": run,
        "name": name,
        "path": path,
        "rows": table.rows,
        "nbytes": nbytes,
        "t0": low,
        "t1": high,
        "created_us": now_us,
    }


def _commit(
    archive: Archive,
    run: int,
    batches: Sequence[StoredBatch],
    damaged: dict[int, str],
    merged: Sequence[StoredFile],
    written: Sequence[dict[str, object]],
) -> bool:
    table, files, runs = schema.batches, schema.files, schema.runs
    with archive.write() as tx:
        # Keep out new batches of this run: one could be a duplicate of a row that is being removed.
        lock_run(tx, run)
        numbers = [batch.id for batch in batches]
        cleared = 0
        for first in range(0, len(numbers), 500):
            mine = table.c.id.in_(numbers[first : first + 500]) & table.c.frame.is_not(None)
            cleared += tx.execute(sa.update(table).where(mine).values(frame=None)).rowcount
        gone = tx.execute(sa.delete(files).where(files.c.id.in_([file.id for file in merged]))).rowcount
        if cleared != len(numbers) or gone != len(merged):
            tx.connection.rollback()
            return False
        replace_files(tx, run, (file.path for file in merged), archive.keep_replaced_us)
        for number, why in damaged.items():
            tx.execute(sa.update(table).where(table.c.id == number).values(damage=why))
        if written:
            tx.execute(sa.insert(files), list(written))
        left = sa.select(sa.func.coalesce(sa.func.sum(sa.func.length(table.c.frame)), 0)).where(
            table.c.run_id == run, table.c.frame.is_not(None), table.c.damage == ""
        )
        values = {"buffered_nbytes": sa.cast(left.scalar_subquery(), sa.BigInteger), "compacted_us": tx.now_us}
        tx.execute(sa.update(runs).where(runs.c.id == run).values(values))
        _raise_floors(tx, run)
    return True


def _raise_floors(tx: Transaction, run: int) -> None:
    """Delete the rows of compacted batches up to the first gap. A sequence number below the floor counts as received."""
    epochs, batches = schema.epochs, schema.batches
    for epoch in tx.execute(sa.select(epochs).where(epochs.c.run_id == run)).all():
        mine = (batches.c.run_id == run) & (batches.c.epoch == epoch.epoch)
        # A quarantined batch counts as received too; its row stays.
        taken = sa.or_(batches.c.frame.is_(None), batches.c.damage != "")
        done = mine & taken & (batches.c.sequence >= epoch.floor)
        floor = epoch.floor
        for number in tx.execute(sa.select(batches.c.sequence).where(done).order_by(batches.c.sequence)).scalars():
            if number != floor:
                break
            floor += 1
        if floor > epoch.floor:
            gone = mine & (batches.c.sequence < floor) & batches.c.frame.is_(None)
            tx.execute(sa.delete(batches).where(gone))
            this = (epochs.c.run_id == run) & (epochs.c.epoch == epoch.epoch)
            tx.execute(sa.update(epochs).where(this).values(floor=floor))
