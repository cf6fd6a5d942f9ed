"""Builds of documents in progress: one per run and subject, whichever server a reader asks.

A build is a row with a time until which it is valid. Its server renews it, so that the build of a server that dies ends by itself.
Deleting the rows of a run deletes its builds, so that no document of deleted rows is kept.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import sqlalchemy as sa

from daskscope.storage import schema
from daskscope.storage.archive import Transaction
from daskscope.storage.clock_check import time_of
from daskscope.storage.database import insert
from daskscope.storage.ingest import lock_run

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
