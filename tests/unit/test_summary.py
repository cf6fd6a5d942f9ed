"""The summary of a recording: exact sums, and zeros or blanks for unknown values."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from daskscope.analysis.columns.grouping import combine, percentile
from daskscope.analysis.failures import Failure
from daskscope.analysis.summary import Activity, Cluster, Computation, Prefix, Summary, TableCompleteness, summarise
from daskscope.analysis.workers import Worker
from daskscope.model.recording import Completeness, Strings
from daskscope.model.tables import TABLES
from daskscope.testing import make_recording

T = 1_700_000_000_000_000


def task(prefix: str, us: int, status: str = "ok", **columns: Any) -> dict[str, Any]:
    return {"prefix": prefix, "start_us": T, "stop_us": T + us, "status": status, **columns}


def summary(**tables: list[dict[str, Any]]) -> Summary:
    return summarise(make_recording(tables))


def test_an_empty_recording_has_an_empty_summary() -> None:
    assert summary() == Summary(
        source="test",
        cluster=None,
        other_clusters=0,
        start_us=0,
        end_us=0,
        duration_us=0,
        computations=(),
        prefixes=(),
        activities=(),
        workers=(),
        errors=(),
        complete=True,
        completeness=(),
        statement="The recording has no rows.",
    )


def test_a_recording_of_empty_rows_has_a_summary() -> None:
    assert summary(**{name: [dict[str, Any]()] for name in TABLES}).duration_us == 0


def test_prefix_totals_are_exact_sums_of_executions() -> None:
    found = summary(
        tasks=[
            task("add", 10, nbytes=1),
            task("mul", 2**50),
            task("add", 30, "error", nbytes=2),
            task("add", 20, "retried", nbytes=4),
            task("add", 10**9, "killed"),
        ]
    ).prefixes

    assert found == (
        Prefix("mul", 1, 2**50, 2**50, 2**50, 2**50, 2**50, 0, 0, 0, 0, 0, 0, {}, p99_us=2**50, order=1),
        Prefix("add", 3, 60, 20, 20, 30, 30, 7, 1, 1, 1, 0, 0, {}, std_us=8, p99_us=30),
    )


def test_a_prefix_with_only_killed_executions_has_no_durations() -> None:
    assert summary(tasks=[task("add", 5, "killed")]).prefixes == (
        Prefix("add", 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, {}),
    )


def test_intervals_are_summed_by_prefix_and_action() -> None:
    def intervals(*items: tuple[str, int]) -> dict[str, Any]:
        return {
            "interval_action": [action for action, _ in items],
            "interval_start_us": [T for _ in items],
            "interval_stop_us": [T + us for _, us in items],
            "interval_source": ["" for _ in items],
        }

    found = summary(
        tasks=[
            task("add", 9, **intervals(("transfer", 1), ("disk-read", 2), ("transfer", 4))),
            task("mul", 8),
            task("add", 7, **intervals(("disk-write", 8), ("deserialize", 16))),
        ]
    ).prefixes

    assert [(p.prefix, p.transfer_us, p.disk_us, p.intervals_us) for p in found] == [
        ("add", 5, 10, {"transfer": 5, "disk-read": 2, "disk-write": 8, "deserialize": 16}),
        ("mul", 0, 0, {}),
    ]


def test_intervals_whose_columns_disagree_are_left_out() -> None:
    odd = task("add", 9, interval_action=["transfer"], interval_start_us=[1, 2], interval_stop_us=[3])
    good = task("add", 9, interval_action=["transfer"], interval_start_us=[1], interval_stop_us=[3])

    assert [p.intervals_us for p in summary(tasks=[odd, good]).prefixes] == [{"transfer": 2}]


def test_a_percentile_is_one_of_the_values() -> None:
    values = np.array([1, 2, 3, 100])

    assert [percentile(values, q) for q in (0.0, 0.25, 0.5, 0.51, 0.95, 1.0)] == [1, 1, 2, 3, 100, 100]


def test_more_prefixes_than_fit_into_sixteen_bits() -> None:
    tasks = [task(f"p{i}", i + 1) for i in range(40_000)]

    found = summary(tasks=tasks).prefixes
    assert [(p.prefix, p.total_us) for p in found] == [(f"p{i}", i + 1) for i in reversed(range(40_000))]


def test_activities_of_any_label_and_unit_add_up_without_those_of_dask_itself() -> None:
    def activity(context: str, prefix: str, label: str, unit: str, value: float) -> dict[str, Any]:
        return {"context": context, "prefix": prefix, "activity": label, "unit": unit, "value": value}

    found = summary(
        activities=[
            activity("execute", "add", "thread-cpu", "seconds", 1.5),
            activity("made up", "", "🦆", "furlongs", 2.0),
            activity("execute", "add", "thread-cpu", "bytes", 7.0),
            activity("execute", "add", "thread-cpu", "seconds", 0.25),
            activity("execute", "mul", "thread-cpu", "seconds", 4.0),
            activity("tick-duration", "", "total", "seconds", 9.0),
            activity("p2p", "background-comms", "idle", "seconds", 8.0),
            activity("p2p", "background-comms", "send", "seconds", 1.0),
        ]
    ).activities

    assert found == (
        Activity("execute", "mul", "thread-cpu", "seconds", 4.0),
        Activity("execute", "add", "thread-cpu", "seconds", 1.75),
        Activity("p2p", "background-comms", "send", "seconds", 1.0),
        Activity("execute", "add", "thread-cpu", "bytes", 7.0),
        Activity("made up", "", "🦆", "furlongs", 2.0),
    )


def test_combinations_of_columns_are_distinguished() -> None:
    codes, labels = combine([Strings.of(["a", "a", "b"]), Strings.of(["x", "y", "x"])])

    assert [labels[code] for code in codes] == [("a", "x"), ("a", "y"), ("b", "x")]


def test_a_worker_from_joining_to_leaving() -> None:
    found = summary(
        workers=[
            {
                "worker": "tcp://a",
                "server_id": "W1",
                "name": "one",
                "host": "h",
                "nthreads": 2,
                "memory_limit": 8,
                "start_us": T,
                "end_us": T + 50,
                "verdict": "memory kill",
                "evidence": "95 %",
                "processing": ["k1", "k2"],
                "processing_count": 5,
                "lost_count": 3,
            }
        ],
        tasks=[
            task("add", 10, worker="tcp://a"),
            task("add", 5, worker="tcp://b"),
            task("x", 9, "killed", worker="tcp://a"),
        ],
        samples=[{"worker": "tcp://a", "memory": m, "spilled": 10 * m, "time_us": T} for m in (3, 7, 5)],
    ).workers

    left = (50, "memory kill", "95 %", 2, 10, 7, ("k1", "k2"), 5, 3)
    assert found == (Worker("tcp://a", "W1", "one", 2, 8, T, T + 50, *left, host="h", peak_us=T, spilled=70),)


def test_a_connected_worker_counts_until_the_end() -> None:
    found = summary(
        clusters=[{"cluster": "c", "recording_us": T, "end_us": T + 100}],
        workers=[{"worker": "tcp://a", "server_id": "W1", "start_us": T + 40}],
    )

    assert [(worker.end_us, worker.life_us) for worker in found.workers] == [(0, 60)]


def test_a_reused_address_belongs_to_the_worker_of_that_time() -> None:
    found = summary(
        workers=[
            {"worker": "tcp://a", "server_id": "new", "start_us": T + 100},
            {"worker": "tcp://a", "server_id": "old", "start_us": T, "end_us": T + 90},
        ],
        tasks=[
            task("add", 10, worker="tcp://a"),
            task("add", 20, worker="tcp://a"),
            {"prefix": "add", "worker": "tcp://a", "start_us": T + 150, "stop_us": T + 151, "status": "ok"},
        ],
        samples=[
            {"worker": "tcp://a", "time_us": T + 1, "memory": 5},
            {"worker": "tcp://a", "time_us": T + 101, "memory": 6},
        ],
    ).workers

    assert [(w.server_id, w.tasks, w.busy_us, w.peak_memory) for w in found] == [("old", 2, 30, 5), ("new", 1, 1, 6)]


def failure(**columns: Any) -> dict[str, Any]:
    return {"type": "ValueError", "message": "no", "fingerprint": "f", "time_us": T, "count": 1, **columns}


def test_failures_with_one_fingerprint_are_grouped() -> None:
    found = summary(
        exceptions=[
            failure(time_us=T + 9, key="late", prefix="mul", will_retry=1, count=4, traceback="the text"),
            failure(key="early", prefix="add", worker="w", cause_type="OSError", cause_message="disk"),
            failure(fingerprint="other", type="KeyError"),
        ]
    ).errors

    first = (T, T + 9, "early", "w", "the text", ("w",), ("early", "late"))
    assert found == (
        Failure("f", "ValueError", "no", "OSError", "disk", 5, 4, ("add", "mul"), *first),
        Failure("other", "KeyError", "no", "", "", 1, 0, ("",), T, T, "", "", ""),
    )


def test_failures_without_a_fingerprint_are_grouped_by_text() -> None:
    found = summary(
        exceptions=[
            failure(fingerprint="", message="a", count=0),
            failure(fingerprint="", message="b"),
            failure(fingerprint="", message="a"),
        ]
    ).errors

    assert [(error.message, error.count) for error in found] == [("a", 2), ("b", 1)]


def test_a_computation_has_its_call_and_span() -> None:
    found = summary(
        clusters=[{"cluster": "c", "end_us": T + 500}],
        spans=[{"span": "s", "tags": ["etl", "load"]}],
        computations=[
            {
                "computation": "two",
                "state": "running",
                "start_us": T + 100,
                "tasks": 9,
                "code": "\n  x = 1\nx.compute()",
                "code_line": 2,
            },
            {
                "computation": "one",
                "state": "erred",
                "start_us": T,
                "stop_us": T + 70,
                "erred": 2,
                "span": "s",
                "code": "\n\n  first()\n",
                "code_line": 99,
            },
        ],
    ).computations

    assert found == (
        Computation("one", "failed", T, T + 70, 70, 0, 2, "first()", ("etl", "load")),
        Computation("two", "unfinished", T + 100, 0, 400, 9, 0, "x.compute()", ()),
    )


def test_the_cluster_is_described_as_it_was_last_seen() -> None:
    row = {"cluster": "c", "name": "n", "user": "u", "address": "tcp://s", "start_us": T - 5, "recording_us": T}
    found = summary(clusters=[{**row, "end_us": T + 9, "end_reason": "closed", "versions": '{"dask": "1", "x": 2}'}])

    assert found.cluster == Cluster("c", "n", "u", "tcp://s", T - 5, T, T + 9, "closed", {"dask": "1"})
    assert (found.start_us, found.end_us, found.duration_us) == (T, T + 9, 9)


def test_a_running_cluster_counts_up_to_its_last_event() -> None:
    found = summary(clusters=[{"cluster": "c", "recording_us": T}], logs=[{"time_us": T + 70}, {"time_us": 0}])

    assert found.cluster is not None
    assert (found.cluster.end_reason, found.end_us, found.duration_us) == ("", T + 70, 70)


def test_a_cluster_that_ended_without_a_reason_is_closed() -> None:
    found = summary(clusters=[{"cluster": "c", "end_us": T}]).cluster

    assert found is not None
    assert found.end_reason == "closed"


def test_invalid_versions_are_left_out() -> None:
    for text in ("{", "[1]", "[" * 100_000, ""):
        found = summary(clusters=[{"cluster": "c", "versions": text}]).cluster
        assert found is not None
        assert found.versions == {}


def test_the_latest_of_several_clusters_is_described() -> None:
    found = summary(clusters=[{"cluster": "b", "recording_us": T + 5}, {"cluster": "a", "recording_us": T}])

    assert found.cluster is not None
    assert (found.cluster.cluster, found.other_clusters) == ("b", 1)


def statement(**about: Any) -> str:
    return summarise(make_recording({"logs": [{}, {}]}, **about)).statement


def test_a_complete_recording_says_so() -> None:
    assert statement() == "Complete: 2 rows, none dropped or missing."


def test_an_incomplete_recording_says_what_is_missing() -> None:
    gaps = {"logs": Completeness(2, 1, 0), "tasks": Completeness(0, 0, 1_000)}

    assert statement(completeness=gaps) == (
        "Incomplete, 2 rows read: 1 of 3 rows of logs dropped inside the cluster; "
        "1,000 of 1,000 rows of tasks not in the file."
    )


def test_a_cut_off_file_says_how_much_was_ignored() -> None:
    assert statement(damage="the file is cut off", damaged_bytes=312) == (
        "Incomplete, 2 rows read: the file is cut off: 312 bytes after the last whole batch were ignored."
    )
    assert statement(damage="the file is damaged (why)", damaged_bytes=1) == (
        "Incomplete, 2 rows read: the file is damaged (why): 1 byte was ignored."
    )


def test_every_table_has_its_completeness() -> None:
    found = summarise(make_recording({"logs": [{}]}, completeness={"tasks": Completeness(1, 2, 3)}))

    assert found.completeness == (TableCompleteness("logs", 1, 0, 0), TableCompleteness("tasks", 1, 2, 3))
    assert not found.complete


def test_the_dictionary_round_trips_through_json() -> None:
    found = summary(
        clusters=[{"cluster": "c", "recording_us": T}],
        tasks=[task("add", 5, worker="w")],
        workers=[{"worker": "w", "server_id": "W", "processing": ["k"]}],
        activities=[{"value": math.nan}],
        exceptions=[failure()],
    ).to_dict()

    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["prefixes"][0]["total_us"] == 5
    assert found["activities"][0]["total"] is None
