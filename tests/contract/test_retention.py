"""What is older or larger than it may be goes, and nothing else; on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from tests.archive import DAY, NOW, Archive, frame, numbered, task

from daskscope.storage import schema
from daskscope.storage.accounts import get_account, set_member, set_preferences
from daskscope.storage.blobs import LocalStore
from daskscope.storage.reports import NewReport, add_report, list_reports
from daskscope.storage.retention import Limits, Removed, apply_retention, delete_rows, sweep
from daskscope.storage.tokens import create_token
from daskscope.storage.users import create_user

FOREVER = Limits(keep_rows_days=0, keep_sums_days=0)


def add_run(archive: Archive, cluster: str, *, days_ago: int = 0, rows: int = 1, compacted: bool = True) -> int:
    now = archive.now_us
    archive.now_us = now - days_ago * DAY
    archive.take(numbered([[task(n) for n in range(rows)]], cluster=cluster))
    run = int(archive.run(cluster)["id"])
    if compacted:
        archive.compact(run)
    archive.now_us = now
    return run


def prefer(archive: Archive, account: int = 0, **values: Any) -> None:
    with archive.database.write() as connection:
        preferences = get_account(connection, account or archive.account).preferences
        set_preferences(connection, account or archive.account, replace(preferences, **values))


def test_nothing_goes_where_nothing_is_limited(archive: Archive) -> None:
    add_run(archive, "old", days_ago=9000)
    assert apply_retention(archive.database, archive.store, FOREVER, archive.now_us) == Removed()


def test_rows_go_before_the_sums_do(archive: Archive) -> None:
    limits = Limits(keep_rows_days=10, keep_sums_days=100)
    runs = {days: add_run(archive, f"c{days}", days_ago=days, rows=3) for days in (1, 50, 200)}
    buffered = add_run(archive, "buffered", days_ago=20, compacted=False)
    removed = apply_retention(archive.database, archive.store, limits, archive.now_us)
    assert removed == Removed(runs=1, rows_of_runs=2)
    assert archive.tables_naming(runs[200]) == []
    assert {run: archive.read(run)["tasks"].rows for run in (runs[1], runs[50], buffered)} == {
        runs[1]: 3, runs[50]: 0, buffered: 0,
    }  # fmt: skip
    assert archive.run("c50")["tasks"] == 3
    assert sum(row["tasks"] for row in archive.rows(schema.prefixes) if row["run_id"] == runs[50]) == 3
    assert len(archive.blobs()) == 1
    assert apply_retention(archive.database, archive.store, limits, archive.now_us) == Removed()


def test_many_runs_go_in_several_steps(archive: Archive) -> None:
    for number in range(70):
        archive.take(numbered([[task(0)]], cluster=f"c{number}"))
    archive.now_us += 11 * DAY
    removed = apply_retention(archive.database, archive.store, Limits(10, 0), archive.now_us)
    assert removed == Removed(rows_of_runs=70)
    removed = apply_retention(archive.database, archive.store, Limits(0, 10), archive.now_us)
    assert removed == Removed(runs=70)
    assert archive.count(schema.runs) == archive.count(schema.batches) == 0


def test_an_accounts_own_wish_goes_before_the_servers(archive: Archive) -> None:
    other = archive.new_account("others")
    add_run(archive, "mine", days_ago=20)
    archive.now_us -= 20 * DAY
    archive.take(numbered([[task(0)]], cluster="theirs"), account=other)
    archive.now_us += 20 * DAY
    prefer(archive, keep_rows_days=30)
    prefer(archive, other, keep_sums_days=5)
    removed = apply_retention(archive.database, archive.store, Limits(10, 0), archive.now_us)
    assert removed == Removed(runs=1)
    assert [row["cluster"] for row in archive.rows(schema.runs, "cluster")] == ["mine"]


def test_beyond_its_bytes_an_account_loses_its_oldest_rows(archive: Archive) -> None:
    runs = [add_run(archive, f"c{days}", days_ago=days, rows=50) for days in (3, 2, 1)]
    sizes = {row["run_id"]: row["nbytes"] for row in archive.rows(schema.files)}
    prefer(archive, keep_rows_nbytes=sizes[runs[1]] + sizes[runs[2]])
    assert apply_retention(archive.database, archive.store, FOREVER, archive.now_us) == Removed(rows_of_runs=1)
    assert [archive.read(run)["tasks"].rows for run in runs] == [0, 50, 50]
    assert apply_retention(archive.database, archive.store, FOREVER, archive.now_us) == Removed()


def test_a_run_goes_on_after_its_rows_were_deleted(archive: Archive) -> None:
    run = add_run(archive, "c", rows=3)
    with archive.database.write() as connection:
        for path in delete_rows(connection, run):
            archive.store.delete(path)
    archive.take([frame("tasks", [task(7)], 1, cluster="c")])
    archive.compact(run)
    assert (archive.run("c")["tasks"], archive.run("c")["tasks_removed"], archive.read(run)["tasks"].rows) == (4, 3, 1)
    assert archive.take(numbered([[task(0)]], cluster="c")) == [False]


def test_expired_reports_and_tokens_of_clusters_that_are_over_go(archive: Archive) -> None:
    with archive.database.write() as connection:
        user = create_user(connection, "ann", "hash", NOW).id
        set_member(connection, archive.account, user, "owner", NOW)
        for number in range(60):
            archive.store.put(f"report-{number}", b"x")
            report = NewReport("f", "t", "html", f"report-{number}", 1, "private", expires_us=NOW + 5 if number else 0)
            add_report(connection, archive.account, user, report, NOW)
        for cluster, expires in (("c", NOW + 1), ("", NOW + 1), ("d", 0)):
            create_token(
                connection, account=archive.account, user=user, scopes=frozenset({"ingest"}), now_us=NOW,
                cluster=cluster, expires_us=expires,
            )  # fmt: skip
    archive.now_us += 2 * DAY
    assert apply_retention(archive.database, archive.store, FOREVER, archive.now_us) == Removed(reports=59)
    with archive.database.read() as connection:
        assert [row["path"] for row in list_reports(connection, archive.account, archive.now_us)] == ["report-0"]
    assert archive.blobs() == ["report-0"]
    # One made by a person is listed as expired until the person removes it.
    assert [row["cluster"] for row in archive.rows(schema.tokens, "cluster", order=("id",))] == ["", "d"]


def test_the_sweep_removes_what_nobody_names_and_is_not_new(sqlite_archive: Archive) -> None:
    archive, store = sqlite_archive, sqlite_archive.store
    assert isinstance(store, LocalStore)
    add_run(archive, "c")
    archive.execute(sa.insert(schema.renderings).values(run_id=archive.run("c")["id"], subject="", path="named/view"))
    for path in ("named/view", "1/orphan", "1/young", "1/.half.part"):
        store.put(path, b"x")
    long_ago = time.time() - 2 * 3600
    for path in archive.blobs():
        if path != "1/young":
            os.utime(store.local(path), (long_ago, long_ago))
    before = archive.blobs()
    assert sweep(archive.database, store) == 2
    assert set(before) - set(archive.blobs()) == {"1/orphan", "1/.half.part"}
    assert archive.read(archive.run("c")["id"])["tasks"].rows == 1
