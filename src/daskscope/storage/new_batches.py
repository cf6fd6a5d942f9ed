"""The batches of a run that a reader has not seen yet, without reading the others again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from daskscope.model.recording import Recording
from daskscope.storage import schema
from daskscope.storage.archive import Archive, Transaction
from daskscope.storage.runs import Part, StoredBatch, open_batch, read_run

#: A reader that is further behind starts anew: decoding more at once would delay others.
MAX_NEW_NBYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class Place:
    """How far a reader has read an epoch: the highest sequence number, and how many batches there were."""

    highest: int
    batches: int


#: By epoch.
Position = Mapping[int, Place]


def position_of(tx: Transaction, run: int) -> Position:
    """Return the position of a reader that knows everything stored so far."""
    epochs = schema.epochs
    query = sa.select(epochs.c.epoch, epochs.c.highest, epochs.c.taken).where(epochs.c.run_id == run)
    return {row.epoch: Place(row.highest, row.taken) for row in tx.execute(query)}


def batches_since(
    tx: Transaction, account: int, run: int, position: Position, names: Iterable[str]
) -> tuple[list[StoredBatch], Position] | None:
    """Return new batches of some tables and the new position, in a snapshot.

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
    table = schema.batches
    mine = (table.c.run_id == run) & (table.c.epoch == epoch) & (table.c.sequence > highest)
    mine &= table.c.frame.is_not(None)
    size = sa.select(sa.func.coalesce(sa.func.sum(sa.func.length(table.c.frame)), 0)).where(mine)
    if tx.execute(size).scalar_one() > MAX_NEW_NBYTES:
        return None
    columns = (table.c.id, table.c.epoch, table.c.sequence, table.c.name, table.c.frame, table.c.rows, table.c.damage)
    return list(tx.execute(sa.select(*columns).where(mine).order_by(table.c.sequence)))


def read_recent(
    archive: Archive, account: int, run: int, source: str, names: tuple[str, ...], start_us: int, stop_us: int
) -> tuple[Recording, Position]:
    """Return the rows of a time window, and the position of a reader that knows them."""
    with archive.snapshot() as tx:
        # Files that a compaction replaces meanwhile stay for hours.
        return read_run(tx, account, run, source, Part(names, (start_us, stop_us))), position_of(tx, run)
