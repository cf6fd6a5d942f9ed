"""Which finished documents are kept of a run, and from how much of it they were made."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.database import insert


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


def find_rendering(connection: Connection, run: int, subject: str) -> KeptRendering | None:
    """What is kept of a computation, or of the whole run where ``subject`` is empty."""
    table = schema.renderings
    query = sa.select(table).where(table.c.run_id == run, table.c.subject == subject)
    row = connection.execute(query).one_or_none()
    return KeptRendering(row.path, row.nbytes, row.upto, row.version) if row is not None else None


def keep_rendering(connection: Connection, run: int, subject: str, made: KeptRendering, now_us: int) -> None:
    """Name a document; it takes the place of the one before, whose blob is the caller's to delete."""
    changes = {**vars(made), "created_us": now_us}
    statement = insert(connection, schema.renderings).values(run_id=run, subject=subject, **changes)
    connection.execute(statement.on_conflict_do_update(index_elements=["run_id", "subject"], set_=changes))
