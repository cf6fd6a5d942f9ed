"""Data beyond its age or size limit is deleted, and nothing else; on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.archive import DAY, NOW, Archive, frame, numbered, task

from daskscope.storage import schema
from daskscope.storage.base.blobs import LocalStore
from daskscope.storage.catalog.reports import NewReport, add_report, list_reports
from daskscope.storage.people.accounts import get_account, set_member, set_preferences
from daskscope.storage.people.tokens import create_token
from daskscope.storage.people.users import create_user
from daskscope.storage.runs import retention
from daskscope.storage.runs.retention import (
    Limits,
    Removed,
    Swept,
    apply_retention,
    delete_replaced,
    delete_rows,
    replace_files,
    stored_tasks,
    sweep,
)

FOREVER = Limits(keep_rows_days=0, keep_sums_days=0)


def add_run(archive: Archive, cluster: str, *, days_ago: int = 0, rows: int = 1, compacted: bool = True) -> int:
    now = archive.now_us
    archive.now_us = now - days_ago * DAY
    archive.ingest(numbered([[task(n) for n in range(rows)]], cluster=cluster))
    run = int(archive.run(cluster)["id"])
    if compacted:
        archive.compact(run)
    archive.now_us = now
    return run


def set_limits(archive: Archive, account: int = 0, **values: Any) -> None:
    with archive.write() as tx:
        preferences = get_account(tx, account or archive.account).preferences
        set_preferences(tx, account or archive.account, replace(preferences, **values))


def test_without_limits_nothing_is_deleted(archive: Archive) -> None:
    add_run(archive, "old", days_ago=9000)
    assert apply_retention(archive, FOREVER, archive.now_us) == Removed()


def test_rows_are_deleted_before_sums(archive: Archive) -> None:
    limits = Limits(keep_rows_days=10, keep_sums_days=100)
    runs = {days: add_run(archive, f"c{days}", days_ago=days, rows=3) for days in (1, 50, 200)}
    buffered = add_run(archive, "buffered", days_ago=20, compacted=False)
    removed = apply_retention(archive, limits, archive.now_us)
    assert removed == Removed(runs=1, rows_of_runs=2)
    assert archive.tables_naming(runs[200]) == []
    assert {run: archive.recording(run)["tasks"].rows for run in (runs[1], runs[50], buffered)} == {
        runs[1]: 3, runs[50]: 0, buffered: 0,
    }  # fmt: skip
    assert archive.run("c50")["tasks"] == 3
    assert sum(row["tasks"] for row in archive.rows(schema.prefixes) if row["run_id"] == runs[50]) == 3
    assert len(archive.blobs()) == 1
    assert apply_retention(archive, limits, archive.now_us) == Removed()


def test_many_runs_are_deleted_in_several_steps(archive: Archive) -> None:
    archive.ingest(frame("tasks", [task(0)], cluster=f"c{number}") for number in range(70))
    archive.now_us += 11 * DAY
    for limits, kind in ((Limits(10, 0), "rows_of_runs"), (Limits(0, 10), "runs")):
        # A pass deletes at most 25 runs of a small server.
        passes = [apply_retention(archive, limits, archive.now_us) for _ in range(4)]
        assert [getattr(removed, kind) for removed in passes] == [25, 25, 20, 0]
        assert [removed.is_capped for removed in passes] == [True, True, False, False]
    assert archive.count(schema.runs) == archive.count(schema.batches) == 0


def test_a_pass_deletes_a_tenth_of_a_large_server(archive: Archive) -> None:
    archive.ingest(frame("tasks", [task(0)], cluster=f"c{number}") for number in range(300))
    assert apply_retention(archive, Limits(10, 20), archive.now_us + 100 * DAY) == Removed(runs=30, is_capped=True)
    assert archive.count(schema.runs) == 270


def test_an_accounts_own_limits_override_the_servers(archive: Archive) -> None:
    other = archive.new_account("others")
    add_run(archive, "mine", days_ago=20)
    archive.now_us -= 20 * DAY
    archive.ingest(numbered([[task(0)]], cluster="theirs"), account=other)
    archive.now_us += 20 * DAY
    set_limits(archive, keep_rows_days=30)
    set_limits(archive, other, keep_sums_days=5)
    removed = apply_retention(archive, Limits(10, 0), archive.now_us)
    assert removed == Removed(runs=1)
    assert [row["cluster"] for row in archive.rows(schema.runs, "cluster")] == ["mine"]


def test_an_account_above_its_size_limit_loses_its_oldest_rows(archive: Archive) -> None:
    runs = [add_run(archive, f"c{days}", days_ago=days, rows=50) for days in (3, 2, 1)]
    sizes = {row["run_id"]: row["nbytes"] for row in archive.rows(schema.files)}
    set_limits(archive, keep_rows_nbytes=sizes[runs[1]] + sizes[runs[2]])
    assert apply_retention(archive, FOREVER, archive.now_us) == Removed(rows_of_runs=1)
    assert [archive.recording(run)["tasks"].rows for run in runs] == [0, 50, 50]
    assert apply_retention(archive, FOREVER, archive.now_us) == Removed()


def test_a_run_continues_after_its_rows_were_deleted(archive: Archive) -> None:
    run = add_run(archive, "c", rows=3)
    with archive.write() as tx:
        for path in delete_rows(tx, run):
            archive.store.delete(path)
    archive.ingest([frame("tasks", [task(7)], 1, cluster="c")])
    archive.compact(run)
    assert (archive.run("c")["tasks"], archive.run("c")["tasks_removed"], archive.recording(run)["tasks"].rows) == (
        4,
        3,
        1,
    )
    assert archive.ingest(numbered([[task(0)]], cluster="c")) == [False]


def test_expired_reports_and_cluster_tokens_are_deleted(archive: Archive) -> None:
    with archive.write() as tx:
        user = create_user(tx, "ann", "hash").id
        set_member(tx, archive.account, user, "owner")
        for number in range(60):
            archive.store.put(f"report-{number}", b"x")
            report = NewReport("f", "t", "html", f"report-{number}", 1, "private", expires_us=NOW + 5 if number else 0)
            add_report(tx, archive.account, user, report)
        for cluster, expires in (("c", NOW + 1), ("", NOW + 1), ("d", 0)):
            create_token(
                tx,
                account=archive.account,
                user=user,
                scopes=frozenset({"ingest"}),
                cluster=cluster,
                expires_us=expires,
            )
    archive.now_us += 2 * DAY
    passes = [apply_retention(archive, FOREVER, archive.now_us) for _ in range(3)]
    assert [removed.reports for removed in passes] == [25, 25, 9]
    with archive.read() as tx:
        assert [row.path for row in list_reports(tx, archive.account)] == ["report-0"]
    assert archive.blobs() == ["report-0"]
    # A token made by a user is listed as expired until the user removes it.
    assert [row["cluster"] for row in archive.rows(schema.tokens, "cluster", order=("id",))] == ["", "d"]


def test_a_sweep_deletes_a_tenth_of_the_files_at_most(sqlite_archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a catalog that was restored from a backup, all newer files have no name."""
    monkeypatch.setattr(retention, "MIN_SWEEP", 5)
    archive = sqlite_archive
    for number in range(80):
        archive.store.put(f"1/newer-{number}", b"x")
    later_us = archive.now_us = time.time_ns() // 1000 + 2 * 3600 * 1_000_000
    assert [sweep(archive, later_us) for _ in range(2)] == [Swept(8, 72), Swept(7, 65)]
    monkeypatch.setattr(retention, "MIN_SWEEP", 100)
    assert sweep(archive, later_us) == Swept(65, 0)


