"""The activity of clusters over time; on SQLite and on PostgreSQL."""

from __future__ import annotations

from tests.helpers.archive import MINUTE, NOW, Archive, add_cluster, frame, task

from daskscope.analysis.timeline import Steps
from daskscope.storage.catalog.clusters import life_of, sums_of

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


def test_a_run_lasts_until_it_was_last_seen(archive: Archive) -> None:
    add_cluster(archive, "old", start_us=NOW - 100 * MINUTE)
    assert life_of(archive.cluster("old")) == (NOW - 100 * MINUTE, NOW)
