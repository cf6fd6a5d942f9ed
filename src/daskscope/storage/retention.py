"""How long things are kept: rows for some days or bytes, sums longer, and files nobody names not at all."""

from __future__ import annotations

import time
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.accounts import Account, list_accounts
from daskscope.storage.blobs import BlobStore
from daskscope.storage.clusters import delete_cluster
from daskscope.storage.database import Database
from daskscope.storage.ingest import lock_run
from daskscope.storage.sums import summed

DAY_US = 24 * 3600 * 1_000_000
#: A file younger than this may be one that a compaction is just about to name.
ORPHAN_AGE_S = 3600.0
#: Runs dealt with in one transaction.
STEP = 50


@dataclass(frozen=True)
class Limits:
    """What the server keeps where an account says nothing."""

    keep_rows_days: int
    keep_sums_days: int


@dataclass
class Removed:
    """What a pass removed."""

    runs: int = 0
    rows_of_runs: int = 0
    reports: int = 0


def apply_retention(database: Database, store: BlobStore, limits: Limits, now_us: int) -> Removed:
    """Remove what is older than it may be."""
    removed = Removed()
    _expired_tokens(database, now_us)
    with database.read() as connection:
        accounts = list_accounts(connection)
    for account in accounts:
        _expired_reports(database, store, account, now_us, removed)
        sums = account.preferences.keep_sums_days or limits.keep_sums_days
        if sums:
            removed.runs += _remove(database, store, account, now_us - sums * DAY_US, whole=True)
        rows = account.preferences.keep_rows_days or limits.keep_rows_days
        if rows:
            removed.rows_of_runs += _remove(database, store, account, now_us - rows * DAY_US, whole=False)
        if account.preferences.keep_rows_nbytes:
            removed.rows_of_runs += _shrink(database, store, account)
    return removed


def _remove(database: Database, store: BlobStore, account: Account, before_us: int, *, whole: bool) -> int:
    runs, total = schema.runs, 0
    while True:
        old = sa.select(runs.c.id).where(runs.c.account_id == account.id, runs.c.received_us < before_us)
        with database.write() as connection:
            if not whole:
                old = old.where(has_rows())
            numbers = list(connection.execute(old.order_by(runs.c.id).limit(STEP)).scalars())
            forget = delete_cluster if whole else delete_rows
            paths = [path for number in numbers for path in forget(connection, number)]
        _delete(store, paths)
        total += len(numbers)
        if len(numbers) < STEP:
            return total


def has_rows() -> sa.ColumnElement[bool]:
    """Whether there are rows of a run besides its sums."""
    runs, batches, files = schema.runs, schema.batches, schema.files
    buffered = sa.exists().where(batches.c.run_id == runs.c.id, batches.c.frame.is_not(None))
    return sa.or_(buffered, sa.exists().where(files.c.run_id == runs.c.id))


def delete_rows(connection: Connection, run: int) -> list[str]:
    """Delete a run's rows and keep its sums; the paths of the files that go."""
    if not lock_run(connection, run):
        return []
    runs = schema.runs
    paths: list[str] = []
    removed = runs.c.tasks_removed + stored_tasks(connection, run)
    connection.execute(sa.update(runs).where(runs.c.id == run).values(tasks_removed=removed, buffered_nbytes=0))
    for table in (schema.files, schema.renderings):
        paths += connection.execute(sa.select(table.c.path).where(table.c.run_id == run)).scalars()
        connection.execute(sa.delete(table).where(table.c.run_id == run))
    batches = schema.batches
    connection.execute(sa.update(batches).where(batches.c.run_id == run).values(frame=None, damage=""))
    return paths


def stored_tasks(connection: Connection, run: int) -> int:
    """Rows of tasks that are stored, counted without reading them."""
    files, batches = schema.files, schema.batches
    compacted = sa.select(summed(files.c.rows)).where(files.c.run_id == run, files.c.name == "tasks")
    buffered = sa.select(summed(batches.c.rows)).where(
        batches.c.run_id == run, batches.c.name == "tasks", batches.c.frame.is_not(None)
    )
    return sum(int(connection.execute(query).scalar_one()) for query in (compacted, buffered))


def _shrink(database: Database, store: BlobStore, account: Account) -> int:
    """Delete the rows of the oldest runs until the account's files fit."""
    runs, files = schema.runs, schema.files
    total = summed(files.c.nbytes).label("nbytes")
    query = (
        sa.select(runs.c.id, total)
        .join(files, files.c.run_id == runs.c.id)
        .where(runs.c.account_id == account.id)
        .group_by(runs.c.id, runs.c.received_us)
        .order_by(runs.c.received_us.desc())
    )
    kept, removed = 0, 0
    with database.read() as connection:
        sizes = connection.execute(query).all()
    for row in sizes:
        kept += row.nbytes
        if kept > account.preferences.keep_rows_nbytes:
            with database.write() as connection:
                paths = delete_rows(connection, row.id)
            _delete(store, paths)
            removed += 1
    return removed


def _expired_reports(database: Database, store: BlobStore, account: Account, now_us: int, removed: Removed) -> None:
    reports = schema.reports
    expired = (reports.c.account_id == account.id) & (reports.c.expires_us > 0) & (reports.c.expires_us < now_us)
    query = sa.select(reports.c.id, reports.c.path, reports.c.html_path).where(expired).limit(STEP)
    while True:
        with database.write() as connection:
            rows = connection.execute(query).all()
            connection.execute(sa.delete(reports).where(reports.c.id.in_([row.id for row in rows])))
        _delete(store, [path for row in rows for path in (row.path, row.html_path) if path])
        removed.reports += len(rows)
        if len(rows) < STEP:
            return


def _expired_tokens(database: Database, now_us: int) -> None:
    """Every cluster that registers gets a token of its own; nobody asks for it again once it is over."""
    tokens = schema.tokens
    old = (tokens.c.cluster != "") & (tokens.c.expires_us > 0) & (tokens.c.expires_us < now_us - DAY_US)
    with database.write() as connection:
        connection.execute(sa.delete(tokens).where(old))


def _delete(store: BlobStore, paths: list[str]) -> None:
    for path in paths:
        store.delete(path)


def orphans(connection: Connection, store: BlobStore, now_s: float | None = None) -> list[tuple[str, int]]:
    """Files nobody names, with their sizes."""
    now_s = time.time() if now_s is None else now_s
    # The files first: one that is written and named while we look is then among the named.
    found = [(path, size) for path, size, modified in store.list() if now_s - modified > ORPHAN_AGE_S]
    named: set[str] = set()
    for column in (schema.files.c.path, schema.renderings.c.path, schema.reports.c.path, schema.reports.c.html_path):
        named |= set(connection.execute(sa.select(column)).scalars())
    return [(path, size) for path, size in found if path not in named]


def sweep(database: Database, store: BlobStore) -> int:
    """Delete files nobody names; how many."""
    with database.read() as connection:
        paths = [path for path, _ in orphans(connection, store)]
    _delete(store, paths)
    return len(paths)
