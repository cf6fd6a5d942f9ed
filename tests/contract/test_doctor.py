"""Each kind of fault is found, and mended where it can be; on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import sqlalchemy as sa
from tests.archive import DAY, NOW, Archive, frame, numbered, task
from tests.contract.test_compaction import broken_keys

from daskscope.storage import schema
from daskscope.storage.blobs import BlobStore, LocalStore
from daskscope.storage.clusters import delete_cluster
from daskscope.storage.doctor import CHECKS, Patient, check_files, examine
from daskscope.storage.migrate import VERSIONS
from daskscope.storage.retention import delete_rows
from daskscope.storage.vault import Vault


def patient(archive: Archive) -> Patient:
    return Patient(archive.database, archive.vault, archive.store, archive.now_us)


def texts(archive: Archive) -> dict[str, list[str]]:
    """What is found, by check; checks that found nothing left out."""
    return {name: [f.text for f in found] for name, found in examine(patient(archive)) if found}


def mend(archive: Archive) -> None:
    for _, found in examine(patient(archive)):
        for finding in found:
            if finding.mend is not None:
                finding.mend()


def healthy(archive: Archive, *, compacted: bool = True) -> int:
    archive.take(numbered([[task(n, computation=f"c{n}")] for n in range(6)]))
    run = int(archive.run()["id"])
    if compacted:
        archive.compact(run)
    return run


def path_of(archive: Archive, run: int) -> str:
    (path,) = [row["path"] for row in archive.rows(schema.files) if row["run_id"] == run]
    return str(path)


def test_nothing_is_found_where_nothing_is_wrong(archive: Archive) -> None:
    healthy(archive)
    archive.take([frame("tasks", [task(9)], 6)])
    assert [name for name, _ in examine(patient(archive))] == list(CHECKS)
    assert texts(archive) == {}


def test_a_catalog_of_another_version_is_found(archive: Archive) -> None:
    archive.execute(sa.update(VERSIONS).values(version_num="0000"))
    assert "0000" in texts(archive)["catalog"][0]


def test_a_damaged_sqlite_file_is_found(sqlite_archive: Archive) -> None:
    healthy(sqlite_archive)
    with sqlite_archive.database.write() as connection:
        connection.exec_driver_sql("PRAGMA writable_schema=ON")
        connection.exec_driver_sql("UPDATE sqlite_master SET rootpage=3 WHERE name='ix_runs_account_id_start_us'")
    sqlite_archive.database.close()
    assert "SQLite says" in texts(sqlite_archive)["catalog"][0]


def test_a_master_key_that_does_not_fit_is_found(archive: Archive) -> None:
    archive.vault = Vault([bytes(32)])
    assert "another master key" in texts(archive)["keys"][0]


def test_an_account_without_a_key_gets_one(archive: Archive) -> None:
    archive.execute(sa.delete(schema.account_keys))
    assert texts(archive) == {"keys": ["account team has no key"]}
    mend(archive)
    archive.vault = Vault(archive.vault.masters)
    assert texts(archive) == {}
    archive.take([frame("logs", [{"time_us": NOW, "message": "m"}])])


def test_files_nobody_names_are_removed(archive: Archive) -> None:
    healthy(archive)
    assert isinstance(archive.store, LocalStore)
    archive.store.put("1/runs/77/tasks.parquet-1", b"x" * 2000)
    long_ago = time.time() - 2 * 3600
    os.utime(archive.store.local("1/runs/77/tasks.parquet-1"), (long_ago, long_ago))
    assert texts(archive) == {"orphans": ["1/runs/77/tasks.parquet-1 (1.95 KiB) is named by nothing"]}
    mend(archive)
    assert texts(archive) == {}


def test_a_missing_file_is_forgotten_and_its_sums_are_kept(archive: Archive) -> None:
    run = healthy(archive)
    path = path_of(archive, run)
    archive.store.delete(path)
    found = texts(archive)
    assert found["files"] == [f"{path} of run {run} is missing: its rows are lost"]
    mend(archive)
    assert texts(archive) == {}
    assert archive.run()["tasks"] == 6
    assert archive.read(run).damage == ""


class Listing(LocalStore):
    """A store of which something happens before or after it is listed: of a large bucket that takes minutes."""

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


def test_a_file_that_is_named_while_the_store_is_listed_is_not_missing(archive: Archive) -> None:
    run = healthy(archive, compacted=False)
    store = Listing(archive.store, after=lambda: archive.compact(run))
    assert list(check_files(replace(patient(archive), store=store))) == []
    assert archive.count(schema.files) == 1


def test_a_file_that_is_merged_while_the_store_is_listed_is_not_missing(archive: Archive) -> None:
    run = healthy(archive)
    archive.take([frame("tasks", [task(9)], 6)])
    old = path_of(archive, run)
    store = Listing(archive.store, before=lambda: archive.compact(run))
    assert list(check_files(replace(patient(archive), store=store))) == []
    assert path_of(archive, run) != old


def test_a_file_that_is_there_again_is_not_forgotten(archive: Archive) -> None:
    run = healthy(archive)
    path = path_of(archive, run)
    data = archive.store.get(path)
    archive.store.delete(path)
    (finding,) = check_files(patient(archive))
    archive.store.put(path, data)
    assert finding.mend is not None
    finding.mend()
    assert path_of(archive, run) == path
    assert (archive.run()["tasks_removed"], archive.read(run)["tasks"].rows) == (0, 6)


def test_a_missing_file_of_a_run_that_is_deleted_meanwhile_is_nobodys(archive: Archive) -> None:
    run = healthy(archive)
    archive.store.delete(path_of(archive, run))
    (finding,) = check_files(patient(archive))
    with archive.database.write() as connection:
        delete_cluster(connection, run)
    assert finding.mend is not None
    finding.mend()
    assert archive.tables_naming(run) == []


def test_a_missing_rendering_is_forgotten_and_a_missing_report_is_told_of(archive: Archive) -> None:
    run = healthy(archive)
    archive.execute(sa.insert(schema.renderings).values(run_id=run, subject="", path="1/gone"))
    archive.execute(sa.insert(schema.reports).values(account_id=archive.account, number=4, path="1/lost"))
    assert texts(archive)["files"] == [
        f"1/gone of run {run} is missing: it is made again when somebody looks",
        "1/lost of report 4 is missing",
    ]
    mend(archive)
    assert texts(archive)["files"] == ["1/lost of report 4 is missing"]


def test_a_buffer_nobody_compacted_is_compacted(archive: Archive) -> None:
    run = healthy(archive, compacted=False)
    archive.now_us += DAY
    assert f"run {run}" in texts(archive)["compactions"][0]
    mend(archive)
    assert texts(archive) == {}
    assert archive.read(run)["tasks"].rows == 6


def test_a_batch_that_cannot_be_read_is_told_of(archive: Archive) -> None:
    archive.take([frame("tasks", [task(0)], 0), broken_keys(1)])
    archive.compact(archive.run()["id"])
    found = texts(archive)
    assert set(found) == {"compactions", "contents"}
    assert "cannot be read" in found["compactions"][0]


def test_sums_that_disagree_with_the_rows_are_made_again(archive: Archive) -> None:
    run = healthy(archive)
    names = ("tasks", "errors", "compute_us", "nbytes")
    before = {name: archive.run()[name] for name in names}
    tables = (schema.prefixes, schema.days, schema.timeline)
    rows = [archive.rows(table) for table in tables]
    archive.execute(sa.update(schema.runs).values(tasks=99, compute_us=1))
    archive.execute(sa.delete(schema.timeline))
    archive.execute(sa.update(schema.prefixes).values(nbytes=3))
    assert texts(archive) == {"sums": [f"run {run} counts 99 tasks, 6 by prefix, and had 6 rows of them"]}
    mend(archive)
    assert texts(archive) == {}
    assert {name: archive.run()[name] for name in names} == before
    assert [archive.rows(table) for table in tables] == rows


def test_sums_of_a_long_run_are_made_again_without_losing_a_step(archive: Archive) -> None:
    """Seven hours of ten-second steps, and more computations than one batch may bring."""
    parts = [[task(10 * n, computation=f"c{n}") for n in range(first, first + 500)] for first in range(0, 2500, 500)]
    archive.take(numbered(parts))
    tables = (schema.prefixes, schema.days, schema.timeline)
    rows = [archive.rows(table) for table in tables]
    assert len(rows[2]) == 2500
    archive.execute(sa.update(schema.runs).values(tasks=1))
    mend(archive)
    assert texts(archive) == {}
    assert [archive.rows(table) for table in tables] == rows


def test_a_batch_that_was_put_aside_is_still_counted(archive: Archive) -> None:
    archive.take([frame("tasks", [task(0)], 0), broken_keys(1)])
    archive.compact(archive.run()["id"])
    archive.execute(sa.update(schema.runs).values(tasks=1))
    mend(archive)
    assert archive.run()["tasks"] == 4
    assert "sums" not in texts(archive)


def test_sums_of_rows_that_were_deleted_are_no_disagreement_and_are_never_made_again(archive: Archive) -> None:
    run = healthy(archive)
    with archive.database.write() as connection:
        for path in delete_rows(connection, run):
            archive.store.delete(path)
    archive.take([frame("tasks", [task(9)], 6)])
    assert texts(archive) == {}
    archive.execute(sa.update(schema.runs).values(tasks=99))
    mend(archive)
    assert archive.run()["tasks"] == 99


def test_a_file_that_cannot_be_read_is_told_of(archive: Archive) -> None:
    run = healthy(archive)
    archive.store.put(path_of(archive, run), b"nonsense")
    assert f"run {run}" in texts(archive)["contents"][0]
