"""Check a server's data and repair it.

Every check is a function from the archive to problems. A problem that can be repaired has the function that does it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import sqlalchemy as sa

from daskscope import units
from daskscope.analysis.running.rollup import roll_up, roll_up_all
from daskscope.storage import schema
from daskscope.storage.base.archive import Archive, Transaction, time_of
from daskscope.storage.base.blobs import BlobStore, MissingBlob
from daskscope.storage.base.bulk import summed
from daskscope.storage.base.database import DatabaseError, StorageError, detail_of
from daskscope.storage.base.migrate import other_version
from daskscope.storage.base.vault import unwrap
from daskscope.storage.runs.compaction import compact
from daskscope.storage.runs.ingest import lock_run, replace_sums
from daskscope.storage.runs.read import Part, read_run, read_snapshot
from daskscope.storage.runs.retention import orphans, stored_tasks
from daskscope.wire.decode import read_frame

#: A buffer that was not compacted for this long is stuck.
STUCK_US = 3600 * 1_000_000


@dataclass(frozen=True)
class Problem:
    """A problem that a check found."""

    check: str
    text: str
    #: Repairs it; None where that is impossible.
    repair: Callable[[], object] | None = None


Check = Callable[[Archive], Iterator[Problem]]


def examine(archive: Archive) -> Iterator[tuple[str, list[Problem]]]:
    """Yield every check with its problems. A check that fails is a problem."""
    for name, check in CHECKS.items():
        try:
            yield name, list(check(archive))
        except (StorageError, DatabaseError, OSError) as error:
            yield name, [Problem(name, f"cannot be checked: {detail_of(error)}")]


def check_catalog(archive: Archive) -> Iterator[Problem]:
    """Check that the database is intact and has this version's schema."""
    with archive.read() as tx:
        if wrong := other_version(tx.connection):
            yield Problem("catalog", f"{wrong}: start daskscope serve once")
        if archive.database.is_sqlite:
            for row in tx.connection.exec_driver_sql("PRAGMA integrity_check(10)"):
                if row[0] != "ok":
                    yield Problem("catalog", f"SQLite says: {row[0]}. Restore a backup of the catalog.")


def check_keys(archive: Archive) -> Iterator[Problem]:
    """Check that every account has a key that the master key can unwrap."""
    keys, accounts = schema.account_keys, schema.accounts
    with archive.read() as tx:
        for row in tx.execute(sa.select(keys)):
            try:
                unwrap(archive.vault.masters, bytes(row.wrapped))
            except StorageError:
                text = f"key {row.id} of account {row.account_id} was wrapped by another master key: its texts are lost without it"
                yield Problem("keys", text)
        without = sa.select(accounts.c.id, accounts.c.name).where(accounts.c.id.not_in(sa.select(keys.c.account_id)))
        for row in tx.execute(without):
            yield Problem("keys", f"account {row.name} has no key", partial(_add_key, archive, row.id))


def _add_key(archive: Archive, account: int) -> None:
    with archive.write() as tx:
        archive.vault.add_key(tx.connection, account)


def check_orphans(archive: Archive) -> Iterator[Problem]:
    """Find orphaned files, left by a crash between writing and naming them."""
    with archive.read() as tx:
        found = orphans(tx, time_of(tx))
    for path, size in found:
        repair = partial(archive.store.delete, path)
        yield Problem("orphans", f"{path} ({units.nbytes(size)}) has no name", repair)


def check_files(archive: Archive) -> Iterator[Problem]:
    """Find files that are named but missing."""
    named = [(column, row) for column in _PATHS for row in _naming(archive, column)]
    # List the store after the catalog: a file that is written and named meanwhile is then in the list.
    there = {path for path, _, _ in archive.store.list()}
    for column, (path, owner) in named:
        # Check again: the file may have been deleted since, and its name before it.
        if path in there or not _is_missing(archive, column, path):
            continue
        if column.table is schema.reports:
            yield Problem("files", f"{path} of report {owner} is missing")
            continue
        lost = "its rows are lost" if column.table is schema.files else "it is made again when opened"
        repair = partial(_forget, archive, column.table, path, owner)
        yield Problem("files", f"{path} of run {owner} is missing: {lost}", repair)


