"""Retention: delete rows after a number of days or beyond a number of bytes, sums later, and orphaned files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from daskscope.storage import schema
from daskscope.storage.base.archive import Archive, Transaction, time_of
from daskscope.storage.base.blobs import BlobStore
from daskscope.storage.base.bulk import summed
from daskscope.storage.catalog.clusters import remove_cluster
from daskscope.storage.people.accounts import Account, list_accounts
from daskscope.storage.people.audit import KEEP_DAYS, delete_events
from daskscope.storage.runs.ingest import lock_run

DAY_US = 24 * 3600 * 1_000_000
#: A compaction may be about to name a younger file.
ORPHAN_AGE_S = 3600.0
#: Runs to delete in one transaction.
STEP = 50
#: Events of the audit log to delete in one transaction.
AUDIT_STEP = 1_000
#: Share of the runs, and number of runs or reports, that one pass may delete because of age or size, whichever is more. Passes are
#: an hour apart: a mistake is noticed before everything is gone, while a day's passes delete nine tenths of any server. In a steady
#: state, less than a hundredth of the runs expires per day.
MAX_SHARE, MIN_PASS = 10, 25
#: Orphaned files that one sweep may delete, at least. Beside a catalog that was restored from a backup, all newer files have
#: no name; a tenth of the files every six hours leaves time to notice.
MIN_SWEEP = 100


@dataclass(frozen=True)
class Limits:
    """The server's defaults for accounts without their own."""

    keep_rows_days: int
    keep_sums_days: int


@dataclass
class Removed:
    """What a retention pass deleted."""

    runs: int = 0
    rows_of_runs: int = 0
    reports: int = 0
    #: Whether more is due than one pass may delete; the next pass continues.
    is_capped: bool = False

    @property
    def anything(self) -> bool:
        return bool(self.runs or self.rows_of_runs or self.reports)


@dataclass
class _Budget:
    """How much a pass may still delete."""

    left: int

    def step(self, most: int = STEP) -> int:
        return min(most, self.left)


