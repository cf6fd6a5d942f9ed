"""Look whether what a server keeps is whole, and mend what can be mended.

Every check is a function from the storage to findings; a finding that can be mended brings the function that does it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope import units
from daskscope.analysis.rollup import roll_up, roll_up_all
from daskscope.storage import schema
from daskscope.storage.blobs import BlobStore, MissingBlob
from daskscope.storage.compaction import compact
from daskscope.storage.database import Database, DatabaseError, StorageError, detail_of
from daskscope.storage.ingest import lock_run, replace_sums
from daskscope.storage.migrate import other_version
from daskscope.storage.retention import orphans, stored_tasks
from daskscope.storage.runs import Part, read_run, read_steadily
from daskscope.storage.sums import summed
from daskscope.storage.vault import Vault, unwrap
from daskscope.wire.decode import read_frame

#: A buffer nobody compacted for so long is stuck.
STUCK_US = 3600 * 1_000_000


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be."""

    check: str
    text: str
    #: Mends it; None where nothing can.
    mend: Callable[[], None] | None = None


@dataclass(frozen=True)
class Patient:
    """The storage of a server."""

    database: Database
    vault: Vault
    store: BlobStore
    now_us: int


Check = Callable[[Patient], Iterator[Finding]]


def examine(patient: Patient) -> Iterator[tuple[str, list[Finding]]]:
    """Every check with what it found; one that cannot be made says so."""
    for name, check in CHECKS.items():
        try:
            yield name, list(check(patient))
        except (StorageError, DatabaseError, OSError) as error:
            yield name, [Finding(name, f"cannot be checked: {detail_of(error)}")]


def check_catalog(patient: Patient) -> Iterator[Finding]:
    """The database is whole and has this version's schema."""
    with patient.database.read() as connection:
        if wrong := other_version(connection):
            yield Finding("catalog", f"{wrong}: start daskscope serve once")
        if patient.database.is_sqlite:
            for row in connection.exec_driver_sql("PRAGMA integrity_check(10)"):
                if row[0] != "ok":
                    yield Finding("catalog", f"SQLite says: {row[0]}. Restore a backup of the catalog.")


def check_keys(patient: Patient) -> Iterator[Finding]:
    """Every account has a key, and the master key opens it."""
    keys, accounts = schema.account_keys, schema.accounts
    with patient.database.read() as connection:
        for row in connection.execute(sa.select(keys)):
            try:
                unwrap(patient.vault.masters, bytes(row.wrapped))
            except StorageError:
                text = f"key {row.id} of account {row.account_id} was wrapped by another master key: its texts are lost without it"
                yield Finding("keys", text)
        without = sa.select(accounts.c.id, accounts.c.name).where(accounts.c.id.not_in(sa.select(keys.c.account_id)))
        for row in connection.execute(without):
            yield Finding("keys", f"account {row.name} has no key", _add_key(patient, row.id))


def _add_key(patient: Patient, account: int) -> Callable[[], None]:
    def mend() -> None:
        with patient.database.write() as connection:
            patient.vault.add_key(connection, account)

    return mend


def check_orphans(patient: Patient) -> Iterator[Finding]:
    """Files that nothing names: left by a crash between writing and naming them."""
    with patient.database.read() as connection:
        found = orphans(connection, patient.store)
    for path, size in found:
        mend = partial(patient.store.delete, path)
        yield Finding("orphans", f"{path} ({units.nbytes(size)}) is named by nothing", mend)


def check_files(patient: Patient) -> Iterator[Finding]:
    """Files that are named but not there."""
    named = [(column, row) for column in _PATHS for row in _naming(patient, column)]
    # The store after the catalog: a file that is written and named while we look is then among those that are there.
    there = {path for path, _, _ in patient.store.list()}
    for column, (path, owner) in named:
        # And again where one is not there: it may have been deleted, and its name before it, since we read the names.
        if path in there or not _is_missing(patient, column, path):
            continue
        if column.table is schema.reports:
            yield Finding("files", f"{path} of report {owner} is missing")
            continue
        lost = "its rows are lost" if column.table is schema.files else "it is made again when somebody looks"
        yield Finding("files", f"{path} of run {owner} is missing: {lost}", _forget(patient, column.table, path, owner))


#: What names blobs.
_PATHS = (schema.files.c.path, schema.renderings.c.path, schema.reports.c.path, schema.reports.c.html_path)


def _naming(patient: Patient, column: sa.Column[str]) -> list[tuple[str, int]]:
    """The paths a column names, with the number of the run or report they belong to."""
    owner = column.table.c["number" if column.table is schema.reports else "run_id"]
    query = sa.select(column, owner).where(column != "").order_by(owner, column)
    with patient.database.read() as connection:
        return [(path, number) for path, number in connection.execute(query)]


def _is_missing(patient: Patient, column: sa.Column[str], path: str) -> bool:
    # In this order: who deletes a file takes its name away first.
    if _is_there(patient.store, path):
        return False
    with patient.database.read() as connection:
        return _is_named(connection, column, path)


def _is_named(connection: Connection, column: sa.Column[str], path: str) -> bool:
    return connection.execute(sa.select(column).where(column == path).limit(1)).scalar() is not None


def _is_there(store: BlobStore, path: str) -> bool:
    try:
        store.get(path)
    except MissingBlob:
        return False
    return True