#: Columns that name blobs.
_PATHS = (schema.files.c.path, schema.documents.c.path, schema.reports.c.path, schema.reports.c.html_path)


def _naming(archive: Archive, column: sa.Column[str]) -> list[tuple[str, int]]:
    """Return the paths in a column with the number of their run or report."""
    owner = column.table.c["number" if column.table is schema.reports else "run_id"]
    query = sa.select(column, owner).where(column != "").order_by(owner, column)
    with archive.read() as tx:
        return [(path, number) for path, number in tx.execute(query)]


def _is_missing(archive: Archive, column: sa.Column[str], path: str) -> bool:
    # In this order: a file's name is deleted before the file.
    if _is_there(archive.store, path):
        return False
    with archive.read() as tx:
        return _is_named(tx, column, path)


def _is_named(tx: Transaction, column: sa.Column[str], path: str) -> bool:
    return tx.execute(sa.select(column).where(column == path).limit(1)).scalar() is not None


def _is_there(store: BlobStore, path: str) -> bool:
    try:
        store.get(path)
    except MissingBlob:
        return False
    return True


def _forget(archive: Archive, table: sa.Table, path: str, run: int) -> None:
    with archive.write() as tx:
        # The lock keeps out compactions and deletions; an earlier one would have removed the name.
        if not lock_run(tx, run) or not _is_named(tx, table.c.path, path) or _is_there(archive.store, path):
            return
        if table is schema.files:
            _count_removed(tx, run, path)
        tx.execute(sa.delete(table).where(table.c.path == path))


def _count_removed(tx: Transaction, run: int, path: str) -> None:
    """Keep the sums, which count the removed rows too."""
    files, runs = schema.files, schema.runs
    lost = sa.select(files.c.rows).where(files.c.path == path, files.c.name == "tasks")
    for rows in tx.execute(lost).scalars().all():
        removed = runs.c.tasks_removed + rows
        tx.execute(sa.update(runs).where(runs.c.id == run).values(tasks_removed=removed))


def check_compactions(archive: Archive) -> Iterator[Problem]:
    """Find ended runs that are still buffered, and unreadable batches."""
    runs, batches = schema.runs, schema.batches
    stuck = sa.select(runs.c.id, runs.c.account_id, runs.c.buffered_nbytes).where(
        runs.c.buffered_nbytes > 0, runs.c.received_us < archive.clock() - STUCK_US
    )
    with archive.read() as tx:
        rows = tx.execute(stuck).all()
        unread = sa.select(batches.c.id, batches.c.run_id, batches.c.damage).where(
            batches.c.damage != "", batches.c.frame.is_not(None)
        )
        damaged = tx.execute(unread).all()
    for row in rows:
        text = f"run {row.id} has {units.nbytes(row.buffered_nbytes)} that were not compacted for an hour"
        yield Problem("compactions", text, partial(compact, archive, row.account_id, row.id, over=True))
    for row in damaged:
        yield Problem("compactions", f"batch {row.id} of run {row.run_id} cannot be read: {row.damage}")


