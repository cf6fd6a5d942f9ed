"""``daskscope doctor`` finds each fault and repairs it where it can; on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import sqlalchemy as sa
from tests.helpers.archive import DAY, NOW, Archive, frame, numbered, problem_texts, task
from tests.helpers.every_table import broken_keys

from daskscope.storage import schema
from daskscope.storage.base.blobs import BlobStore, LocalStore
from daskscope.storage.base.migrate import VERSIONS
from daskscope.storage.base.vault import Vault
from daskscope.storage.catalog.clusters import delete_cluster
from daskscope.storage.doctor import CHECKS, check_files, examine
from daskscope.storage.runs.retention import delete_rows


def repair(archive: Archive) -> None:
    for _, found in examine(archive):
        for problem in found:
            if problem.repair is not None:
                problem.repair()


def healthy(archive: Archive, *, compacted: bool = True) -> int:
    archive.ingest(numbered([[task(n, computation=f"c{n}")] for n in range(6)]))
    run = int(archive.run()["id"])
    if compacted:
        archive.compact(run)
    return run


def path_of(archive: Archive, run: int) -> str:
    (path,) = [row["path"] for row in archive.rows(schema.files) if row["run_id"] == run]
    return str(path)


def test_a_healthy_archive_has_no_problems(archive: Archive) -> None:
    healthy(archive)
    archive.ingest([frame("tasks", [task(9)], 6)])
    assert [name for name, _ in examine(archive)] == list(CHECKS)
    assert problem_texts(archive) == {}


def test_a_catalog_of_another_version_is_found(archive: Archive) -> None:
    archive.execute(sa.update(VERSIONS).values(version_num="0000"))
    assert "0000" in problem_texts(archive)["catalog"][0]


def test_a_damaged_sqlite_file_is_found(sqlite_archive: Archive) -> None:
    healthy(sqlite_archive)
    with sqlite_archive.write() as tx:
        tx.connection.exec_driver_sql("PRAGMA writable_schema=ON")
        tx.connection.exec_driver_sql("UPDATE sqlite_master SET rootpage=3 WHERE name='ix_runs_account_id_start_us'")
    sqlite_archive.database.close()
    # Depending on the page, SQLite reports the damage or fails.
    found = problem_texts(sqlite_archive)["catalog"][0]
    assert "SQLite says" in found or "malformed" in found


def test_a_wrong_master_key_is_found(archive: Archive) -> None:
    archive.vault = Vault([bytes(32)])
    assert "another master key" in problem_texts(archive)["keys"][0]


def test_an_account_without_a_key_gets_one(archive: Archive) -> None:
    archive.execute(sa.delete(schema.account_keys))
    assert problem_texts(archive) == {"keys": ["account team has no key"]}
    repair(archive)
    archive.vault = Vault(archive.vault.masters)
    assert problem_texts(archive) == {}
    archive.ingest([frame("logs", [{"time_us": NOW, "message": "m"}])])


def test_orphaned_files_are_removed(archive: Archive) -> None:
    healthy(archive)
    assert isinstance(archive.store, LocalStore)
    archive.store.put("1/runs/77/tasks.parquet-1", b"x" * 2000)
    long_ago = time.time() - 2 * 3600
    os.utime(archive.store.local("1/runs/77/tasks.parquet-1"), (long_ago, long_ago))
    assert problem_texts(archive) == {"orphans": ["1/runs/77/tasks.parquet-1 (1.95 KiB) has no name"]}
    repair(archive)
    assert problem_texts(archive) == {}


def test_a_missing_file_is_removed_from_the_catalog_and_its_sums_are_kept(archive: Archive) -> None:
    run = healthy(archive)
    path = path_of(archive, run)
    archive.store.delete(path)
    found = problem_texts(archive)
    assert found["files"] == [f"{path} of run {run} is missing: its rows are lost"]
    repair(archive)
    assert problem_texts(archive) == {}
    assert archive.run()["tasks"] == 6
    assert archive.recording(run).damage == ""


class HookedListing(LocalStore):
    """A store that calls a function before or after a listing: listing a large bucket takes minutes."""

    def __init__(
        self, inner: BlobStore, *, before: Callable[[], object] = bool, after: Callable[[], object] = bool
    ) -> None:
        assert isinstance(inner, LocalStore)
        super().__init__(inner.directory)
        self.before, self.after = before, after

    def list(self) -> Iterator[tuple[str, int, float]]:
        self.before()
        yield from list(super().list())
        self.after()


def test_a_file_written_while_the_store_is_listed_is_not_missing(archive: Archive) -> None:
    run = healthy(archive, compacted=False)
    store = HookedListing(archive.store, after=lambda: archive.compact(run))
    assert list(check_files(archive.with_store(store))) == []
    assert archive.count(schema.files) == 1


def test_a_file_merged_while_the_store_is_listed_is_not_missing(archive: Archive) -> None:
    run = healthy(archive)
    archive.ingest([frame("tasks", [task(9)], 6)])
    old = path_of(archive, run)
    store = HookedListing(archive.store, before=lambda: archive.compact(run))
    assert list(check_files(archive.with_store(store))) == []
    assert path_of(archive, run) != old


def test_a_restored_file_is_not_removed_from_the_catalog(archive: Archive) -> None:
    run = healthy(archive)
    path = path_of(archive, run)
    data = archive.store.get(path)
    archive.store.delete(path)
    (problem,) = check_files(archive)
    archive.store.put(path, data)
    assert problem.repair is not None
    problem.repair()
    assert path_of(archive, run) == path
    assert (archive.run()["tasks_removed"], archive.recording(run)["tasks"].rows) == (0, 6)


def test_repairing_a_missing_file_of_a_deleted_run_does_nothing(archive: Archive) -> None:
    run = healthy(archive)
    archive.store.delete(path_of(archive, run))
    (problem,) = check_files(archive)
    with archive.write() as tx:
        delete_cluster(tx, run)
    assert problem.repair is not None
    problem.repair()
    assert archive.tables_naming(run) == []


def test_a_missing_document_is_forgotten_and_a_missing_report_is_reported(archive: Archive) -> None:
    run = healthy(archive)
    archive.execute(sa.insert(schema.documents).values(run_id=run, subject="", path="1/gone"))
    archive.execute(sa.insert(schema.reports).values(account_id=archive.account, number=4, path="1/lost"))
    assert problem_texts(archive)["files"] == [
        f"1/gone of run {run} is missing: it is made again when opened",
        "1/lost of report 4 is missing",
    ]
    repair(archive)
    assert problem_texts(archive)["files"] == ["1/lost of report 4 is missing"]


def test_an_overdue_buffer_is_compacted(archive: Archive) -> None:
    run = healthy(archive, compacted=False)
    archive.now_us += DAY
    assert f"run {run}" in problem_texts(archive)["compactions"][0]
    repair(archive)
    assert problem_texts(archive) == {}
    assert archive.recording(run)["tasks"].rows == 6


def test_an_unreadable_batch_is_reported(archive: Archive) -> None:
    archive.ingest([frame("tasks", [task(0)], 0), broken_keys(1)])
    archive.compact(archive.run()["id"])
    found = problem_texts(archive)
    assert set(found) == {"compactions", "contents"}
    assert "cannot be read" in found["compactions"][0]


def test_wrong_sums_are_recomputed(archive: Archive) -> None:
    run = healthy(archive)
    names = ("tasks", "errors", "compute_us", "nbytes")
    before = {name: archive.run()[name] for name in names}
    tables = (schema.prefixes, schema.days, schema.timeline)
    rows = [archive.rows(table) for table in tables]
    archive.execute(sa.update(schema.runs).values(tasks=99, compute_us=1))
    archive.execute(sa.delete(schema.timeline))
    archive.execute(sa.update(schema.prefixes).values(nbytes=3))
    assert problem_texts(archive) == {"sums": [f"run {run} counts 99 tasks, 6 by prefix, and had 6 rows of them"]}
    repair(archive)
    assert problem_texts(archive) == {}
    assert {name: archive.run()[name] for name in names} == before
    assert [archive.rows(table) for table in tables] == rows


def test_sums_of_a_long_run_are_recomputed_without_losing_a_step(archive: Archive) -> None:
    """Seven hours in steps of ten seconds, and more computations than one batch may hold."""
    parts = [[task(10 * n, computation=f"c{n}") for n in range(first, first + 500)] for first in range(0, 2500, 500)]
    archive.ingest(numbered(parts))
    tables = (schema.prefixes, schema.days, schema.timeline)
    rows = [archive.rows(table) for table in tables]
    assert len(rows[2]) == 2500
    archive.execute(sa.update(schema.runs).values(tasks=1))
    repair(archive)
    assert problem_texts(archive) == {}
    assert [archive.rows(table) for table in tables] == rows


def test_a_batch_that_was_set_aside_is_still_counted(archive: Archive) -> None:
    archive.ingest([frame("tasks", [task(0)], 0), broken_keys(1)])
    archive.compact(archive.run()["id"])
    archive.execute(sa.update(schema.runs).values(tasks=1))
    repair(archive)
    assert archive.run()["tasks"] == 4
    assert "sums" not in problem_texts(archive)


def test_sums_of_deleted_rows_are_not_checked_or_recomputed(archive: Archive) -> None:
    run = healthy(archive)
    with archive.write() as tx:
        for path in delete_rows(tx, run):
            archive.store.delete(path)
    archive.ingest([frame("tasks", [task(9)], 6)])
    assert problem_texts(archive) == {}
    archive.execute(sa.update(schema.runs).values(tasks=99))
    repair(archive)
    assert archive.run()["tasks"] == 99


def test_an_unreadable_file_is_reported(archive: Archive) -> None:
    run = healthy(archive)
    archive.store.put(path_of(archive, run), b"nonsense")
    assert f"run {run}" in problem_texts(archive)["contents"][0]
