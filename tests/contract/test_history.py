"""What clusters did over time; on SQLite and on PostgreSQL."""

from __future__ import annotations

from tests.archive import MINUTE, NOW, Archive, frame, task
from tests.contract.test_catalog_lists import add_cluster

from daskscope.analysis.history import Steps
from daskscope.storage.history import RECENT_US, life_of, recent_busy, sums_of

TEN = 10_000_000


def test_sums_are_of_what_ended_in_each_step(archive: Archive) -> None:
    run = add_cluster(archive, "c")
    archive.take([frame("tasks", [task(0), task(25, prefix="sum"), task(26, start_us=0, status="killed")], 1)])
    with archive.database.read() as connection:
        sums = sums_of(connection, run, Steps(NOW, 2 * TEN, 3, NOW, NOW + 6 * TEN))
        assert sums["tasks"].tolist() == [1, 2, 0]
        assert sums_of(connection, run, Steps(NOW + MINUTE, TEN, 2, NOW + MINUTE, NOW + MINUTE + 2 * TEN))[
            "tasks"
        ].tolist() == [0, 0]


def test_the_line_of_a_list_is_the_share_of_threads_that_was_busy(archive: Archive) -> None:
    runs = {name: add_cluster(archive, name, start_us=NOW, seen_us=NOW + MINUTE) for name in ("busy", "still")}
    worker = {"server_id": "w", "worker": "tcp://1", "seen_us": NOW, "start_us": NOW, "nthreads": 1}
    archive.take([
        frame("workers", [worker], 1, cluster="busy"),
        # One thread, busy for half of the minute, which only the end of its one task tells.
        frame("tasks", [task(0, start_us=NOW + 3 * TEN, stop_us=NOW + 6 * TEN - 1)], 3, cluster="busy"),
    ])  # fmt: skip
    with archive.database.read() as connection:
        shares = recent_busy(connection, [archive.run("busy"), archive.run("still")])
        assert recent_busy(connection, []) == {}
    assert shares[runs["busy"]] == [0, 0, 0, 1, 1, 1]
    assert shares[runs["still"]] == [0] * 6


def test_only_the_last_hours_of_a_long_life_are_shown(archive: Archive) -> None:
    run = add_cluster(archive, "old", start_us=NOW - 100 * RECENT_US)
    archive.take(
        [frame("tasks", [task(0, start_us=NOW - 50 * RECENT_US, stop_us=NOW - 50 * RECENT_US + 9)], 1, cluster="old")]
    )
    with archive.database.read() as connection:
        (shares,) = recent_busy(connection, [archive.run("old")]).values()
    assert len(shares) <= 30
    assert set(shares) == {0}
    assert life_of(archive.run("old")) == (NOW - 100 * RECENT_US, NOW)
    assert run
