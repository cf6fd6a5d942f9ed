"""Runs by name: groups, their last runs, their cost, and what went wrong; on SQLite and on PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.archive import LOST_AFTER, MINUTE, NOW, Archive, add_cluster, frame, task

from daskscope.storage import schema
from daskscope.storage.catalog import clusters
from daskscope.storage.catalog.clusters import ClusterFilter, count_clusters, list_clusters
from daskscope.storage.catalog.run_groups import (
    MAX_RECENT,
    RunGroup,
    fatal_errors,
    list_groups,
    lost_workers,
    paid_by_name,
    recent_runs,
)

#: Names that a careless query would merge, split or fail on.
HOSTILE_NAMES = (
    "%",
    "_",
    "'; DROP TABLE runs; --",
    "etl",
    "ETL",
    "étl",
    "0",
    " ",
    "\x00nul",
    "x" * 20_000,
    "e\udcfftl",
)


def groups(archive: Archive, **wanted: Any) -> list[RunGroup]:
    with archive.read() as tx:
        return list_groups(tx, archive.account, ClusterFilter(**wanted))


def brief(found: list[RunGroup]) -> list[tuple[str, str, int]]:
    return [(group.newest.name, group.newest.cluster, group.runs) for group in found]


def ended(archive: Archive, cluster: str, name: str, minutes_ago: int, *, status: str = "ok", **values: Any) -> int:
    """Add a cluster that ran for a minute."""
    start = NOW - minutes_ago * MINUTE
    run = add_cluster(archive, cluster, name=name, start_us=start, end_us=start + MINUTE, end_reason="closed", **values)
    archive.ingest([frame("tasks", [task(0, status=status)], 1, cluster=cluster)])
    return run


def test_clusters_of_one_name_are_one_group_and_unnamed_ones_are_single(archive: Archive) -> None:
    ended(archive, "a1", "etl", 60)
    ended(archive, "x1", "", 50)
    ended(archive, "a2", "etl", 40, status="error")
    ended(archive, "b1", "scores", 30)
    ended(archive, "x2", "", 20)
    other = archive.new_account("others")
    archive.ingest(
        [frame("clusters", [{"cluster": "a1", "name": "etl", "start_us": NOW, "seen_us": NOW}])], account=other
    )
    assert brief(groups(archive)) == [("", "x2", 1), ("scores", "b1", 1), ("etl", "a2", 2), ("", "x1", 1)]
    assert [group.newest.state for group in groups(archive)] == ["finished", "finished", "failed", "finished"]


def test_a_filter_selects_runs_and_a_group_speaks_of_the_selected_ones(archive: Archive) -> None:
    ended(archive, "a1", "etl", 60, status="error", user="mia")
    ended(archive, "a2", "etl", 50, user="jonas", host="node7")
    ended(archive, "a3", "etl", 40, status="error", user="mia")
    add_cluster(archive, "a4", name="etl", start_us=NOW)
    ended(archive, "b1", "scores", 30, user="mia")
    assert brief(groups(archive)) == [("etl", "a4", 4), ("scores", "b1", 1)]
    assert brief(groups(archive, states=("failed",))) == [("etl", "a3", 2)]
    assert brief(groups(archive, states=("running", "finished"))) == [("etl", "a4", 2), ("scores", "b1", 1)]
    assert brief(groups(archive, user="mia")) == [("scores", "b1", 1), ("etl", "a3", 2)]
    assert brief(groups(archive, search="NODE7")) == [("etl", "a2", 1)]
    assert brief(groups(archive, search="nothing like it")) == []
    with archive.read() as tx:
        assert count_clusters(tx, archive.account, ClusterFilter(user="mia")) == {"failed": 2, "finished": 1}
        assert count_clusters(tx, archive.account, ClusterFilter(search="scores")) == {"finished": 1}
        # The strip shows all runs, so that the selected ones can be compared with the others.
        assert [run.cluster for run in recent_runs(tx, archive.account, ["etl"])["etl"]] == ["a1", "a2", "a3", "a4"]
        named = list_clusters(tx, archive.account, ClusterFilter(name="etl", states=("failed",)))
    assert [row.cluster for row in named] == ["a3", "a1"]


def test_names_are_compared_exactly_whatever_they_contain(archive: Archive) -> None:
    for number, name in enumerate(HOSTILE_NAMES):
        for turn in range(2):
            ended(archive, f"c{number}-{turn}", name, 100 - number, user="u")
    found = groups(archive)
    assert sorted(group.newest.cluster for group in found) == sorted(f"c{n}-1" for n in range(len(HOSTILE_NAMES)))
    assert {group.runs for group in found} == {2}
    stored = [group.newest.name for group in found]
    with archive.read() as tx:
        recent = recent_runs(tx, archive.account, stored)
        assert {len(runs) for runs in recent.values()} == {2}
        paid = paid_by_name(tx, archive.account, stored, ClusterFilter())
        again = [list_clusters(tx, archive.account, ClusterFilter(name=name)) for name in stored]
    assert sorted(row.name for row in paid) == sorted(stored)
    assert {len(rows) for rows in again} == {2}


def test_pages_of_2000_clusters_have_no_gaps_or_repeats(archive: Archive) -> None:
    rows = [
        # Seven names have 200 runs, the others are unnamed. Many start at the same time.
        {
            "account_id": archive.account, "cluster": f"c{number:04}", "name": f"job {number % 10}" if number % 10 < 7 else "",
            "start_us": NOW - number // 5, "end_us": NOW + MINUTE, "seen_us": NOW + MINUTE, "received_us": NOW,
            "thread_us": 1_000_000,
        }
        for number in range(2_000)
    ]  # fmt: skip
    archive.execute(sa.insert(schema.runs).values(rows[:1_000]))
    archive.execute(sa.insert(schema.runs).values(rows[1_000:]))
    seen: list[RunGroup] = []
    wanted = ClusterFilter(limit=90)
    for _ in range(20):
        with archive.read() as tx:
            page = list_groups(tx, archive.account, wanted)
        seen += page
        if len(page) < 90:
            break
        wanted = replace(wanted, after=(page[-1].newest.start_us, page[-1].newest.id))
    assert len(seen) == 607
    assert len({group.newest.cluster for group in seen}) == 607
    assert sum(group.runs for group in seen) == 2_000
    starts = [(group.newest.start_us, group.newest.id) for group in seen]
    assert starts == sorted(starts, reverse=True)
    names = [f"job {number}" for number in range(7)]
    with archive.read() as tx:
        recent = recent_runs(tx, archive.account, names)
        paid = paid_by_name(tx, archive.account, names, ClusterFilter())
    assert {len(runs) for runs in recent.values()} == {MAX_RECENT}
    assert recent["job 3"][-1].cluster == next(g.newest.cluster for g in seen if g.newest.name == "job 3")
    assert {row.name: row.thread_us for row in paid} == dict.fromkeys(names, 200_000_000)


def test_a_name_has_its_last_runs_oldest_first_with_their_states(archive: Archive) -> None:
    for number in range(MAX_RECENT + 3):
        ended(archive, f"c{number:02}", "etl", 200 - number, status="error" if number == 10 else "ok")
    add_cluster(archive, "live", name="etl", start_us=NOW, seen_us=NOW)
    with archive.read() as tx:
        runs = recent_runs(tx, archive.account, ["etl", "unknown"])
    assert runs["unknown"] == []
    assert [run.cluster for run in runs["etl"]] == [*(f"c{number:02}" for number in range(4, MAX_RECENT + 3)), "live"]
    assert {run.cluster: run.state for run in runs["etl"] if run.state != "finished"} == {
        "c10": "failed",
        "live": "running",
    }
    archive.now_us += LOST_AFTER + 1
    with archive.read() as tx:
        assert recent_runs(tx, archive.account, ["etl"])["etl"][-1].state == "lost"


def test_costs_are_summed_by_name_and_price(archive: Archive) -> None:
    numbers = {name: ended(archive, name, name.split("-")[0], 9) for name in ("etl-1", "etl-2", "etl-3", "scores-1")}
    for name, number in numbers.items():
        values = {"thread_us": 10, "memory_byte_s": 1e20, "tags": '["gpu"]' if name == "etl-3" else ""}
        archive.execute(sa.update(schema.runs).where(schema.runs.c.id == number).values(values))
    with archive.read() as tx:
        paid = paid_by_name(tx, archive.account, ["etl", "scores"], ClusterFilter())
    found = sorted((row.name, row.tags, row.thread_us, row.memory_byte_s) for row in paid)
    assert found == [("etl", "", 20, 2e20), ("etl", '["gpu"]', 10, 1e20), ("scores", "", 10, 1e20)]


def worker(number: int, verdict: str, **values: Any) -> dict[str, Any]:
    return {"server_id": f"s{number}", "worker": f"tcp://{number}", "name": f"w-{number}", "verdict": verdict,
            "start_us": NOW, "end_us": NOW + number, "seen_us": NOW + 9, "nthreads": 1, **values}  # fmt: skip


def test_workers_that_left_unexpectedly_are_found(archive: Archive) -> None:
    runs = [ended(archive, name, name, 9) for name in ("a", "b")]
    ended(archive, "c", "c", 9)
    archive.ingest([
        frame("workers", [worker(1, "closed"), worker(2, "memory kill"), worker(3, "vanished")], 2, cluster="a"),
        frame("workers", [worker(1, ""), worker(2, "retired"), worker(3, "restarted")], 2, cluster="b"),
    ])  # fmt: skip
    with archive.read() as tx:
        lost = lost_workers(tx, runs)
        assert lost_workers(tx, []) == {}
    assert {run: [one.name for one in found] for run, found in lost.items()} == {runs[0]: ["w-2", "w-3"]}
    assert brief(groups(archive, lost_workers=True)) == [("a", "a", 1)]
    with archive.read() as tx:
        assert count_clusters(tx, archive.account, ClusterFilter(lost_workers=True)) == {"finished": 1}


def failure(number: int, **values: Any) -> dict[str, Any]:
    return {"time_us": NOW + number, "key": f"k{number}", "computation": "comp", "type": "ValueError", "message": f"bad {number}",
            "traceback": "Traceback", "fingerprint": f"f{number}", "count": 1, **values}  # fmt: skip


def test_the_most_frequent_fatal_error_explains_a_failure(archive: Archive) -> None:
    run, other = ended(archive, "a", "a", 9, status="error"), ended(archive, "b", "b", 9, status="error")
    rows = [
        failure(0, count=90, will_retry=True),
        failure(1, count=2),
        failure(2, count=3, computation="second", cause_type="OSError", cause_message="disk full"),
        failure(3, count=2),
    ]
    archive.ingest([
        frame("exceptions", rows, 2, cluster="a"),
        frame("exceptions", [failure(0, will_retry=True)], 2, cluster="b"),
    ])  # fmt: skip
    with archive.read() as tx:
        found = fatal_errors(tx, archive.account, [run, other])
        assert fatal_errors(tx, archive.account, []) == {}
    assert {subject: (error.message, error.cause_type, error.cause_message) for subject, error in found.items()} == {
        (run, "comp"): ("bad 1", "", ""),
        (run, "second"): ("bad 2", "OSError", "disk full"),
        (run, ""): ("bad 2", "OSError", "disk full"),
    }


@pytest.mark.parametrize("sort", ["start_us", "seen_us"])
def test_the_list_of_one_name_is_sorted_like_any_other(archive: Archive, sort: str) -> None:
    for number in range(3):
        ended(archive, f"c{number}", "etl", 30 - number, seen_us=NOW - number)
    with archive.read() as tx:
        rows = clusters.list_clusters(tx, archive.account, ClusterFilter(name="etl", sort=sort))
    assert [row.cluster for row in rows] == (["c2", "c1", "c0"] if sort == "start_us" else ["c0", "c1", "c2"])