def apply_retention(archive: Archive, limits: Limits, now_us: int) -> Removed:
    """Delete what is older than its retention at the given time, at most as much as one pass may delete."""
    removed = Removed()
    _expired_tokens(archive, now_us)
    _old_audit_events(archive, now_us)
    with archive.read() as tx:
        accounts = list_accounts(tx)
        runs = int(tx.execute(sa.select(sa.func.count()).select_from(schema.runs)).scalar_one())
    budget = _Budget(max(MIN_PASS, runs // MAX_SHARE))
    for account in accounts:
        removed.reports += _expired_reports(archive, account, now_us, budget)
        sums = account.preferences.keep_sums_days or limits.keep_sums_days
        if sums:
            removed.runs += _remove_old(archive, account, now_us - sums * DAY_US, budget)
        rows = account.preferences.keep_rows_days or limits.keep_rows_days
        if rows:
            removed.rows_of_runs += _remove_old_rows(archive, account, now_us - rows * DAY_US, budget)
        if account.preferences.keep_rows_nbytes:
            removed.rows_of_runs += _shrink(archive, account, budget)
    removed.is_capped = budget.left == 0
    return removed


def _remove_old(archive: Archive, account: Account, before_us: int, budget: _Budget) -> int:
    with archive.read() as tx:
        old = list(tx.execute(_older(account, before_us).limit(budget.left)).scalars())
    for run in old:
        remove_cluster(archive, run)
    budget.left -= len(old)
    return len(old)


def _remove_old_rows(archive: Archive, account: Account, before_us: int, budget: _Budget) -> int:
    total = 0
    while step := budget.step():
        with archive.write() as tx:
            numbers = list(tx.execute(_older(account, before_us).where(has_rows()).limit(step)).scalars())
            paths = [path for number in numbers for path in delete_rows(tx, number)]
        _delete(archive.store, paths)
        total += len(numbers)
        budget.left -= len(numbers)
        if len(numbers) < step:
            break
    return total


def _older(account: Account, before_us: int) -> sa.Select[tuple[int]]:
    runs = schema.runs
    old = sa.select(runs.c.id).where(runs.c.account_id == account.id, runs.c.received_us < before_us)
    return old.order_by(runs.c.id)


def has_rows() -> sa.ColumnElement[bool]:
    """Return the SQL condition that a run has rows besides its sums."""
    runs, batches, files = schema.runs, schema.batches, schema.files
    buffered = sa.exists().where(batches.c.run_id == runs.c.id, batches.c.frame.is_not(None))
    return sa.or_(buffered, sa.exists().where(files.c.run_id == runs.c.id))


def delete_rows(tx: Transaction, run: int) -> list[str]:
    """Delete a run's rows and keep its sums. Return the paths of its files."""
    if not lock_run(tx, run):
        return []
    runs = schema.runs
    paths: list[str] = []
    removed = runs.c.tasks_removed + stored_tasks(tx, run)
    tx.execute(sa.update(runs).where(runs.c.id == run).values(tasks_removed=removed, buffered_nbytes=0))
    for table in (schema.files, schema.documents, schema.replaced_files):
        paths += tx.execute(sa.select(table.c.path).where(table.c.run_id == run)).scalars()
        tx.execute(sa.delete(table).where(table.c.run_id == run))
    # A build that has read the rows must not keep its document.
    tx.execute(sa.delete(schema.builds).where(schema.builds.c.run_id == run))
    batches = schema.batches
    tx.execute(sa.update(batches).where(batches.c.run_id == run).values(frame=None, damage=""))
    return paths


def stored_tasks(tx: Transaction, run: int) -> int:
    """Count the stored task rows of a run without reading them."""
    files, batches = schema.files, schema.batches
    compacted = sa.select(summed(files.c.rows)).where(files.c.run_id == run, files.c.name == "tasks")
    buffered = sa.select(summed(batches.c.rows)).where(
        batches.c.run_id == run, batches.c.name == "tasks", batches.c.frame.is_not(None)
    )
    return sum(int(tx.execute(query).scalar_one()) for query in (compacted, buffered))


def stored_nbytes(tx: Transaction, account: int) -> int:
    """Return the bytes of an account's recorded rows: its files, and the batches that are not compacted yet."""
    runs, files = schema.runs, schema.files
    mine = runs.c.account_id == account
    compacted = sa.select(summed(files.c.nbytes)).join(runs, runs.c.id == files.c.run_id).where(mine)
    buffered = sa.select(summed(runs.c.buffered_nbytes)).where(mine)
    return sum(int(tx.execute(query).scalar_one()) for query in (compacted, buffered))


def _shrink(archive: Archive, account: Account, budget: _Budget) -> int:
    """Delete the rows of the oldest runs until the account's files fit, or the pass has deleted enough."""
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
    with archive.read() as tx:
        sizes = tx.execute(query).all()
    too_many = []
    for row in sizes:
        kept += row.nbytes
        if kept > account.preferences.keep_rows_nbytes:
            too_many.append(row.id)
    # The oldest first, if not all of them go now.
    for run in too_many[::-1][: budget.left]:
        with archive.write() as tx:
            paths = delete_rows(tx, run)
        _delete(archive.store, paths)
        removed += 1
    budget.left -= removed
    return removed


def _expired_reports(archive: Archive, account: Account, now_us: int, budget: _Budget) -> int:
    reports = schema.reports
    expired = (reports.c.account_id == account.id) & (reports.c.expires_us > 0) & (reports.c.expires_us < now_us)
    query = sa.select(reports.c.id, reports.c.path, reports.c.html_path).where(expired)
    total = 0
    while step := budget.step():
        with archive.write() as tx:
            rows = tx.execute(query.limit(step)).all()
            tx.execute(sa.delete(reports).where(reports.c.id.in_([row.id for row in rows])))
        _delete(archive.store, [path for row in rows for path in (row.path, row.html_path) if path])
        total += len(rows)
        budget.left -= len(rows)
        if len(rows) < step:
            break
    return total


def _expired_tokens(archive: Archive, now_us: int) -> None:
    """Delete expired recorder tokens. Every registered cluster gets one."""
    tokens = schema.tokens
    old = (tokens.c.cluster != "") & (tokens.c.expires_us > 0) & (tokens.c.expires_us < now_us - DAY_US)
    with archive.write() as tx:
        tx.execute(sa.delete(tokens).where(old))


def _old_audit_events(archive: Archive, now_us: int) -> None:
    before = now_us - KEEP_DAYS * DAY_US
    deleted = AUDIT_STEP
    while deleted == AUDIT_STEP:
        with archive.write() as tx:
            deleted = delete_events(tx, before, AUDIT_STEP)


def _delete(store: BlobStore, paths: list[str]) -> None:
    for path in paths:
        store.delete(path)


def orphans(tx: Transaction, now_us: int) -> list[tuple[str, int]]:
    """Return orphaned files, with their sizes, except those that are too young at the given time.

    A file has the time of its store: for local files the clock of this server, for S3 the clock of S3. If one of
    them is ahead, a file that a compaction is about to name would look old, so the earlier of the two counts.
    """
    return _orphans(tx, now_us)[0]


def _orphans(tx: Transaction, now_us: int) -> tuple[list[tuple[str, int]], int]:
    """Return orphaned files, and the number of all files."""
    now_s = min(now_us, tx.now_us) / 1e6
    # List the files first: a file that is written and named meanwhile is then among the named ones.
    listed = list(tx.store.list())
    found = [(path, size) for path, size, modified in listed if now_s - modified > ORPHAN_AGE_S]
    named: set[str] = set()
    tables = (schema.files, schema.documents, schema.replaced_files, schema.reports)
    for column in (*(table.c.path for table in tables), schema.reports.c.html_path):
        named |= set(tx.execute(sa.select(column)).scalars())
    return [(path, size) for path, size in found if path not in named], len(listed)


@dataclass(frozen=True)
class Swept:
    """What a sweep deleted, and how many orphaned files are left for the next one."""

    files: int
    left: int


def sweep(archive: Archive, now_us: int) -> Swept:
    """Delete orphaned files that are old at the given time, at most as many as one sweep may delete."""
    with archive.read() as tx:
        found, total = _orphans(tx, now_us)
    paths = [path for path, _ in found[: max(MIN_SWEEP, total // MAX_SHARE)]]
    _delete(archive.store, paths)
    return Swept(len(paths), len(found) - len(paths))


# Replaced files are named by nothing, but kept for a while.
#
# A catalog that is restored from a backup names files that were replaced since. And a page that was opened from one server asks
# another for the parts of a document that a newer one has replaced meanwhile.

#: How long a replaced document stays. It can be made again, so only pages that are open need it.
KEEP_DOCUMENT_US = 10 * 60 * 1_000_000
#: Files to delete in one transaction, and in one pass. Passes are five minutes apart, and a busy server replaces a file a second.
DELETE_STEP, MAX_PASS = 200, 2_000


def replace_files(tx: Transaction, run: int, paths: Iterable[str], keep_us: int) -> None:
    """Remember files of a run to delete after ``keep_us``."""
    rows = [{"path": path, "run_id": run, "delete_us": time_of(tx) + keep_us} for path in paths]
    if rows:
        tx.execute(sa.insert(schema.replaced_files), rows)


def delete_replaced(archive: Archive, now_us: int) -> int:
    """Delete replaced files whose time has come at the given time, at most as many as one pass may, and return how many."""
    table, total = schema.replaced_files, 0
    while True:
        with archive.read() as tx:
            query = (
                sa.select(table.c.path)
                .where(table.c.delete_us <= now_us)
                .order_by(table.c.delete_us)
                .limit(DELETE_STEP)
            )
            paths = list(tx.execute(query).scalars())
        # The files first: a row without a file is deleted next time, a file without a row only by the sweep.
        for path in paths:
            archive.store.delete(path)
        with archive.write() as tx:
            tx.execute(sa.delete(table).where(table.c.path.in_(paths)))
        total += len(paths)
        if len(paths) < DELETE_STEP or total >= MAX_PASS:
            return total
