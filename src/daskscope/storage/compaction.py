"""Batches become Parquet: one file a run and table once the run is over, a few while it lives.

Files are written first and named in one transaction after; whoever comes too late (another server, a deletion) finds that the
batches are not there any more, and its files are removed again. A crash in between leaves files nobody names, which the sweep
removes. Nothing acknowledged is ever in neither place.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.errors import WireError
from daskscope.model.table import Table
from daskscope.model.tables import TABLES
from daskscope.storage import schema
from daskscope.storage.blobs import BlobStore, MissingBlob, new_path
from daskscope.storage.database import Database
from daskscope.storage.ingest import SECRET, lock_run
from daskscope.storage.parquet import from_parquet, to_parquet
from daskscope.storage.runs import Most, StoredBatch, StoredFile, buffered, files_of, join, loader
from daskscope.storage.vault import Vault

logger = logging.getLogger("daskscope.server")

#: A run's buffer is compacted beyond this while it still writes.
BUFFER_NBYTES = 32 * 1024 * 1024
#: Files of one table of a run that lives; the next compaction joins them.
MOST_FILES = 8
#: What one pass takes of a buffer. The bytes alone bound nothing: 12 kB of frames that hold nothing but constants claim 16 million
#: rows, which took 5 GB.
PASS_NBYTES = 64 * 1024 * 1024
PASS_ROWS = 2_000_000
#: Rows of a table beyond which files are not joined any more. A million rows of tasks that are joined and sorted take half a
#: gigabyte: with five million here, the next pass over those 16 million rows still took two, and with two million one.
MOST_ROWS = 2_000_000


@dataclass
class Compacted:
    """What a compaction did."""

    batches: int = 0
    rows: int = 0
    nbytes: int = 0
    files: list[str] = field(default_factory=list)


def due(connection: Connection, now_us: int, quiet_us: int, limit: int = 20) -> list[tuple[int, int, bool]]:
    """Runs to compact: number, account, and whether they are over (ended, or silent for long)."""
    runs = schema.runs
    over = sa.or_(runs.c.end_us > 0, runs.c.received_us < now_us - quiet_us)
    # A run that just ended may still get its last batches.
    quiet = runs.c.received_us < now_us - min(quiet_us, 10_000_000)
    wanted = sa.or_(sa.and_(over, quiet), runs.c.buffered_nbytes > BUFFER_NBYTES)
    query = (
        sa.select(runs.c.id, runs.c.account_id, over.label("over"))
        .where(runs.c.buffered_nbytes > 0, wanted)
        # Not the largest first: one that cannot be compacted would be looked at for ever, and the others never.
        .order_by(runs.c.compacted_us, runs.c.id)
        .limit(limit)
    )
    return [(row.id, row.account_id, bool(row.over)) for row in connection.execute(query)]


def compact(
    database: Database, vault: Vault, store: BlobStore, account: int, run: int, now_us: int, *, over: bool
) -> Compacted | None:
    """Compact a run's buffer; None where somebody else did in the meantime."""
    _look(database, run, now_us)
    # Transactions are short: nobody waits in one for a store that may be far away.
    with database.snapshot() as connection:
        batches = buffered(connection, vault, account, run, TABLES, Most(PASS_NBYTES, PASS_ROWS))
        files = files_of(connection, run)
    damaged: dict[int, str] = {}
    parts = _decoded(batches, damaged)
    merged = _merged(files, parts, over=over)
    try:
        with database.read() as connection:
            load = loader(connection, vault, store)
            for file in merged:
                parts[file.name].insert(0, from_parquet(file.name, load(account, file)))
    except MissingBlob:
        if _named(database, merged):
            raise
        # Another server put them together while we decoded, and deleted them.
        return None
    done = Compacted(len(batches) - len(damaged))
    written = []
    for name, tables in parts.items():
        table = join(name, tables)
        data = to_parquet(table)
        path = new_path(account, f"runs/{run}", f"{name}.parquet")
        store.put(path, _sealed(database, vault, account, data) if name in SECRET else data)
        written.append(_file_row(run, name, path, table, len(data), now_us))
        done.rows, done.nbytes = done.rows + table.rows, done.nbytes + len(data)
        done.files.append(path)
    kept = [batch for batch in batches if batch.id not in damaged]
    if not _commit(database, run, kept, damaged, merged, written, now_us):
        for path in done.files:
            store.delete(path)
        return None
    for file in merged:
        store.delete(file.path)
    return done


