"""Runs of coffea: phases from dependencies and types, sums from chunks, and the rules that give advice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.helpers.coffea_rows import CHUNK, S, T, chunk, tables, task

from daskscope.analysis.coffea import CoffeaRun, Fit, coffea_runs, fit
from daskscope.analysis.coffea_phases import Phase, phases, uses_coffea
from daskscope.analysis.summary import extent
from daskscope.analysis.what_if.chunks import makespan_us
from daskscope.insights.coffea import COFFEA_CHUNK_SIZE, COFFEA_SCALING, chunk_sizes
from daskscope.insights.facts import Facts, Finding
from daskscope.insights.rules import findings
from daskscope.insights.scaling import wanted_workers
from daskscope.model.recording import Recording
from daskscope.testing import make_recording


def only(recording: Recording) -> CoffeaRun:
    (run,) = coffea_runs(recording)
    return run


def test_the_phases_of_a_run() -> None:
    found = phases(make_recording(tables(2)))
    expected = [Phase.PREPROCESS, Phase.PREPROCESS, Phase.BROADCAST, Phase.PROCESS, Phase.PROCESS, Phase.MERGE]
    assert found.tolist() == expected


def test_the_phases_without_recorded_dependencies_follow_from_groups() -> None:
    rows = tables(2)
    rows["edges"], rows["chunks"] = [], []
    rows["groups"] = [
        {"computation": "preprocess", "group": "automatic_retries", "prefix": "automatic_retries"},
        {
            "computation": "preprocess",
            "group": "reduce",
            "prefix": "reduce",
            "dependencies": ("automatic_retries",),
        },
        {"computation": "process", "group": "lambda", "prefix": "lambda"},
        {"computation": "process", "group": "Dimuon", "prefix": "Dimuon", "dependencies": ("lambda",)},
        {"computation": "process", "group": "reduce", "prefix": "reduce", "dependencies": ("Dimuon",)},
    ]
    recording = make_recording(rows)
    assert phases(recording).tolist() == phases(make_recording(tables(2))).tolist()
    run = only(recording)
    assert (run.name, run.chunks, run.events, run.useful_share) == ("Dimuon", 2, -1, None)


def test_the_sums_of_a_run() -> None:
    run = only(make_recording(tables(4)))
    assert (run.name, run.kind, run.computations) == ("Dimuon", "Runner", ("preprocess", "process"))
    assert (run.events, run.bytes_read, run.requests, run.chunks) == (200_000, 4_000, 8, 4)
    assert (run.columns, run.files, run.wall_us) == (("Muon_pt", "nMuon"), 1, 6 * S)
    assert (run.task_us, run.process_us, run.useful_share) == (4 * S, round(3.6 * S), 0.9)
    assert (run.overhead_us, run.bytes_per_event) == (100_000, 0.02)
    assert [(phase.phase, phase.tasks, phase.us) for phase in run.phases] == [
        ("preprocess", 2, 200_000),
        ("process", 4, 4 * S),
        ("merge", 1, S),
    ]
    assert run.rate(run.wall_us) == pytest.approx(200_000 / 6)
    assert (run.thread_us, run.tasks_by_worker) == (6 * S, (("a", 4),))


def test_failed_and_repeated_chunks_are_not_added_up() -> None:
    rows = tables(2)
    rows["chunks"] += [chunk(0, 2, failed=1, bytes_read=7), chunk(1, 3, bytes_read=2_000)]
    run = only(make_recording(rows))
    assert (run.events, run.bytes_read) == (100_000, 3_000)


def test_a_chunk_of_another_worker_is_not_added_up() -> None:
    rows = tables(2)
    rows["chunks"][1]["worker"] = "b"
    assert only(make_recording(rows)).events == CHUNK


def test_chunks_without_recorded_keys_belong_to_the_task_that_stops_next() -> None:
    rows = tables(3)
    for row in (*rows["tasks"], *rows["chunks"]):
        row["key"] = row.get("group", "Dimuon")
    run = only(make_recording(rows))
    assert (run.events, run.chunks, [point[1] for point in run.points]) == (150_000, 3, [S, S, S])


def test_skipped_files_and_chunks() -> None:
    rows = tables(2)
    rows["tasks"][0]["type"] = rows["tasks"][3]["type"] = "NoneType"
    recording = make_recording(rows)
    run = only(recording)
    assert (run.files_skipped, run.files, run.chunks_skipped, run.chunks) == (1, 1, 1, 2)
    assert titles(recording)[0] == "Dimuon skipped 1 of 1 file and 1 of 2 chunks"


def test_two_processors_are_two_runs() -> None:
    rows = tables(2)
    later = tables(2)
    for row in later["tasks"]:
        row["id"] += 100
        row["start_us"] += 100 * S
        row["stop_us"] += 100 * S
        row["computation"] += " 2"
        row["key"] += " 2"
        row["prefix"] = row["prefix"].replace("Dimuon", "Other")
    for row in later["computations"]:
        row["computation"] += " 2"
        row["start_us"] += 100 * S
    rows["tasks"] += later["tasks"]
    rows["computations"] += later["computations"]
    rows["edges"] += [{"task": row["task"] + 100, "dependency": row["dependency"] + 100} for row in later["edges"]]
    runs = coffea_runs(make_recording(rows))
    assert [(run.name, run.events) for run in runs] == [("Dimuon", 100_000), ("Other", -1)]
    assert runs[1].computations == ("preprocess 2", "process 2")


def test_partitions_of_dask_awkward_are_a_run() -> None:
    rows = tables(2)
    rows["tasks"] = [task(n, n, n + 1, "hist-on-block", key=f"h{n}") for n in range(2)]
    rows["edges"] = []
    rows["chunks"] = [
        {**chunk(n, n + 1), "key": f"h{n}", "kind": "read", "process_us": -1, "open_us": 300_000} for n in range(2)
    ]
    run = only(make_recording(rows))
    assert (run.name, run.kind, run.events, run.bytes_read) == ("dask-awkward", "dask-awkward", 100_000, 2_000)
    assert (run.open_us, run.process_us, run.useful_share) == (600_000, -1, None)


def test_other_work_is_not_coffea() -> None:
    rows = tables(2)
    rows["chunks"] = []
    rows["tasks"] = [
        {**row, "type": "int", "prefix": row["prefix"].replace("automatic_retries", "load")} for row in rows["tasks"]
    ]
    recording = make_recording(rows)
    assert not uses_coffea(recording)
    assert coffea_runs(recording) == ()


def test_the_useful_share_of_a_recording_without_chunks_comes_from_the_profile() -> None:
    rows = tables(2)
    rows["chunks"] = []
    outer = "/lib/python3/site-packages/coffea/processor/executor.py\t_work_function\t1700"
    below = {"kind": "compute", "prefix": "Dimuon", "worker": "a", "start_us": T, "stop_us": T + S}
    rows["profiles"] = [
        {**below, "stack": (outer, "/home/me/ana.py\tprocess\t7"), "count": 3},
        {**below, "stack": (outer, "/lib/python3/site-packages/uproot/reading.py\topen\t9"), "count": 1},
        {**below, "prefix": "other", "stack": (outer, "/home/me/ana.py\tprocess\t7"), "count": 99},
    ]
    assert only(make_recording(rows)).useful_share == 0.75


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], None),
        ([(100, 5), (110, 6)], None),
        ([(100, 1_100), (200, 1_200), (400, 1_400), (400, 9_000)], Fit(1_000.0, 1.0)),
    ],
)
def test_the_fit_of_durations(points: list[tuple[int, int]], expected: Fit | None) -> None:
    assert fit(points) == expected


def test_tasks_are_scheduled_on_the_thread_that_is_free_first() -> None:
    assert makespan_us([3, 1, 1, 1], 2) == 3
    assert makespan_us([], 2) == 0


def titles(recording: Recording) -> list[str]:
    return [finding.title for finding in found(recording)]


def found(recording: Recording) -> list[Finding]:
    return [
        finding
        for finding in findings(Facts.of(recording, *extent(recording)))
        if finding.kind in ("coffea", "python loop")
    ]


def test_opening_that_takes_most_of_the_time_comes_first_and_asks_for_larger_chunks() -> None:
    rows = tables(40)
    for row in rows["chunks"]:
        row["process_us"] = 100_000
    (finding,) = found(make_recording(rows))
    assert finding.title == "Each chunk of Dimuon took 900 ms besides your code"
    assert finding.evidence.startswith("process() took 10 % of the task time of 40 chunks.")
    assert finding.advice.startswith("Use larger chunks: chunksize=200,000 instead of about 50,000.")
    assert finding.rank == 1


def test_opening_is_not_mentioned_if_the_users_code_takes_most_of_the_time() -> None:
    assert found(make_recording(tables(40))) == []


def test_another_chunk_size_is_suggested_after_two_sizes() -> None:
    rows = tables(40)
    # 0.5 s, and 10 µs per event: chunks of 50,000 take 1 s, chunks of 10,000 would take 0.6 s.
    for number, (row, made) in enumerate(zip(rows["tasks"][3:-1], rows["chunks"], strict=True)):
        events = 50_000 if number % 2 else 10_000
        row["stop_us"] = row["start_us"] + 500_000 + 10 * events
        made |= {"entry_start": 0, "entry_stop": events, "file_id": str(number), "time_us": row["stop_us"] - 1_000}
        made["process_us"] = 10 * events + 450_000
    rows["tasks"][-1] |= {"start_us": T + 60 * S, "stop_us": T + 61 * S}
    recording = make_recording(rows)
    assert only(recording).fit == Fit(500_000.0, 10.0)
    # All files have one chunk: larger chunks change nothing.
    assert found(recording) == []
    facts = Facts.of(recording, *extent(recording))
    one_file = replace(facts.coffea[0], file_parts=(replace(facts.coffea[0].file_parts[0], events=1_200_000),))
    facts.__dict__["coffea"] = (replace(one_file, events=1_200_000, threads=2),)
    (finding,) = COFFEA_CHUNK_SIZE.check(facts)
    assert finding.advice == "Try chunksize=120,000. Predicted: 1.5 to 1.9 times as fast."


def test_chunks_are_cut_as_coffea_cuts_them() -> None:
    assert chunk_sizes([100, 45], 40) == [50, 50, 45]
    assert chunk_sizes([3], 40) == [3]


def test_too_few_chunks_for_the_threads() -> None:
    rows = tables(3)
    rows["workers"] = [{"worker": name, "server_id": name, "nthreads": 1, "start_us": T} for name in "ab"]
    assert "Dimuon had only 3 chunks for 2 threads" in titles(make_recording(rows))
    rows["tasks"][3]["worker"] = rows["chunks"][0]["worker"] = "b"
    assert "Dimuon had only 3 chunks for 2 threads" not in titles(make_recording(rows))


def test_bytes_that_are_read_again() -> None:
    run = only(make_recording(tables(2)))
    assert run.read_amplification == 1.0
    assert replace(run, least_bytes_per_event=0.01).read_amplification == 2.0


def test_scaling_that_wants_more_workers() -> None:
    rows = tables(8)
    rows["events"] = [{"time_us": T + 2 * S, "topic": "adaptive", "kind": "wanted-workers", "detail": '{"wanted": 8}'}]
    recording = make_recording(rows)
    facts = Facts.of(recording, *extent(recording))
    assert wanted_workers(facts) == [(T + 2 * S, 8)]
    (finding,) = COFFEA_SCALING.check(facts)
    assert finding.title == "Scaling wanted 8 workers for Dimuon, but had 1"
    assert finding.advice == "Allow more workers. Predicted with 8: 500 ms to 1.80 s."


def test_retries_that_fail_again() -> None:
    rows = tables(4)
    for row in rows["tasks"][3:5]:
        row["status"] = "retried"
    rows["tasks"][5]["status"] = "error"
    failure = {"time_us": T + S, "key": "Dimuon-0", "prefix": "Dimuon", "worker": "a", "type": "Exception"}
    failure |= {"cause_type": "ValueError", "cause_message": "bad", "fingerprint": "f", "count": 1}
    rows["exceptions"] = [{**failure, "will_retry": 1}, {**failure, "will_retry": 1}, {**failure, "will_retry": 0}]
    assert titles(make_recording(rows))[0] == "Retries of Dimuon failed again"
