"""Findings: each rule fires on what it is about, and only then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daskscope.analysis.bins import Bins
from daskscope.analysis.breakdown import breakdown
from daskscope.analysis.findings import Finding, findings
from daskscope.analysis.gains import Gain, gain
from daskscope.analysis.summary import extent
from daskscope.model.recording import Completeness, Recording
from daskscope.model.tables import TABLES
from daskscope.testing import make_recording
from daskscope.wire.file import read_recording

GOLDEN = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"
S = 1_000_000
T = 1_700_000_000 * S
CLUSTER = {"cluster": "c", "recording_us": T, "end_us": T + 100 * S}
WORKER = {"worker": "a", "server_id": "1", "nthreads": 2, "start_us": T}


def task(start: float, stop: float, prefix: str = "add", **columns: Any) -> dict[str, Any]:
    row = {"worker": "a", "start_us": T + round(start * S), "stop_us": T + round(stop * S), "status": "ok"}
    return {**row, "prefix": prefix, **columns}


def of(recording: Recording) -> list[Finding]:
    return list(findings(recording, breakdown(recording, Bins.over(*extent(recording)))))


def found(**tables: list[dict[str, Any]]) -> list[Finding]:
    rows = {"clusters": [CLUSTER], "workers": [WORKER], "tasks": [task(0, 50)]}
    return of(make_recording({**rows, **tables}))


def test_of_a_quiet_run_there_is_nothing_to_say() -> None:
    assert found() == []


def test_a_lost_worker() -> None:
    killed = {**WORKER, "verdict": "memory kill", "end_us": T + 60 * S, "memory_limit": 200, "name": "w-5"}
    left = {"evidence": "its nanny stopped it", "lost_count": 3}
    lost = found(
        workers=[{**killed, **left}, {**WORKER, "worker": "b", "server_id": "2"}],
        samples=[{"worker": "a", "time_us": T + 1, "memory": 190}],
        tasks=[task(0, 50, key="k"), task(60, 90, key="k", worker="b")],
    )

    assert lost == [
        Finding(
            kind="lost worker",
            title="Worker w-5 was killed at 95 % of its memory",
            evidence="Its nanny stopped it; 3 results had to be computed again; 50.0 s of computing was lost.",
            advice="Use smaller chunks, or workers with more memory or fewer threads.",
            view="workers",
            start_us=T + 60 * S,
            stop_us=T + 60 * S,
            # 2 threads for 60 s and 2 for 100 s.
            gain=Gain(50 * S, "threads", 50 / 320, "computing whose results were lost with it and that ran again"),
        )
    ]


def test_a_lost_worker_that_took_nothing_along_has_no_estimate() -> None:
    (lost,) = found(workers=[{**WORKER, "verdict": "vanished", "end_us": T + 60 * S}])

    assert (lost.kind, lost.gain) == ("lost worker", None)


def test_errors_that_ended_and_errors_that_did_not() -> None:
    first, second = found(
        exceptions=[
            {"fingerprint": "f", "type": "ValueError", "message": "no", "time_us": T + 5, "count": 4, "will_retry": 1},
            {"fingerprint": "f", "type": "ValueError", "message": "no", "time_us": T + 9, "prefix": "add"},
            {"fingerprint": "g", "cause_type": "OSError", "time_us": T, "prefix": "add", "will_retry": 1},
        ]
    )

    assert (first.kind, first.title, first.view, first.start_us, first.stop_us) == (
        "error",
        "ValueError: no",
        "errors",
        T + 5,
        T + 9,
    )
    assert first.evidence == "5 executions of add failed, 1 of them for good."
    assert (second.title, second.evidence) == ("OSError", "1 execution of add failed, all of them tried again.")
    assert (first.gain, second.gain) == (None, None), "both failed in add: whose time it was is not recorded"


def test_what_failed_and_ran_again_could_have_been_saved() -> None:
    (finding,) = found(
        tasks=[task(0, 10, status="retried"), task(10, 14, status="retried"), task(20, 40), task(0, 9, "other")],
        exceptions=[
            {"fingerprint": "f", "type": "OSError", "time_us": T, "prefix": "add", "count": 2, "will_retry": 1}
        ],
    )

    assert finding.gain == Gain(14 * S, "threads", 14 / 200, "computing of the executions that failed and ran again")


def test_much_time_in_moving_data() -> None:
    moved: dict[str, Any] = {
        "interval_action": ["transfer", "disk-read"],
        "interval_start_us": [T + 55 * S, T + 55 * S],
        "interval_stop_us": [T + 97 * S, T + 95 * S],
    }
    (finding,) = found(tasks=[task(0, 50, **moved)])

    assert (finding.kind, finding.title, finding.view) == (
        "data movement",
        "Threads spent 21 % moving results between workers",
        "bandwidth",
    )
    assert finding.evidence == "42.0 s of 3 min 20 s of thread time."
    assert finding.gain == Gain(42 * S, "threads", 0.21, "all thread time spent moving results between workers")


def test_tasks_that_are_too_short() -> None:
    (finding,) = found(tasks=[task(i / 100, i / 100 + 0.001) for i in range(1_200)])

    assert (finding.kind, finding.title) == ("overhead", "Half of 1,200 tasks took less than 10 ms")
    assert found(tasks=[task(i / 100, i / 100 + 0.001) for i in range(1_000)]) == []
    assert finding.gain is None, "nobody knows which thread ran what"


def test_short_tasks_could_save_the_pauses_between_them() -> None:
    # Thread 1: 1 ms of work, 9 ms of pause; thread 2 runs one in two seconds, and such pauses are not the tasks' fault.
    tasks = [task(i / 100, i / 100 + 0.001, thread=1) for i in range(1_200)]
    (finding,) = found(tasks=[*tasks, *(task(2 * i, 2 * i + 0.001, thread=2) for i in range(10))])

    assert finding.gain == Gain(
        1_199 * 9_000, "threads", 1_199 * 9_000 / (200 * S), "pauses under 10 ms between two tasks of one thread"
    )


def test_a_straggler() -> None:
    (finding,) = found(tasks=[task(i, i + 1) for i in range(9)] + [task(70, 90)])

    assert finding == Finding(
        kind="straggler",
        title="A task of add took 20.0 s",
        evidence="The median of 10 tasks is 1.00 s; this one took 20 % of the run.",
        advice="Split its input, or divide the data evenly.",
        view="stream",
        start_us=T + 70 * S,
        stop_us=T + 90 * S,
        gain=Gain(19 * S, "run", 0.19, "time in which it alone computed, at most what it took beyond the median"),
    )


@pytest.mark.parametrize(
    ("others", "alone"),
    [
        ([(60, 75), (72, 78), (86, 99)], 8),
        ([(71, 89)], 2),
        ([(60, 95)], None),
        ([(71, 89), (72, 73), (80, 81)], 2),
    ],
)
def test_a_straggler_costs_the_run_only_where_it_is_alone(others: list[tuple[float, float]], alone: int | None) -> None:
    short = [task(i, i + 1) for i in range(9)]
    found_ = found(tasks=[*short, task(70, 90), *(task(start, stop, "other") for start, stop in others)])

    saved = next(finding for finding in found_ if "add" in finding.title).gain
    assert (saved and saved.us) == (alone and alone * S)


def test_the_largest_gain_comes_first_and_what_has_none_last() -> None:
    moved: dict[str, Any] = {
        "interval_action": ["transfer"], "interval_start_us": [T + 50 * S], "interval_stop_us": [T + 99 * S],
    }  # fmt: skip
    recording = make_recording(
        {
            "clusters": [CLUSTER],
            "workers": [WORKER],
            "tasks": [task(0, 1) for _ in range(9)] + [task(10, 22), task(30, 32, "other", **moved)],
            "exceptions": [
                {"fingerprint": "f", "type": "ValueError", "time_us": T, "prefix": "add", "count": 2},
                {"fingerprint": "g", "type": "KeyError", "time_us": T, "prefix": "add"},
            ],
            "samples": [{"time_us": T}],
        },
        completeness={"samples": Completeness(1, 5, 0)},
    )

    assert [(f.kind, f.gain and round(f.gain.share, 3)) for f in of(recording)] == [
        ("error", None),
        ("data movement", 0.245),
        ("straggler", 0.11),
        ("error", None),
        ("incomplete", None),
    ]


def test_no_more_can_be_saved_than_there_is() -> None:
    assert gain(30, 20, "run", "x") == Gain(20, "run", 1.0, "x")
    assert gain(0, 20, "run", "x") is None
    assert gain(5, 0, "run", "x") is None


def test_tasks_that_wait() -> None:
    activities = [
        {"context": "execute", "prefix": "add", "activity": activity, "unit": "seconds", "value": value}
        for activity, value in (("thread-cpu", 1.0), ("thread-noncpu", 3.0))
    ]
    (finding,) = found(activities=activities)

    assert (finding.kind, finding.title) == ("waiting", "Tasks waited 75 % of the time they ran")
    assert finding.evidence == "Of 50.0 s of computing, threads used the CPU for 12.5 s."
    assert finding.gain == Gain(37_500_000, "threads", 0.1875, "all thread time in which tasks did not use the CPU")


def test_rows_that_were_dropped() -> None:
    recording = make_recording({"samples": [{"time_us": T}]}, completeness={"samples": Completeness(1, 1_999, 0)})
    (finding,) = of(recording)

    assert (finding.kind, finding.title, finding.view) == ("incomplete", "1,999 rows could not be kept", "tables")
    assert finding.evidence == "1,999 of 2,000 rows of samples."


@pytest.mark.parametrize("blank", [False, True])
def test_any_recording_can_be_looked_at(blank: bool) -> None:
    recording = make_recording({name: [{}] for name in TABLES}) if blank else read_recording(GOLDEN)

    assert len(of(recording)) <= 5
    assert of(make_recording({})) == []