def _named(database: Database, files: Sequence[StoredFile]) -> bool:
    """Whether all of them are still what the catalog says."""
    table = schema.files
    query = sa.select(sa.func.count()).select_from(table).where(table.c.id.in_([file.id for file in files]))
    # A transaction that began before would see what was.
    with database.read() as connection:
        return int(connection.execute(query).scalar_one()) == len(files)


def _look(database: Database, run: int, now_us: int) -> None:
    """Say that a run's turn was now, whatever comes of it."""
    runs = schema.runs
    with database.write() as connection:
        connection.execute(sa.update(runs).where(runs.c.id == run).values(compacted_us=now_us))


def _sealed(database: Database, vault: Vault, account: int, data: bytes) -> bytes:
    with database.read() as connection:
        return vault.seal(connection, account, data)


def _decoded(batches: Sequence[StoredBatch], damaged: dict[int, str]) -> dict[str, list[Table]]:
    parts: dict[str, list[Table]] = {}
    for batch in batches:
        try:
            table = batch.table()
            parts.setdefault(batch.name, []).append(table)
        except WireError as error:
            # Its keys were not looked at when it came. It stays as it is, for whoever wants to look.
            damaged[batch.id] = str(error)[:500]
    return parts


def _merged(files: Sequence[StoredFile], parts: Mapping[str, list[Table]], *, over: bool) -> list[StoredFile]:
    """Files to take into the new ones: all of a run that is over, else those of tables that have too many."""
    merged = []
    for name, tables in parts.items():
        mine = [file for file in files if file.name == name]
        rows = sum(table.rows for table in tables)
        # The small ones first: a file that is large already stays as it is.
        for file in sorted(mine, key=lambda file: file.rows) if over or len(mine) >= MOST_FILES else ():
            rows += file.rows
            if rows > MOST_ROWS:
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
    database: Database,
    run: int,
    batches: Sequence[StoredBatch],
    damaged: dict[int, str],
    merged: Sequence[StoredFile],
    written: Sequence[dict[str, object]],
    now_us: int,
) -> bool:
    table, files, runs = schema.batches, schema.files, schema.runs
    with database.write() as connection:
        # No batch of this run comes in until we are done: it could be one whose row is just being removed.
        lock_run(connection, run)
        numbers = [batch.id for batch in batches]
        cleared = 0
        for first in range(0, len(numbers), 500):
            mine = table.c.id.in_(numbers[first : first + 500]) & table.c.frame.is_not(None)
            cleared += connection.execute(sa.update(table).where(mine).values(frame=None)).rowcount
        gone = connection.execute(sa.delete(files).where(files.c.id.in_([file.id for file in merged]))).rowcount
        if cleared != len(numbers) or gone != len(merged):
            connection.rollback()
            return False
        for number, why in damaged.items():
            connection.execute(sa.update(table).where(table.c.id == number).values(damage=why))
        if written:
            connection.execute(sa.insert(files), list(written))
        left = sa.select(sa.func.coalesce(sa.func.sum(sa.func.length(table.c.frame)), 0)).where(
            table.c.run_id == run, table.c.frame.is_not(None), table.c.damage == ""
        )
        values = {"buffered_nbytes": sa.cast(left.scalar_subquery(), sa.BigInteger), "compacted_us": now_us}
        connection.execute(sa.update(runs).where(runs.c.id == run).values(values))
        _raise_floors(connection, run)
    return True


def _raise_floors(connection: Connection, run: int) -> None:
    """Forget the rows of compacted batches up to the first that is missing: a number below the floor is known to be taken."""
    epochs, batches = schema.epochs, schema.batches
    for epoch in connection.execute(sa.select(epochs).where(epochs.c.run_id == run)).all():
        mine = (batches.c.run_id == run) & (batches.c.epoch == epoch.epoch)
        # One that was put aside is taken as well; its row stays.
        taken = sa.or_(batches.c.frame.is_(None), batches.c.damage != "")
        done = mine & taken & (batches.c.sequence >= epoch.floor)
        floor = epoch.floor
        for number in connection.execute(
            sa.select(batches.c.sequence).where(done).order_by(batches.c.sequence)
        ).scalars():
            if number != floor:
                break
            floor += 1
        if floor > epoch.floor:
            gone = mine & (batches.c.sequence < floor) & batches.c.frame.is_(None)
            connection.execute(sa.delete(batches).where(gone))
            this = (epochs.c.run_id == run) & (epochs.c.epoch == epoch.epoch)
            connection.execute(sa.update(epochs).where(this).values(floor=floor))
