"""Stored documents of runs: the state of the run each was made from, and builds in progress."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import sqlalchemy as sa

from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction, time_of
from daskscope.storage.base.bulk import summed
from daskscope.storage.base.database import insert
from daskscope.storage.runs.ingest import lock_run
from daskscope.storage.runs.retention import KEEP_DOCUMENT_US, replace_files

# Only one server builds the document of a run and subject at a time, whichever server a reader asks.
#
# A build is a row with a time until which it is valid. Its server renews it, so that the build of a server that dies ends by
# itself. Deleting the rows of a run deletes its builds, so that no document of deleted rows is kept.

#: How long a build is valid without renewal: readers wait this long after its server was killed.
LEASE_US = 20_000_000
#: How long a failed build is not tried again. Five million tasks take a minute of a core each time.
RETRY_US = 60_000_000


@dataclass(frozen=True)
class Build:
    """A build that this server has begun."""

    run: int
    subject: str
    builder: str


@dataclass(frozen=True)
class BuildState:
    """The state of a build, of any server."""

    until_us: int
    #: Why it failed; empty while it runs.
    problem: str


def find_build(tx: Transaction, run: int, subject: str) -> BuildState | None:
    """Return the valid build of a document, or None."""
    table = schema.builds
    mine = (table.c.run_id == run) & (table.c.subject == subject) & (table.c.until_us > time_of(tx))
    return tx.row(BuildState, sa.select(table.c.until_us, table.c.problem).where(mine))


def begin_build(tx: Transaction, run: int, subject: str) -> Build | None:
    """Begin a build. Return None if there is a valid one, or if the run was deleted."""
    if not lock_run(tx, run) or find_build(tx, run, subject) is not None:
        return None
    build = Build(run, subject, secrets.token_hex(8))
    changes = {"builder": build.builder, "until_us": time_of(tx) + LEASE_US, "problem": ""}
    statement = insert(tx.connection, schema.builds).values(run_id=run, subject=subject, **changes)
    tx.execute(statement.on_conflict_do_update(index_elements=["run_id", "subject"], set_=changes))
    return build


def renew_build(tx: Transaction, build: Build) -> None:
    """Keep a build valid."""
    tx.execute(sa.update(schema.builds).where(_same(build)).values(until_us=time_of(tx) + LEASE_US))


def end_build(tx: Transaction, build: Build) -> bool:
    """End a build. Return False if it was lost: its rows were deleted, or another server has begun anew."""
    return tx.execute(sa.delete(schema.builds).where(_same(build))).rowcount == 1


def fail_build(tx: Transaction, build: Build, problem: str) -> None:
    """End a build that failed, and tell readers why for a while."""
    changes = {"until_us": time_of(tx) + RETRY_US, "problem": problem}
    tx.execute(sa.update(schema.builds).where(_same(build)).values(changes))


def _same(build: Build) -> sa.ColumnElement[bool]:
    table = schema.builds
    return sa.and_(table.c.run_id == build.run, table.c.subject == build.subject, table.c.builder == build.builder)


#: ``upto`` of a document with unreadable rows. It is never current, because the file may be restored.
INCOMPLETE = -1


@dataclass(frozen=True)
class NewDocument:
    """A document to store, and what it was made from."""

    path: str
    nbytes: int
    #: ``newest_batch`` before its rows were read.
    upto: int
    #: Version of the code that made it.
    version: str


@dataclass(frozen=True)
class StoredDocument(NewDocument):
    """A stored document."""

    created_us: int


@dataclass(frozen=True)
class DocumentState:
    """What there is of a document, and the state of its run."""

    now_us: int
    newest_batch: int
    #: Whether more batches are expected.
    is_live: bool
    tasks: int
    #: The newest stored document.
    kept: StoredDocument | None
    build: BuildState | None


def newest_batch(tx: Transaction, run: int) -> int:
    """Return a number that grows with every batch of a run."""
    epochs = schema.epochs
    taken = sa.select(sa.func.coalesce(sa.func.sum(epochs.c.taken), 0)).where(epochs.c.run_id == run)
    return int(tx.execute(taken).scalar_one())


def document_state(tx: Transaction, run: int, subject: str) -> DocumentState | None:
    """Return the state of a document, or None if its run was deleted."""
    runs = schema.runs
    is_live = sa.and_(runs.c.end_us == 0, runs.c.received_us >= tx.lost_before_us)
    live = tx.execute(sa.select(is_live).where(runs.c.id == run)).scalar()
    if live is None:
        return None
    return DocumentState(
        time_of(tx),
        newest_batch(tx, run),
        bool(live),
        count_tasks(tx, run, subject),
        find_document(tx, run, subject),
        find_build(tx, run, subject),
    )


def find_document(tx: Transaction, run: int, subject: str) -> StoredDocument | None:
    """Return the stored document of a computation, or of the whole run if ``subject`` is empty."""
    table = schema.documents
    query = sa.select(table).where(table.c.run_id == run, table.c.subject == subject)
    return tx.row(StoredDocument, query)


def keep_document(tx: Transaction, build: Build, made: NewDocument) -> StoredDocument | None:
    """Name a document and end its build. It replaces the previous one, which stays for a while for the pages that show it.

    Batches that came meanwhile do not matter: the document says what it was made from. But rows deleted meanwhile would stay in it
    until the sums are deleted, for years. Return None then; the caller deletes the blob.
    """
    if not lock_run(tx, build.run) or not end_build(tx, build):
        return None
    previous = find_document(tx, build.run, build.subject)
    if previous is not None:
        replace_files(tx, build.run, [previous.path], KEEP_DOCUMENT_US)
    stored = StoredDocument(**vars(made), created_us=time_of(tx))
    changes = vars(stored)
    statement = insert(tx.connection, schema.documents).values(run_id=build.run, subject=build.subject, **changes)
    tx.execute(statement.on_conflict_do_update(index_elements=["run_id", "subject"], set_=changes))
    return stored


def count_tasks(tx: Transaction, run: int, subject: str) -> int:
    """Return the number of executions that a document covers."""
    runs, prefixes = schema.runs, schema.prefixes
    query = sa.select(runs.c.tasks).where(runs.c.id == run)
    if subject:
        mine = (prefixes.c.run_id == run) & (prefixes.c.computation == subject)
        query = sa.select(summed(prefixes.c.tasks)).where(mine)
    return int(tx.execute(query).scalar() or 0)
