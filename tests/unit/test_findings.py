"""Findings: each rule fires on what it is about, and only then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daskscope.analysis.bins import Bins
from daskscope.analysis.breakdown import breakdown
from daskscope.analysis.findings import Finding, findings
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
        )
    ]


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


def test_tasks_that_are_too_short() -> None:
    (finding,) = found(tasks=[task(i / 100, i / 100 + 0.001) for i in range(1_200)])

    assert (finding.kind, finding.title) == ("overhead", "Half of 1,200 tasks took less than 10 ms")
    assert found(tasks=[task(i / 100, i / 100 + 0.001) for i in range(1_000)]) == []


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
    )


def test_tasks_that_wait() -> None:
    activities = [
        {"context": "execute", "prefix": "add", "activity": activity, "unit": "seconds", "value": value}
        for activity, value in (("thread-cpu", 1.0), ("thread-noncpu", 3.0))
    ]
    (finding,) = found(activities=activities)

    assert (finding.kind, finding.title) == ("waiting", "Tasks waited 75 % of the time they ran")
    assert finding.evidence == "Of 50.0 s of computing, threads used the CPU for 12.5 s."


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