def check_sums(archive: Archive) -> Iterator[Problem]:
    """Find roll-ups that disagree with their rows."""
    runs, prefixes = schema.runs, schema.prefixes
    total = summed(prefixes.c.tasks).label("tasks")
    # In one snapshot: a batch between two statements would look like a disagreement.
    with archive.snapshot() as tx:
        rows = tx.execute(sa.select(runs.c.id, runs.c.account_id, runs.c.tasks, runs.c.tasks_removed)).all()
        by_prefix = tx.execute(sa.select(prefixes.c.run_id, total).group_by(prefixes.c.run_id)).all()
        stored = {row.id: stored_tasks(tx, row.id) for row in rows}
    by_run = {row.run_id: row.tasks for row in by_prefix}
    for row in rows:
        counted, prefixed = stored[row.id], by_run.get(row.id, 0)
        if counted + row.tasks_removed != row.tasks or prefixed != row.tasks:
            text = (
                f"run {row.id} counts {row.tasks:,} tasks, {prefixed:,} by prefix, and had {counted + row.tasks_removed:,} "
                "rows of them"
            )
            # Sums whose rows were deleted cannot be computed again.
            repair = partial(_recount, archive, row.account_id, row.id) if not row.tasks_removed else None
            yield Problem("sums", text, repair)


def _recount(archive: Archive, account: int, run: int) -> None:
    """Sum up a run's tasks again."""
    with archive.write() as tx:
        # Lock the run so that nothing is added meanwhile.
        if not lock_run(tx, run):
            return
        recording = read_run(tx, account, run, str(run), Part(tables=("tasks",)))
        total = roll_up_all(recording["tasks"])
        for frame in _put_aside(tx, run):
            total.add(roll_up(read_frame(frame).without_keys()))
        replace_sums(tx, account, run, total)


def _put_aside(tx: Transaction, run: int) -> list[bytes]:
    """Return task batches that were counted at ingest but whose keys cannot be read."""
    batches = schema.batches
    mine = (batches.c.run_id == run) & (batches.c.name == "tasks") & (batches.c.damage != "")
    rows = tx.execute(sa.select(batches.c.frame).where(mine, batches.c.frame.is_not(None)))
    return [bytes(frame) for frame in rows.scalars()]


def check_contents(archive: Archive) -> Iterator[Problem]:
    """Check that a sample of runs can be read: one in twenty, the same ones each day."""
    runs = schema.runs
    with archive.read() as tx:
        rows = tx.execute(sa.select(runs.c.id, runs.c.account_id)).all()
    day = archive.clock() // (24 * STUCK_US)
    for row in rows:
        digest = hashlib.sha256(f"{day} {row.id}".encode()).digest()
        if len(rows) > 20 and digest[0] % 20:
            continue
        try:
            part = Part(tables=("tasks", "computations", "exceptions"))
            recording = read_snapshot(archive, row.account_id, row.id, str(row.id), part)
        except (StorageError, MissingBlob, OSError, ValueError) as error:
            yield Problem("contents", f"run {row.id} cannot be read: {str(error).splitlines()[0]}")
            continue
        if recording.damage:
            yield Problem("contents", f"run {row.id}: {recording.damage}")


CHECKS: dict[str, Check] = {
    "catalog": check_catalog,
    "keys": check_keys,
    "orphans": check_orphans,
    "files": check_files,
    "compactions": check_compactions,
    "sums": check_sums,
    "contents": check_contents,
}


class LostFiles(StorageError):
    """Files of rows are missing. The message contains neither names nor paths."""


def lost_rows(archive: Archive) -> dict[int, int]:
    """Return how many rows are in files that are missing or shorter than when they were written, by run."""
    files = schema.files
    named = sa.select(files.c.run_id, files.c.path, files.c.rows, files.c.nbytes)
    with archive.read() as tx:
        rows = tx.execute(named).all()
    # List the store after the catalog: a file that is written and named meanwhile is then in the list.
    sizes = {path: size for path, size, _ in archive.store.list()}
    # An encrypted file is longer than its rows.
    suspects = [row for row in rows if sizes.get(row.path, -1) < row.nbytes]
    if not suspects:
        return {}
    with archive.read() as tx:
        # A compaction may have replaced and deleted some since.
        still = set(tx.execute(sa.select(files.c.path)).scalars())
    found: dict[int, int] = {}
    for row in suspects:
        if row.path in still:
            found[row.run_id] = found.get(row.run_id, 0) + row.rows
    return found
