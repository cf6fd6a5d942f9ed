"""Stored documents of runs, and the state of the run each was made from."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from daskscope.storage import schema
from daskscope.storage.archive import Transaction
from daskscope.storage.database import insert
from daskscope.storage.ingest import lock_run
from daskscope.storage.replaced import KEEP_DOCUMENT_US, replace_files
from daskscope.storage.retention import has_rows
from daskscope.storage.upsert import summed


@dataclass(frozen=True)
class StoredDocument:
    """A stored document and what it was made from."""

    path: str
    nbytes: int
    #: ``newest_batch`` at the time its rows were read.
    upto: int
    #: Version of the code that made it.
    version: str


def newest_batch(tx: Transaction, run: int) -> int:
    """Return a number that grows with every batch of a run."""
    epochs = schema.epochs
    taken = sa.select(sa.func.coalesce(sa.func.sum(epochs.c.taken), 0)).where(epochs.c.run_id == run)
    return int(tx.execute(taken).scalar_one())


@dataclass(frozen=True)
class Basis:
    """The state of a run that a document was made from. If it has changed, the document is out of date."""

    upto: int
    #: Whether the run has rows. Only deletion removes them, and only a new batch adds some.
    rows: bool


def basis_of(tx: Transaction, run: int) -> Basis | None:
    """Return the current state of a run, or None if it was deleted."""
    rows = tx.execute(sa.select(has_rows()).select_from(schema.runs).where(schema.runs.c.id == run)).scalar()
    return None if rows is None else Basis(newest_batch(tx, run), bool(rows))


def find_document(tx: Transaction, run: int, subject: str) -> StoredDocument | None:
    """Return the stored document of a computation, or of the whole run if ``subject`` is empty."""
    table = schema.renderings
    query = sa.select(table).where(table.c.run_id == run, table.c.subject == subject)
    return tx.row(StoredDocument, query)


def keep_document(tx: Transaction, run: int, subject: str, made: StoredDocument, basis: Basis) -> bool:
    """Name a document if its run is unchanged. It replaces the previous one.

    Otherwise rows deleted while the document was made would stay in it until the sums are deleted, for years. The
    caller deletes the blob if it is not kept. The previous one stays for a while, for the pages that show it.
    """
    if not lock_run(tx, run) or basis_of(tx, run) != basis:
        return False
    previous = find_document(tx, run, subject)
    if previous is not None:
        replace_files(tx, run, [previous.path], KEEP_DOCUMENT_US)
    changes = {**vars(made), "created_us": tx.now_us}
    statement = insert(tx.connection, schema.renderings).values(run_id=run, subject=subject, **changes)
    tx.execute(statement.on_conflict_do_update(index_elements=["run_id", "subject"], set_=changes))
    return True


def count_tasks(tx: Transaction, run: int, subject: str) -> int:
    """Return the number of executions that a document covers."""
    runs, prefixes = schema.runs, schema.prefixes
    query = sa.select(runs.c.tasks).where(runs.c.id == run)
    if subject:
        mine = (prefixes.c.run_id == run) & (prefixes.c.computation == subject)
        query = sa.select(summed(prefixes.c.tasks)).where(mine)
    return int(tx.execute(query).scalar() or 0)
