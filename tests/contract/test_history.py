"""The activity of clusters over time; on SQLite and on PostgreSQL."""

from __future__ import annotations

from tests.helpers.archive import MINUTE, NOW, Archive, add_cluster, frame, task

from daskscope.analysis.timeline import Steps
from daskscope.storage.catalog.clusters import RECENT_US, life_of, recent_busy, sums_of

TEN = 10_000_000


def test_each_step_counts_the_tasks_that_ended_in_it(archive: Archive) -> None:
    run = add_cluster(archive, "c")
    archive.ingest([frame("tasks", [task(0), task(25, prefix="sum"), task(26, start_us=0, status="killed")], 1)])
    with archive.read() as tx:
        sums = sums_of(tx, run, Steps(NOW, 2 * TEN, 3, NOW, NOW + 6 * TEN))
        assert sums["tasks"].tolist() == [1, 2, 0]
        assert sums_of(tx, run, Steps(NOW + MINUTE, TEN, 2, NOW + MINUTE, NOW + MINUTE + 2 * TEN))[
            "tasks"
        ].tolist() == [0, 0]


def test_the_sparkline_shows_the_share_of_busy_threads(archive: Archive) -> None:
    runs = {name: add_cluster(archive, name, start_us=NOW, seen_us=NOW + MINUTE) for name in ("busy", "still")}
    worker = {"server_id": "w", "worker": "tcp://1", "seen_us": NOW, "start_us": NOW, "nthreads": 1}
    archive.ingest([
        frame("workers", [worker], 1, cluster="busy"),
        # One thread, busy for half of the minute: known only from the end of its one task.
        frame("tasks", [task(0, start_us=NOW + 3 * TEN, stop_us=NOW + 6 * TEN - 1)], 3, cluster="busy"),
    ])  # fmt: skip
    with archive.read() as tx:
        shares = recent_busy(tx, [archive.cluster("busy"), archive.cluster("still")])
        assert recent_busy(tx, []) == {}
    assert shares[runs["busy"]] == [0, 0, 0, 1, 1, 1]
    assert shares[runs["still"]] == [0] * 6


def test_the_sparkline_covers_only_the_last_hours_of_a_long_run(archive: Archive) -> None:
    run = add_cluster(archive, "old", start_us=NOW - 100 * RECENT_US)
    archive.ingest(
        [frame("tasks", [task(0, start_us=NOW - 50 * RECENT_US, stop_us=NOW - 50 * RECENT_US + 9)], 1, cluster="old")]
    )
    with archive.read() as tx:
        (shares,) = recent_busy(tx, [archive.cluster("old")]).values()
    assert len(shares) <= 30
    assert set(shares) == {0}
    assert life_of(archive.cluster("old")) == (NOW - 100 * RECENT_US, NOW)
    assert run
