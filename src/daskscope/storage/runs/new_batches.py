"""The batches of a run that a reader has not seen yet, without reading the others again."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from daskscope.model.recording import Recording
from daskscope.storage import schema
from daskscope.storage.base.archive import Archive, Transaction
from daskscope.storage.runs.read import Amount, Part, StoredBatch, open_batch, read_run

#: A reader that is further behind starts anew: decoding more at once would delay others.
MAX_NEW_NBYTES = 8 * 1024 * 1024
#: The same in rows: frames of constants have a thousand per byte.
MAX_NEW_ROWS = 500_000


@dataclass(frozen=True)
class Place:
    """How far a reader has read an epoch: the highest sequence number, and how many batches there were."""

    highest: int
    batches: int


#: By epoch.
Position = Mapping[int, Place]


def position_of(tx: Transaction, run: int) -> Position:
    """Return the position of a reader that knows everything stored so far."""
    return {epoch: Place(highest, taken) for epoch, highest, taken in tx.execute(_epochs(), {"run": run})}


@functools.cache
def _epochs() -> Any:
    """Build the statement once: that takes longer than running it."""
    epochs = schema.epochs
    return sa.select(epochs.c.epoch, epochs.c.highest, epochs.c.taken).where(epochs.c.run_id == sa.bindparam("run"))


def batches_since(
    tx: Transaction, account: int, run: int, position: Position, names: Iterable[str]
) -> tuple[list[StoredBatch], Position] | None:
    """Return new batches of the given tables and the new position, in a snapshot.

    Return None if the reader has to start anew: a batch came late, batches were compacted before the reader saw them, or there
    are too many.
    """
    now = position_of(tx, run)
    wanted, oldest = set(names), min(position, default=0)
    found: list[StoredBatch] = []
    for epoch, place in now.items():
        if epoch < oldest:
            # A position names only the latest of very many epochs.
            continue
        known = position.get(epoch, Place(-1, 0))
        expected = place.batches - known.batches
        if not expected:
            continue
        rows = _rows_after(tx, run, epoch, known.highest)
        if rows is None or len(rows) != expected:
            return None
        found += [open_batch(tx, account, run, row) for row in rows if row.name in wanted and not row.damage]
    return found, now


def _rows_after(tx: Transaction, run: int, epoch: int, highest: int) -> list[sa.Row[tuple[object, ...]]] | None:
    after = {"run": run, "epoch": epoch, "highest": highest}
    nbytes, count = tx.execute(_size_after(), after).one()
    if nbytes > MAX_NEW_NBYTES or count > MAX_NEW_ROWS:
        return None
    return list(tx.execute(_after(), after))


def _is_after() -> Any:
    table = schema.batches
    mine = (table.c.run_id == sa.bindparam("run")) & (table.c.epoch == sa.bindparam("epoch"))
    return mine & (table.c.sequence > sa.bindparam("highest")) & table.c.frame.is_not(None)


@functools.cache
def _size_after() -> Any:
    sums = (sa.func.sum(sa.func.length(schema.batches.c.frame)), sa.func.sum(schema.batches.c.rows))
    return sa.select(*(sa.func.coalesce(total, 0) for total in sums)).where(_is_after())


@functools.cache
def _after() -> Any:
    table = schema.batches
    columns = (table.c.id, table.c.epoch, table.c.sequence, table.c.name, table.c.frame, table.c.rows, table.c.damage)
    return sa.select(*columns).where(_is_after()).order_by(table.c.sequence)


def read_recent(
    archive: Archive,
    account: int,
    run: int,
    source: str,
    names: tuple[str, ...],
    start_us: int,
    stop_us: int,
    limit: Amount | None = None,
) -> tuple[Recording, Position]:
    """Return the rows of a time window, and the position of a reader that knows them. Raise ``RunTooLarge`` beyond the limit."""
    with archive.snapshot() as tx:
        # Files that a compaction replaces meanwhile stay for hours.
        return read_run(tx, account, run, source, Part(names, (start_us, stop_us)), limit), position_of(tx, run)
