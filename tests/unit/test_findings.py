"""Each rule yields its finding when it applies, and only then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daskscope.analysis.summary import extent
from daskscope.insights.facts import Facts, Finding, Gain, gain
from daskscope.insights.rules import findings
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
    """Return the findings without rules and wall time, which have tests of their own."""
    made = findings(Facts.of(recording, *extent(recording)))
    return [
        replace(one, rule="", gain=replace(one.gain, wall_low_us=0, wall_high_us=0) if one.gain else None)
        for one in made
    ]


def found(**tables: list[dict[str, Any]]) -> list[Finding]:
    """Return the findings except those about idle time: most of these runs are idle half of the time."""
    rows = {"clusters": [CLUSTER], "workers": [WORKER], "tasks": [task(0, 50)]}
    return [finding for finding in of(make_recording({**rows, **tables})) if finding.kind != "idle"]


def test_an_ordinary_run_has_no_findings() -> None:
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
            title="Worker w-5 was killed at 95 % of its memory limit",
            evidence="Its nanny stopped it; 3 results lost with it, 1 recomputed; 50.0 s of compute time was wasted.",
            advice="Use smaller chunks, or workers with more memory or fewer threads.",
            view="workers",
            start_us=T + 60 * S,
            stop_us=T + 60 * S,
            # 2 threads for 60 s and 2 for 100 s.
            gain=Gain(
                50 * S, "threads", 50 / 320, "compute time of results that were lost with the worker and recomputed"
            ),
            rank=1,
        )
    ]


def test_a_lost_worker_without_lost_results_has_no_estimate() -> None:
    (lost,) = found(workers=[{**WORKER, "verdict": "vanished", "end_us": T + 60 * S}])

    assert (lost.kind, lost.gain) == ("lost worker", None)


def test_several_workers_that_were_lost_for_one_reason() -> None:
    ended = {"verdict": "vanished", "end_us": T + 60 * S, "lost_count": 3}
    workers = [{**WORKER, **ended}, {**WORKER, **ended, "worker": "b", "server_id": "2"}]
    (lost,) = found(workers=workers)
    assert (lost.title, lost.evidence) == ("2 workers were lost", "6 results lost with them, 0 recomputed.")


def test_final_and_retried_errors() -> None:
    first, retries, second = found(
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
    assert first.evidence == "1 task failed in add; 4 failures were retried."
    assert retries.title == "Retries of add never succeeded"
    assert retries.evidence == "4 retries did not prevent 1 final failure: ValueError: no."
    assert (second.title, second.evidence) == ("OSError", "1 failure was retried in add.")
    assert (first.gain, second.gain) == (None, None), (
        "both failed in add, and the recording does not say which took the time"
    )


def test_retried_work_could_be_saved() -> None:
    (finding,) = found(
        tasks=[task(0, 10, status="retried"), task(10, 14, status="retried"), task(20, 40), task(0, 9, "other")],
        exceptions=[
            {"fingerprint": "f", "type": "OSError", "time_us": T, "prefix": "add", "count": 2, "will_retry": 1}
        ],
    )

    assert finding.gain == Gain(
        14 * S, "threads", 14 / 200, "compute time of the executions that failed and were retried"
    )


def test_transfers_take_much_of_the_time() -> None:
    moved: dict[str, Any] = {
        "interval_action": ["transfer", "disk-read"],
        "interval_start_us": [T + 55 * S, T + 55 * S],
        "interval_stop_us": [T + 97 * S, T + 95 * S],
    }
    (finding,) = found(tasks=[task(0, 50, **moved)])

    assert (finding.kind, finding.title, finding.view) == (
        "data movement",
        "Threads spent 21 % of their time on transfers between workers",
        "bandwidth",
    )
    assert finding.evidence == "42.0 s of 3 min 20 s of thread time."
    assert finding.gain == Gain(42 * S, "threads", 0.21, "all thread time spent on transfers between workers")


def test_tasks_that_are_too_short() -> None:
    (finding,) = found(tasks=[task(i / 100, i / 100 + 0.001) for i in range(1_200)])

    assert (finding.kind, finding.title) == ("overhead", "Half of 1,200 tasks took less than 10 ms")
    assert found(tasks=[task(i / 100, i / 100 + 0.001) for i in range(1_000)]) == []


def test_short_tasks_could_save_the_time_besides_computing_while_there_was_work() -> None:
    # One of two threads computes a tenth of the time for 12 s. Then nothing is submitted for 88 s.
    computation = {"computation": "c", "start_us": T, "stop_us": T + 12 * S, "seen_us": T + 12 * S, "state": "done"}
    tasks = [task(i / 100, i / 100 + 0.001, thread=1, computation="c", assigned_us=T) for i in range(1_200)]
    (finding,) = found(tasks=tasks, computations=[computation])
    assert finding.gain is not None
    assert finding.gain.how == "thread time besides computing while there was work"
    assert finding.gain.us == pytest.approx(2 * 12 * S - 1_200 * 1_000, rel=0.01)


def test_a_straggler() -> None:
    (finding,) = found(tasks=[task(i, i + 1) for i in range(9)] + [task(70, 90)])

    assert finding == Finding(
        kind="straggler",
        title="One add task took 20.0 s",
        evidence="The median of 10 tasks is 1.00 s. This one took 20 % of the run.",
        advice="Split its input, or partition the data more evenly.",
        view="stream",
        start_us=T + 70 * S,
        stop_us=T + 90 * S,
        gain=Gain(
            19 * S, "run", 0.19, "time in which no other task was computing, at most its duration beyond the median"
        ),
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
def test_a_straggler_delays_the_run_only_while_it_is_alone(
    others: list[tuple[float, float]], alone: int | None
) -> None:
    short = [task(i, i + 1) for i in range(9)]
    found_ = found(tasks=[*short, task(70, 90), *(task(start, stop, "other") for start, stop in others)])

    saved = next(finding for finding in found_ if "add" in finding.title).gain
    assert (saved and saved.us) == (alone and alone * S)


def test_findings_are_ordered_by_gain() -> None:
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
        ("error", None),
        ("idle", 0.605),
        ("data movement", 0.245),
        ("straggler", 0.11),
        ("idle", 0.07),
        ("incomplete", None),
    ]


def test_a_gain_cannot_exceed_the_total() -> None:
    assert gain(30, 20, "run", "x") == Gain(20, "run", 1.0, "x")
    assert gain(0, 20, "run", "x") is None
    assert gain(5, 0, "run", "x") is None


def test_tasks_that_are_off_cpu() -> None:
    activities = [
        {"context": "execute", "prefix": "add", "activity": activity, "unit": "seconds", "value": value}
        for activity, value in (("thread-cpu", 1.0), ("thread-noncpu", 3.0))
    ]
    (finding,) = found(activities=activities)

    assert (finding.kind, finding.title) == ("waiting", "Tasks were off-CPU for 75 % of their run time")
    assert finding.evidence == "37.5 s of 50.0 s of compute time."
    assert finding.gain == Gain(37_500_000, "threads", 0.1875, "compute time in which tasks were off-CPU")
    assert finding.rank == 3


def test_dropped_rows() -> None:
    recording = make_recording({"samples": [{"time_us": T}]}, completeness={"samples": Completeness(1, 1_999, 0)})
    (finding,) = of(recording)

    assert (finding.kind, finding.title, finding.view) == ("incomplete", "1,999 rows were dropped", "overview")
    assert finding.evidence == "1,999 of 2,000 rows of samples."


@pytest.mark.parametrize("blank", [False, True])
def test_any_recording_has_findings(blank: bool) -> None:
    recording = make_recording({name: [{}] for name in TABLES}) if blank else read_recording(GOLDEN)

    assert len(of(recording)) <= 5
    assert of(make_recording({})) == []