def _forget(patient: Patient, table: sa.Table, path: str, run: int) -> Callable[[], None]:
    def mend() -> None:
        with patient.database.write() as connection:
            # Nobody compacts the run or deletes rows of it now, and who did before left no name to find.
            if not lock_run(connection, run) or not _is_named(connection, table.c.path, path):
                return
            if _is_there(patient.store, path):
                return
            if table is schema.files:
                _count_removed(connection, run, path)
            connection.execute(sa.delete(table).where(table.c.path == path))

    return mend


def _count_removed(connection: Connection, run: int, path: str) -> None:
    """The sums stay: they count what was there."""
    files, runs = schema.files, schema.runs
    lost = sa.select(files.c.rows).where(files.c.path == path, files.c.name == "tasks")
    for rows in connection.execute(lost).scalars().all():
        removed = runs.c.tasks_removed + rows
        connection.execute(sa.update(runs).where(runs.c.id == run).values(tasks_removed=removed))


def check_compactions(patient: Patient) -> Iterator[Finding]:
    """Runs that are long over and still buffered, and batches that cannot be read."""
    runs, batches = schema.runs, schema.batches
    stuck = sa.select(runs.c.id, runs.c.account_id, runs.c.buffered_nbytes).where(
        runs.c.buffered_nbytes > 0, runs.c.received_us < patient.now_us - STUCK_US
    )
    with patient.database.read() as connection:
        rows = connection.execute(stuck).all()
        unread = sa.select(batches.c.id, batches.c.run_id, batches.c.damage).where(
            batches.c.damage != "", batches.c.frame.is_not(None)
        )
        damaged = connection.execute(unread).all()
    for row in rows:
        text = f"run {row.id} has {units.nbytes(row.buffered_nbytes)} that nobody compacted for an hour"
        yield Finding("compactions", text, _compact(patient, row.account_id, row.id))
    for row in damaged:
        yield Finding("compactions", f"batch {row.id} of run {row.run_id} cannot be read: {row.damage}")


def _compact(patient: Patient, account: int, run: int) -> Callable[[], None]:
    def mend() -> None:
        compact(patient.database, patient.vault, patient.store, account, run, patient.now_us, over=True)

    return mend


def check_sums(patient: Patient) -> Iterator[Finding]:
    """Roll-ups that disagree with the rows they are sums of."""
    runs, prefixes = schema.runs, schema.prefixes
    total = summed(prefixes.c.tasks).label("tasks")
    # At one moment: a batch that comes between two of these statements would be a disagreement.
    with patient.database.snapshot() as connection:
        rows = connection.execute(sa.select(runs.c.id, runs.c.account_id, runs.c.tasks, runs.c.tasks_removed)).all()
        by_prefix = connection.execute(sa.select(prefixes.c.run_id, total).group_by(prefixes.c.run_id)).all()
        stored = {row.id: stored_tasks(connection, row.id) for row in rows}
    by_run = {row.run_id: row.tasks for row in by_prefix}
    for row in rows:
        counted, prefixed = stored[row.id], by_run.get(row.id, 0)
        if counted + row.tasks_removed != row.tasks or prefixed != row.tasks:
            text = (
                f"run {row.id} counts {row.tasks:,} tasks, {prefixed:,} by prefix, and had {counted + row.tasks_removed:,} "
                "rows of them"
            )
            # Rows that were deleted left their sums behind, which cannot be made again without them.
            mend = _recount(patient, row.account_id, row.id) if not row.tasks_removed else None
            yield Finding("sums", text, mend)


def _recount(patient: Patient, account: int, run: int) -> Callable[[], None]:
    """Add a run's tasks up again."""

    def mend() -> None:
        with patient.database.write() as connection:
            # Nothing is added meanwhile.
            if not lock_run(connection, run):
                return
            part = Part(tables=("tasks",))
            recording = read_run(connection, patient.vault, patient.store, account, run, str(run), part)
            total = roll_up_all(recording["tasks"])
            for frame in _put_aside(connection, run):
                total.add(roll_up(read_frame(frame).without_keys()))
            replace_sums(connection, account, run, total)

    return mend


def _put_aside(connection: Connection, run: int) -> list[bytes]:
    """Batches of tasks that were counted when they came but whose keys cannot be read."""
    batches = schema.batches
    mine = (batches.c.run_id == run) & (batches.c.name == "tasks") & (batches.c.damage != "")
    rows = connection.execute(sa.select(batches.c.frame).where(mine, batches.c.frame.is_not(None)))
    return [bytes(frame) for frame in rows.scalars()]


def check_contents(patient: Patient) -> Iterator[Finding]:
    """A sample of runs can really be read: one in twenty, the same ones each day."""
    runs = schema.runs
    with patient.database.read() as connection:
        rows = connection.execute(sa.select(runs.c.id, runs.c.account_id)).all()
    day = patient.now_us // (24 * STUCK_US)
    for row in rows:
        digest = hashlib.sha256(f"{day} {row.id}".encode()).digest()
        if len(rows) > 20 and digest[0] % 20:
            continue
        try:
            part = Part(tables=("tasks", "computations", "exceptions"))
            recording = read_steadily(
                patient.database, patient.vault, patient.store, row.account_id, row.id, str(row.id), part
            )
        except (StorageError, MissingBlob, OSError, ValueError) as error:
            yield Finding("contents", f"run {row.id} cannot be read: {str(error).splitlines()[0]}")
            continue
        if recording.damage:
            yield Finding("contents", f"run {row.id}: {recording.damage}")


CHECKS: dict[str, Check] = {
    "catalog": check_catalog,
    "keys": check_keys,
    "orphans": check_orphans,
    "files": check_files,
    "compactions": check_compactions,
    "sums": check_sums,
    "contents": check_contents,
}