def test_a_limit_of_bytes_deletes_the_oldest_rows_first_and_not_all_at_once(
    sqlite_archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MIN_PASS", 2)
    archive = sqlite_archive
    for number in range(5):
        archive.now_us += DAY
        add_run(archive, f"c{number}")
    set_limits(archive, keep_rows_nbytes=1)

    def left() -> set[str]:
        with archive.read() as tx:
            runs = {row["cluster"]: row["id"] for row in archive.rows(schema.runs)}
            return {cluster for cluster, run in runs.items() if stored_tasks(tx, run)}

    removed = apply_retention(archive, FOREVER, archive.now_us)
    assert (removed.rows_of_runs, removed.is_capped) == (2, True)
    assert left() == {"c2", "c3", "c4"}
    for _ in range(2):
        removed = apply_retention(archive, FOREVER, archive.now_us)
    assert (removed.rows_of_runs, removed.is_capped, left()) == (1, False, set())


def test_a_pass_over_replaced_files_is_limited(sqlite_archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "DELETE_STEP", 2)
    monkeypatch.setattr(retention, "MAX_PASS", 4)
    archive = sqlite_archive
    run = add_run(archive, "c")
    with archive.write() as tx:
        replace_files(tx, run, [f"1/old-{n}" for n in range(7)], 0)
    assert [delete_replaced(archive, archive.now_us + 1) for _ in range(3)] == [4, 3, 0]


def test_the_sweep_removes_orphaned_files_unless_they_are_new(sqlite_archive: Archive) -> None:
    archive, store = sqlite_archive, sqlite_archive.store
    assert isinstance(store, LocalStore)
    add_run(archive, "c")
    archive.execute(
        sa.insert(schema.documents).values(run_id=archive.run("c")["id"], subject="", path="named/document")
    )
    for path in ("named/document", "1/orphan", "1/young", "1/.half.part"):
        store.put(path, b"x")
    long_ago = time.time() - 2 * 3600
    for path in archive.blobs():
        if path != "1/young":
            os.utime(store.local(path), (long_ago, long_ago))
    before = archive.blobs()
    archive.now_us = time.time_ns() // 1000
    assert sweep(archive, archive.now_us) == Swept(files=2, left=0)
    assert set(before) - set(archive.blobs()) == {"1/orphan", "1/.half.part"}
    assert archive.recording(archive.run("c")["id"])["tasks"].rows == 1
