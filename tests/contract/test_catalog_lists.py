"""Queries on the catalog: states, lists, error groups and deletion; on SQLite and on PostgreSQL."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.archive import LOST_AFTER, MINUTE, NOW, Archive, add_cluster, at, frame, task

from daskscope.analysis.running.rollup import Sums
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.catalog import clusters, error_groups
from daskscope.storage.catalog.clusters import (
    ClusterFilter,
    activities_of,
    clients_of,
    count_clusters,
    list_clusters,
    prefixes_of,
    remove_cluster,
    workers_of,
)
from daskscope.storage.catalog.computations import earlier_runs, list_computations, span_of
from daskscope.storage.catalog.error_groups import ErrorGroup, list_error_groups, list_exceptions, set_group_state
from daskscope.storage.catalog.overview import usage
from daskscope.units import DAY as DAY_US


def names(archive: Archive, **wanted: Any) -> list[str]:
    with archive.read() as tx:
        rows = list_clusters(tx, archive.account, ClusterFilter(**wanted))
    return [row.cluster for row in rows]


# ---------------------------------------------------------------- states


def test_a_run_is_running_idle_finished_or_lost(archive: Archive) -> None:
    add_cluster(archive, "running")
    add_cluster(archive, "idle", idle_since_us=NOW - 5)
    add_cluster(archive, "finished", end_us=NOW, end_reason="closed", idle_since_us=NOW - 5)
    states = {name: archive.run(name)["state"] for name in ("running", "idle", "finished")}
    assert states == {"running": "running", "idle": "idle", "finished": "finished"}
    with archive.read() as tx:
        assert count_clusters(tx, archive.account) == {"running": 1, "idle": 1, "finished": 1}
    archive.now_us += LOST_AFTER
    assert archive.run("running")["state"] == "running"
    archive.now_us += 1
    assert {name: archive.run(name)["state"] for name in states} == {
        "running": "lost", "idle": "lost", "finished": "finished",
    }  # fmt: skip
    archive.ingest([frame("tasks", [task(0)], 1, cluster="running")])
    assert archive.run("running")["state"] == "running"


def computation(name: str, **values: Any) -> dict[str, Any]:
    return {"computation": name, "seen_us": NOW, "start_us": NOW, "state": "running", **values}


#: Recorded states of the computations of clusters that have ended, by the state of the cluster.
ENDED: dict[str, list[list[str]]] = {
    "finished": [[], ["done", "done"]],
    "failed": [["erred"], ["done", "erred", "lost", "cancelled"]],
    "unfinished": [["done", "cancelled", "lost"], ["done", "running"]],
    "interrupted": [["done", "cancelled"]],
}


def test_the_computations_of_a_cluster_that_ended_decide_its_state(archive: Archive) -> None:
    expected: dict[str, list[str]] = {}
    for state, cases in ENDED.items():
        for number, recorded in enumerate(cases):
            name = f"{state}-{number}"
            add_cluster(archive, name, end_us=NOW, end_reason="closed")
            rows = [computation(str(place), state=value) for place, value in enumerate(recorded)]
            archive.ingest([frame("computations", rows, 1, cluster=name)] if rows else [])
            expected.setdefault(state, []).append(name)
    add_cluster(archive, "failed-task", end_us=NOW)
    archive.ingest([frame("tasks", [task(0, status="error")], 1, cluster="failed-task")])
    expected["failed"].append("failed-task")
    add_cluster(archive, "live")
    archive.ingest([frame("computations", [computation("0", state="erred")], 1, cluster="live")])
    expected["running"] = ["live"]

    assert {state: sorted(names(archive, states=(state,))) for state in expected} == expected
    with archive.read() as tx:
        assert count_clusters(tx, archive.account) == {state: len(found) for state, found in expected.items()}
    assert {archive.cluster(name).state for name in expected["failed"]} == {"failed"}
    # Filters apply before the limit: the newest clusters are of other states.
    assert names(archive, states=("finished",), limit=1) == ["finished-1"]
    assert sorted(names(archive, states=("running", "interrupted"))) == ["interrupted-0", "live"]


def computation_states(archive: Archive) -> dict[str, str]:
    with archive.read() as tx:
        rows = list_computations(tx, archive.account)
    return {row.computation: row.state for row in rows}


def test_a_computation_ends_no_later_than_its_cluster(archive: Archive) -> None:
    add_cluster(archive, "a")
    add_cluster(archive, "b", end_us=NOW + 1)
    rows = [computation("busy"), computation("ready", state="done", stop_us=NOW + 5)]
    archive.ingest([frame("computations", rows, 1, cluster="a")])
    archive.ingest([frame("computations", [computation("cut")], 1, cluster="b")])
    assert computation_states(archive) == {"busy": "running", "ready": "finished", "cut": "unfinished"}
    archive.now_us += LOST_AFTER + 1
    assert computation_states(archive) == {"busy": "lost", "ready": "finished", "cut": "unfinished"}


# ---------------------------------------------------------------- lists


def test_clusters_are_filtered_before_they_are_limited(archive: Archive) -> None:
    add_cluster(archive, "old", start_us=NOW - 5 * MINUTE, user="bob", host="node7", end_us=NOW)
    add_cluster(archive, "new", start_us=NOW - MINUTE, name="100%_sure")
    add_cluster(archive, "mid", start_us=NOW - 2 * MINUTE, idle_since_us=1)
    assert names(archive) == ["new", "mid", "old"]
    assert names(archive, limit=1, user="bob") == ["old"]
    assert names(archive, states=("finished", "idle")) == ["mid", "old"]
    assert names(archive, search="NODE") == ["old"]
    assert names(archive, search="100%_") == ["new"]
    assert names(archive, search="%") == ["new"]
    assert names(archive, search="the m") == ["mid"]
    archive.now_us += MINUTE
    archive.ingest([frame("tasks", [task(0)], 1, cluster="mid")])
    assert names(archive, since_us=NOW + 1) == ["mid"]


def test_a_tag_matches_exactly_whatever_its_characters(archive: Archive) -> None:
    for name, tags in {"a": '["nightly", "\\u00fcber"]', "b": '["night"]', "c": '["50%"]'}.items():
        number = add_cluster(archive, name)
        archive.execute(sa.update(schema.runs).where(schema.runs.c.id == number).values(tags=tags))
    found = {tag: names(archive, tag=tag) for tag in ("night", "nightly", "über", "50%", "%")}
    assert found == {"night": ["b"], "nightly": ["a"], "über": ["a"], "50%": ["c"], "%": []}


@pytest.mark.parametrize("up", [False, True], ids=["down", "up"])
@pytest.mark.parametrize("sort", ["start_us", "seen_us"])
def test_pages_of_clusters_have_no_gaps_or_repeats(archive: Archive, sort: str, up: bool) -> None:
    # Some have the same timestamp.
    for number in range(11):
        add_cluster(archive, f"c{number:02}", start_us=NOW - number // 3, seen_us=NOW + number * 7 % 5)
    seen: list[str] = []
    after = None
    for _ in range(10):
        with archive.read() as tx:
            wanted = ClusterFilter(limit=4, sort=sort, up=up, after=after)
            page = list_clusters(tx, archive.account, wanted)
        if not page:
            break
        seen += [row.cluster for row in page]
        after = (getattr(page[-1], sort), page[-1].id)
    assert seen == names(archive, limit=100, sort=sort, up=up)
    values = [archive.run(name)[sort] for name in seen]
    assert values == sorted(values, reverse=not up)
    assert sorted(seen) == [f"c{number:02}" for number in range(11)]


def test_computations_are_listed_with_their_code_and_sums(archive: Archive) -> None:
    run = add_cluster(archive, "c")
    other = add_cluster(archive, "other")
    rows = [computation("comp", code="x.compute()", start_us=NOW + 5), computation("second")]
    archive.ingest(
        [frame("computations", rows, 1), frame("tasks", [task(0), task(1, status="error", prefix="sum")], 2)]
    )
    archive.ingest([frame("tasks", [task(0)], 1, cluster="other")])
    with archive.read() as tx:
        found = list_computations(tx, archive.account, run=run)
        assert list_computations(tx, archive.account, run=other) == []
        assert list_computations(tx, archive.account + 1) == []
    assert [(row.computation, row.code, row.cluster, row.user) for row in found] == [
        ("comp", "x.compute()", "c", "ann"),
        ("second", "", "c", "ann"),
    ]
    assert (found[0].sums.tasks, found[0].sums.errors, found[0].sums.compute_us) == (2, 1, 2_000_000)
    assert found[1].sums == Sums()


def test_pages_of_computations_have_no_gaps_or_repeats(archive: Archive) -> None:
    add_cluster(archive, "c")
    archive.ingest([frame("computations", [computation(f"k{n}", start_us=NOW + n // 2) for n in range(7)], 1)])
    # Computations of different clusters may have the same name and time.
    for cluster in ("d", "e"):
        add_cluster(archive, cluster)
        archive.ingest([frame("computations", [computation("k3", start_us=NOW + 1)], 1, cluster=cluster)])
    seen: list[str] = []
    after = None
    for _ in range(5):
        with archive.read() as tx:
            page = list_computations(tx, archive.account, limit=3, after=after)
        seen += [row.computation for row in page]
        after = (page[-1].start_us, page[-1].computation, page[-1].run_id) if page else after
    assert seen == ["k6", "k5", "k4", "k3", "k3", "k3", "k2", "k1", "k0"]


def test_a_lost_computation_lasts_until_its_cluster_was_last_seen(archive: Archive) -> None:
    run = add_cluster(archive, "c", seen_us=NOW + 60_000_000)
    archive.ingest([frame("computations", [computation("k", start_us=NOW, seen_us=NOW + 2_000_000)], 1)])
    with archive.read() as tx:
        (row,) = list_computations(tx, archive.account)
        assert span_of(tx, run, "k") == (NOW, NOW + 60_000_000)
        assert span_of(tx, run, "none") is None
    assert row.cluster_seen_us == NOW + 60_000_000


def test_earlier_runs_have_the_same_code_and_shape(archive: Archive) -> None:
    def computed(number: int, code: str, groups: int, prefix: str = "p", file: str = "a.py") -> None:
        row = {"computation": f"k{number}", "seen_us": NOW, "start_us": NOW + number, "state": "done", "groups": groups}
        task = {"computation": f"k{number}", "prefix": prefix, "start_us": NOW, "stop_us": NOW + 1, "status": "ok"}
        cluster = f"c{number}"
        archive.ingest([frame("computations", [{**row, "code": code, "code_file": file}], 1, cluster=cluster)])
        archive.ingest([frame("tasks", [task], 2, cluster=cluster)])

    for number in range(10):
        add_cluster(archive, f"c{number}", name="other" if number == 8 else "pipeline")
    for number, (code, groups) in enumerate([("a()", 2), ("a()", 3), ("b()", 2), ("a()", 2), ("", 2), ("a()", 2)]):
        computed(number, code, groups)

    def earlier(number: int, limit: int = 10) -> list[str]:
        with archive.read() as tx:
            (row,) = list_computations(tx, archive.account, computation=f"k{number}")
            found = earlier_runs(tx, archive.account, row, limit)
        return [row.computation for row in found]

    assert earlier(5) == ["k3", "k0"]
    assert earlier(5, limit=1) == ["k3"]
    assert earlier(0) == earlier(1) == earlier(2) == []
    assert earlier(4) == [], "computations without recorded code do not match"
    library = "/env/lib/python3.12/site-packages/xarray/core/dataset.py"
    computed(6, "a()", 2, prefix="other")
    computed(7, "a()", 2, file=library)
    computed(8, "a()", 2)
    computed(9, "a()", 2)
    assert earlier(6) == [], "other prefixes"
    assert earlier(7) == [], "the line of a library"
    assert earlier(8) == [], "a cluster of another name"
    assert earlier(9)[-3:] == ["k5", "k3", "k0"]


def test_the_details_of_a_run_match_the_ingested_rows(archive: Archive) -> None:
    run = add_cluster(archive, "c")
    archive.ingest([
        frame("tasks", [task(0), task(25, prefix="sum"), task(26, start_us=0, status="killed")], 1),
        frame("clients", [{"client": "me", "seen_us": NOW, "connect_us": NOW, "held_keys": 3, "held_nbytes": -1}], 2),
        frame("workers", [{"server_id": "w", "worker": "tcp://1", "seen_us": NOW, "start_us": NOW, "nthreads": 1}], 3),
        frame("samples", [{"time_us": NOW, "worker": "tcp://1", "memory": 9, "cpu_percent": 50.0}], 4),
        frame("activities", [{"time_us": NOW, "context": "execute", "activity": "a", "unit": "seconds", "value": 2.0}], 5),
    ])  # fmt: skip
    with archive.read() as tx:
        prefixes = prefixes_of(tx, run, "comp")
        assert [(prefix, sums.tasks, sums.killed, sums.first_us) for prefix, sums in prefixes] == [
            ("inc", 2, 1, NOW), ("sum", 1, 0, NOW + 25_000_000),
        ]  # fmt: skip
        assert prefixes_of(tx, run, "none") == []
        (client,) = clients_of(tx, run)
        assert (client.held_keys, client.held_nbytes) == (3, -1)
        (worker,) = workers_of(tx, run)
        assert (worker.memory, worker.cpu_percent) == (9, 50.0)
        assert [row["value"] for row in activities_of(tx, run)] == [2.0]


def test_usage_is_grouped_by_day_user_cluster_or_prefix(archive: Archive) -> None:
    add_cluster(archive, "c")
    add_cluster(archive, "d", user="bob")
    day = NOW // DAY_US
    archive.ingest([frame("tasks", [task(0), task(0, start_us=NOW + DAY_US, stop_us=NOW + DAY_US + 500_000)], 1)])
    archive.ingest([frame("tasks", [task(0, prefix="sum", nbytes=7)], 1, cluster="d")])

    def found(by: str, first: int = 0) -> dict[Any, tuple[int, int]]:
        with archive.read() as tx:
            return {row.key: (row.tasks, row.compute_us) for row in usage(tx, archive.account, by, first)}

    assert found("day") == {day: (2, 2_000_000), day + 1: (1, 500_000)}
    assert found("user") == {"ann": (2, 1_500_000), "bob": (1, 1_000_000)}
    assert found("cluster") == {"c": (2, 1_500_000), "d": (1, 1_000_000)}
    assert found("prefix") == {"inc": (2, 1_500_000), "sum": (1, 1_000_000)}
    assert found("day", day + 1) == {day + 1: (1, 500_000)}


# ---------------------------------------------------------------- error groups


def failure(at: int, fingerprint: str = "f", **values: Any) -> dict[str, Any]:
    return {"time_us": at, "fingerprint": fingerprint, "type": "ValueError", "message": "bad", "count": 1, **values}


def groups(archive: Archive, **wanted: Any) -> dict[str, ErrorGroup]:
    with archive.read() as tx:
        rows = list_error_groups(tx, archive.account, **wanted)
    return {row.fingerprint: row for row in rows}


def test_the_same_failure_in_several_clusters_is_one_group(archive: Archive) -> None:
    add_cluster(archive, "c")
    add_cluster(archive, "d", user="bob")
    archive.ingest([frame("exceptions", [failure(NOW + 5), failure(NOW + 3, count=4, cause_type="KeyError")], 1)])
    archive.ingest(
        [frame("exceptions", [failure(NOW + 9, traceback="Traceback: it"), failure(NOW, "")], 1, cluster="d")]
    )
    found = groups(archive)
    group = found["f"]
    assert (group.count, group.first_us, group.last_us) == (6, NOW + 3, NOW + 9)
    assert (group.clusters, sorted(group.users), group.state) == (2, ["ann", "bob"], "open")
    # The first failure had no traceback.
    assert group.sample.traceback == "Traceback: it"
    assert found["unknown"].count == 1
    assert list(found) == ["f", "unknown"]
    assert archive.run("c")["exceptions"] == 5


def test_a_group_counts_fatal_errors_and_the_computations_they_failed(archive: Archive) -> None:
    add_cluster(archive, "c")
    add_cluster(archive, "d")
    rows = [
        failure(NOW, count=30, will_retry=True, computation="one"),
        failure(NOW + 1, count=2, computation="one"),
        failure(NOW + 2, computation="two"),
        failure(NOW + 3),
        failure(NOW + 4, "retried", count=5, will_retry=True, computation="one"),
    ]
    archive.ingest([frame("exceptions", rows, 1)])
    archive.ingest([frame("exceptions", [failure(NOW + 5, computation="one")], 1, cluster="d")])
    found = groups(archive)
    assert {name: (row.count, row.fatal, row.computations) for name, row in found.items()} == {
        "f": (35, 5, 3),
        "retried": (5, 0, 0),
    }
    with archive.read() as tx:
        seen = error_groups.occurrences(tx, archive.account, ["f", "retried", "none"], NOW // 2 - 1, 2, 5)
    assert {name: (one.counts, one.fatal) for name, one in seen.items()} == {
        "f": ([0, 32, 2, 1, 0], [0, 2, 2, 1, 0]),
        "retried": ([0, 0, 0, 5, 0], [0, 0, 0, 0, 0]),
        "none": ([0] * 5, [0] * 5),
    }


def test_a_group_belongs_to_one_account(archive: Archive) -> None:
    other = archive.new_account("others")
    archive.ingest([frame("exceptions", [failure(NOW)])])
    archive.ingest([frame("exceptions", [failure(NOW), failure(NOW + 1)])], account=other)
    assert groups(archive)["f"].count == 1
    with archive.write() as tx:
        assert set_group_state(tx, other, "f", "resolved", "ann")
        assert not set_group_state(tx, other, "nothing", "resolved", "ann")
    assert groups(archive)["f"].state == "open"


@pytest.mark.parametrize(("state", "expected"), [("resolved", "regressed"), ("ignored", "ignored"), ("open", "open")])
def test_only_a_resolved_group_that_fails_again_regresses(archive: Archive, state: str, expected: str) -> None:
    archive.ingest([frame("exceptions", [failure(NOW)])])
    with archive.write() as tx:
        set_group_state(at(tx, NOW + 100), archive.account, "f", state, "ann")
    # It arrives late, but happened before.
    archive.ingest([frame("exceptions", [failure(NOW + 99)], 1)])
    assert groups(archive)["f"].state == state
    archive.ingest([frame("exceptions", [failure(NOW + 101)], 2)])
    assert groups(archive)["f"].state == expected
    assert groups(archive)["f"].count == 3


def test_groups_are_filtered_and_paged(archive: Archive) -> None:
    archive.ingest([frame("exceptions", [failure(NOW + n // 2, f"f{n}") for n in range(6)])])
    with archive.write() as tx:
        set_group_state(tx, archive.account, "f1", "ignored", "ann")
    assert list(groups(archive, states=("ignored",))) == ["f1"]
    assert list(groups(archive, fingerprint="f3")) == ["f3"]
    assert list(groups(archive, since_us=NOW + 2)) == ["f5", "f4"]
    assert list(groups(archive, limit=3)) == ["f5", "f4", "f3"]
    assert list(groups(archive, limit=3, after=(NOW + 1, "f3"))) == ["f2", "f1", "f0"]


def test_groups_are_found_by_words_of_their_encrypted_texts(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_groups, "RECENT", 2)
    monkeypatch.setattr(error_groups, "STEP", 3)
    raised = {
        "cause_type": "KeyError",
        "cause_message": "'Day 7'",
        "traceback": "in load_part\nRuntimeError: no such part",
    }
    archive.ingest([
        frame("exceptions", [failure(NOW, "oldest", **raised), *(failure(NOW + n, f"f{n}") for n in range(1, 8))])
    ])  # fmt: skip
    assert groups(archive, find="runtimeerror") == {}, "not indexed yet, and not recent"
    assert list(groups(archive, find="ad")) == ["f7", "f6"], "parts of words are found in recent groups"

    assert error_groups.index_errors(archive) == 8
    assert error_groups.index_errors(archive) == 0
    for words in ("runtimeerror", "KEYERROR day", "load_part", "load", "  part   key "):
        assert list(groups(archive, find=words)) == ["oldest"], words
    assert groups(archive, find="runtimeerror f3") == {}
    assert groups(archive, find="' ") == {}
    assert list(groups(archive, find="bad", limit=3)) == ["f7", "f6", "f5"]
    assert list(groups(archive, find="bad", limit=3, after=(NOW + 5, "f5"))) == ["f4", "f3", "f2"]
    assert list(groups(archive, find="valueerror", since_us=NOW + 6)) == ["f7", "f6"]


def test_hashed_words_differ_by_account_and_outlive_a_new_key(archive: Archive) -> None:
    other = archive.new_account("others")
    for account in (archive.account, other):
        archive.ingest([frame("exceptions", [failure(NOW, traceback="the same")])], account=account)
    error_groups.index_errors(archive)
    stored = archive.rows(schema.error_words)
    mine, theirs = ({row["word"] for row in stored if row["account_id"] == of} for of in (archive.account, other))
    assert len(mine) == len(theirs) > 2
    assert not mine & theirs

    with archive.write() as tx:
        archive.vault.rotate(tx.connection)
    assert list(groups(archive, find="same")) == ["f"]


def test_words_of_a_deleted_text_are_deleted(archive: Archive) -> None:
    for cluster, word in (("gone", "secret"), ("kept", "harmless")):
        add_cluster(archive, cluster)
        archive.ingest([frame("exceptions", [failure(NOW, traceback=word)], 1, cluster=cluster)])
    error_groups.index_errors(archive)
    assert list(groups(archive, find="secret")) == ["f"]

    delete(archive, archive.run("gone")["id"])
    assert archive.rows(schema.error_words) == []
    error_groups.index_errors(archive)
    assert groups(archive, find="secret") == {}
    assert list(groups(archive, find="harmless")) == ["f"]

    delete(archive, archive.run("kept")["id"])
    assert archive.rows(schema.error_words) == []


def test_failures_are_listed_with_their_texts(archive: Archive) -> None:
    run = add_cluster(archive, "c")
    rows = [failure(NOW + n, f"f{n % 2}", message=f"message {n}", traceback="Trace", key=f"k{n}") for n in range(4)]
    archive.ingest([frame("exceptions", rows, 1)])

    def found(**wanted: Any) -> list[str]:
        with archive.read() as tx:
            listed = list_exceptions(tx, archive.account, **wanted)
        assert all(row.texts.traceback == "Trace" for row in listed)
        return [row.texts.message for row in listed]

    assert found() == ["message 3", "message 2", "message 1", "message 0"]
    assert found(run=run, fingerprint="f1") == ["message 3", "message 1"]
    assert found(user="bob") == []
    assert found(user="ann", since_us=NOW + 3) == ["message 3"]
    with archive.read() as tx:
        second = list_exceptions(tx, archive.account, limit=2)[-1]
    assert found(limit=2, after=(second.time_us, second.id)) == ["message 1", "message 0"]


# ---------------------------------------------------------------- deletion


def fill(archive: Archive, cluster: str, traceback: str = "T") -> int:
    run = add_cluster(archive, cluster)
    archive.ingest([
        frame("tasks", [task(0)], 1, cluster=cluster),
        frame("workers", [{"server_id": "w", "seen_us": NOW, "start_us": NOW}], 2, cluster=cluster),
        frame("clients", [{"client": "me", "seen_us": NOW}], 3, cluster=cluster),
        frame("samples", [{"time_us": NOW, "worker": "tcp://1"}], 4, cluster=cluster),
        frame("activities", [{"time_us": NOW, "value": 1.0}], 5, cluster=cluster),
        frame("computations", [computation("comp", code="secret")], 6, cluster=cluster),
        frame("exceptions", [failure(NOW, traceback=traceback)], 7, cluster=cluster),
    ])  # fmt: skip
    archive.compact(run)
    archive.ingest([frame("tasks", [task(9)], 8, cluster=cluster)])
    archive.store.put(f"document-{run}", b"x")
    archive.execute(sa.insert(schema.documents).values(run_id=run, subject="", path=f"document-{run}"))
    archive.execute(sa.insert(schema.builds).values(run_id=run, subject="", builder="b"))
    archive.store.put(f"old-{run}", b"x")
    archive.execute(sa.insert(schema.replaced_files).values(run_id=run, path=f"old-{run}", delete_us=NOW))
    return run


def delete(archive: Archive, run: int) -> None:
    remove_cluster(archive, run)


def test_deleting_a_run_removes_all_its_rows_and_no_others(archive: Archive) -> None:
    gone, kept = fill(archive, "gone", "the secret of gone"), fill(archive, "kept", "the text of kept")
    assert set(archive.tables_naming(gone)) == {
        table.name for table in schema.metadata.sorted_tables if "run_id" in table.c
    } | {"runs"}
    before = archive.tables_naming(kept)
    delete(archive, gone)
    assert archive.tables_naming(gone) == []
    assert archive.tables_naming(kept) == before
    assert all(
        path.startswith(f"{archive.account}/runs/{kept}/") or path in (f"document-{kept}", f"old-{kept}")
        for path in archive.blobs()
    )
    assert archive.recording(kept)["tasks"].rows == 2
    # The error group no longer counts its failures or shows their text.
    group = groups(archive)["f"]
    assert (group.count, group.sample.traceback) == (1, "the text of kept")
    delete(archive, gone)


def test_a_group_without_failures_is_deleted_unless_its_state_was_set(archive: Archive) -> None:
    run = add_cluster(archive, "c")
    archive.ingest([frame("exceptions", [failure(NOW, "open"), failure(NOW, "ignored", traceback="text")], 1)])
    with archive.write() as tx:
        set_group_state(tx, archive.account, "ignored", "ignored", "ann")
    delete(archive, run)
    (group,) = archive.rows(schema.error_groups)
    assert (group["fingerprint"], group["state"], group["count"], group["sealed_sample"]) == (
        "ignored",
        "ignored",
        0,
        None,
    )


def test_the_number_of_a_deleted_run_is_never_reused(archive: Archive) -> None:
    run = add_cluster(archive, "c")
    delete(archive, run)
    assert add_cluster(archive, "c") > run


def test_a_large_run_is_deleted_in_short_transactions(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, kept = fill(archive, "gone"), fill(archive, "kept", "the text of kept")
    many = [failure(NOW, f"own-{number}") for number in range(20)] + [
        failure(NOW, "f", traceback="T") for _ in range(15)
    ]
    archive.ingest([frame("exceptions", many, 10, cluster="gone")])
    archive.ingest([frame("tasks", [task(n, prefix=f"p{n}") for n in range(50)], 11, cluster="gone")])
    monkeypatch.setattr(clusters, "STEP_ERRORS", 4)
    monkeypatch.setattr(clusters, "STEP_ROWS", 6)
    removed: list[int] = []

    def watched(tx: Transaction, account: int, run: int, limit: int) -> int:
        removed.append(error_groups.remove_errors(tx, account, run, limit))
        return removed[-1]

    monkeypatch.setattr(clusters, "remove_errors", watched)
    left: list[int] = []
    step = clusters._delete_step

    def counted(tx: Transaction, run: int) -> bool:
        more = step(tx, run)
        left.append(tx.execute(sa.select(sa.func.count()).where(schema.prefixes.c.run_id == run)).scalar_one())
        return more

    monkeypatch.setattr(clusters, "_delete_step", counted)
    before = archive.tables_naming(kept)

    delete(archive, gone)

    assert max(removed) == 4
    assert sum(removed) == 36
    # At most six rows of a table per transaction.
    assert all(earlier - later <= 6 for earlier, later in itertools.pairwise(left))
    assert archive.tables_naming(gone) == []
    assert archive.tables_naming(kept) == before
    assert {name: group.count for name, group in groups(archive).items()} == {"f": 1}
    assert groups(archive)["f"].sample.traceback == "the text of kept"
