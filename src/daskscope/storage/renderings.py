"""Which finished documents are kept of a run, and from how much of it they were made."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.database import insert
from daskscope.storage.ingest import lock_run
from daskscope.storage.retention import has_rows


@dataclass(frozen=True)
class KeptRendering:
    """Where a finished document lies, and what it was made from."""

    path: str
    nbytes: int
    #: What ``newest_batch`` said when its rows were read.
    upto: int
    #: Of the code that made it.
    version: str


def newest_batch(connection: Connection, run: int) -> int:
    """A number that grows with every batch of a run."""
    epochs = schema.epochs
    taken = sa.select(sa.func.coalesce(sa.func.sum(epochs.c.taken), 0)).where(epochs.c.run_id == run)
    return int(connection.execute(taken).scalar_one())


@dataclass(frozen=True)
class Basis:
    """What a document is made from: where it is no longer the same, the document is of something that was."""

    upto: int
    #: Whether there are rows. Nothing but their deletion takes them away, and nothing but another batch brings new ones.
    rows: bool


def basis_of(connection: Connection, run: int) -> Basis | None:
    """None where there is no such run any more."""
    rows = connection.execute(sa.select(has_rows()).select_from(schema.runs).where(schema.runs.c.id == run)).scalar()
    return None if rows is None else Basis(newest_batch(connection, run), bool(rows))


def find_rendering(connection: Connection, run: int, subject: str) -> KeptRendering | None:
    """What is kept of a computation, or of the whole run where ``subject`` is empty."""
    table = schema.renderings
    query = sa.select(table).where(table.c.run_id == run, table.c.subject == subject)
    row = connection.execute(query).one_or_none()
    return KeptRendering(row.path, row.nbytes, row.upto, row.version) if row is not None else None


def keep_rendering(
    connection: Connection, run: int, subject: str, made: KeptRendering, basis: Basis, now_us: int
) -> bool:
    """Name a document where its run is still as it was; it takes the place of the one before.

    Rows that were deleted while it was made would otherwise live on in it until their sums go, for years. Blobs are the caller's to
    delete: that of the one before, or of this one where it is not kept.
    """
    if not lock_run(connection, run) or basis_of(connection, run) != basis:
        return False
    changes = {**vars(made), "created_us": now_us}
    statement = insert(connection, schema.renderings).values(run_id=run, subject=subject, **changes)
    connection.execute(statement.on_conflict_do_update(index_elements=["run_id", "subject"], set_=changes))
    return True
