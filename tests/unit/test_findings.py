"""Each rule yields its finding when it applies, and only then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daskscope.analysis.summary import extent
from daskscope.insights import rules
from daskscope.insights.facts import Facts, Finding, Gain, Rule, gain
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
            gain=Gain(50 * S, "threads", 50 / 320, "compute time of tasks and results that were lost with the worker"),
            rank=1,
        )
    ]


def test_tasks_that_were_killed_with_their_worker_are_part_of_its_price() -> None:
    """As in the thread time on the page, which counts them as lost or failed."""
    (lost,) = found(
        workers=[{**WORKER, "verdict": "vanished", "end_us": T + 60 * S}, {**WORKER, "worker": "b", "server_id": "2"}],
        tasks=[task(0, 50, key="k"), task(60, 90, key="k", worker="b"), task(55, 60, status="killed")],
    )
    assert (
        "55.0 s of compute time was wasted: 50.0 s for lost results, 5.00 s in tasks that were killed" in lost.evidence
    )
    assert lost.gain is not None and lost.gain.us == 55 * S


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


def test_retries_of_one_error_are_not_counted_for_another_one_of_the_same_prefix() -> None:
    """Two tasks were retried, one for each error: neither finding may claim both."""
    tasks = [
        task(0, 1, status="retried", key="a"),
        task(1, 2, key="a"),
        task(2, 3, status="retried", key="b"),
        task(3, 4, status="error", key="b"),
    ]
    errors = [
        {"fingerprint": name, "type": name, "time_us": T, "prefix": "add", "will_retry": 1}
        for name in ("OSError", "KeyError")
    ]
    assert {one.evidence for one in found(tasks=tasks, exceptions=errors)} == {"1 failure was retried in add."}


def test_the_advice_names_a_traceback_only_if_there_is_one() -> None:
    failure = {"fingerprint": "f", "type": "ValueError", "time_us": T, "prefix": "add"}
    with_text = {**failure, "traceback": '  File "a.py", line 1, in f\n'}
    assert found(exceptions=[failure])[0].advice.startswith("No traceback was recorded")
    assert found(exceptions=[with_text])[0].advice.startswith("The last lines of the traceback")


def test_a_lost_worker_is_not_before_a_finding_that_costs_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def finding(kind: str, rank: int, share: float) -> Finding:
        return Finding(kind, "", "", "", "workers", 0, 0, Gain(1, "threads", share, "") if share else None, rank)

    made = [
        finding("lost worker", 1, 0.08),
        finding("locks", 2, 0.71),
        finding("retries", 1, 0.0),
        finding("error", 0, 0.0),
        finding("incomplete", 3, 0.0),
    ]
    monkeypatch.setattr(rules, "RULES", (Rule("r", "", "", "", lambda _: iter(made)),))
    assert [one.kind for one in found()] == ["error", "retries", "locks", "lost worker", "incomplete"]


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


def test_short_tasks_could_save_the_time_in_which_threads_waited_for_them() -> None:
    # One of two threads computes a tenth of the time for 12 s. Then nothing is submitted for 88 s.
    computation = {"computation": "c", "start_us": T, "stop_us": T + 12 * S, "seen_us": T + 12 * S, "state": "done"}
    tasks = [task(i / 100, i / 100 + 0.001, thread=1, computation="c", assigned_us=T) for i in range(1_200)]
    (finding,) = found(tasks=tasks, computations=[computation])
    assert finding.gain is not None
    how = "time in which threads waited for tasks that existed, or for the client to submit as many"
    assert (finding.gain.of, finding.gain.how) == ("run", how)
    # And up to 1 ms for each task in the client.
    assert finding.gain.us == pytest.approx(12 * S - 1_200 * 1_000 / 2 + 1_200 * 1_000, rel=0.01)


@pytest.mark.parametrize(("cores", "saved_s"), [(4, 12.3), (1, 12.0)])
def test_short_tasks_share_the_cores(cores: int, saved_s: float) -> None:
    """1.2 s of CPU time take at least 1.2 s on one core."""
    tasks = [task(i / 100, i / 100 + 0.001, thread=1, assigned_us=T) for i in range(1_200)]
    process = {"worker": "a", "time_us": T + S, "wall_us": S, "cores": cores}
    (finding,) = found(tasks=tasks, processes=[process])
    assert finding.gain is not None
    assert finding.gain.us == pytest.approx(saved_s * S, rel=0.03)


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
            10 * S,
            "run",
            0.1,
            "time in which no other task was computing, less what remains if 2 threads share the work",
        ),
    )


@pytest.mark.parametrize(
    ("others", "alone"),
    [
        ([(60, 75), (72, 78), (86, 99)], 8),
        ([(71, 89)], 2),
        ([(60, 95)], 0),
        ([(71, 89), (72, 73), (80, 81)], 2),
    ],
)
def test_a_straggler_delays_the_run_only_while_it_is_alone(others: list[tuple[float, float]], alone: int) -> None:
    """Two threads would need half of that time."""
    short = [task(i, i + 1) for i in range(9)]
    found_ = found(tasks=[*short, task(70, 90), *(task(start, stop, "other") for start, stop in others)])

    saved = next(finding for finding in found_ if "add" in finding.title).gain
    assert (saved.us if saved else 0) == alone * S // 2


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
        ("idle", 0.07),
        ("straggler", 0.06),
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


@pytest.mark.parametrize(
    ("cores", "others_s", "wall_s"),
    [(2, 60, (0, 50)), (2, 0, (0, 50)), (2, 180, (50, 50)), (1, 0, (0, 0))],
    ids=["another program", "only the tasks", "mostly another program", "tasks need all of the core"],
)
def test_without_waits_for_a_core_tasks_still_need_their_cpu_time(
    cores: int, others_s: int, wall_s: tuple[int, int]
) -> None:
    """Two threads computed for 100 s, a second each two seconds. Fewer threads save nothing, if no other program wants most."""
    row = {"kind": "compute", "prefix": "add", "worker": "a", "count": 1, "start_us": T, "stack": ["work.py\tcall\t1"]}
    process = {"worker": "a", "time_us": T + 100 * S, "wall_us": 100 * S, "cpu_us": 100 * S, "host_cores": cores}
    recording = make_recording(
        {
            "clusters": [CLUSTER],
            "workers": [WORKER],
            "tasks": [task(0, 100, key=f"k{thread}", thread=thread) for thread in (1, 2)],
            "profiles": [{**row, "wall_us": 200 * S, "cpu_us": 100 * S, "runqueue_us": 100 * S}],
            "processes": [{**process, "host_cpu_us": (100 + others_s) * S}],
        }
    )
    (saved,) = (one.gain for one in findings(Facts.of(recording, *extent(recording))) if one.rule == "busy-hosts")
    assert saved is not None
    assert (saved.wall_low_us, saved.wall_high_us) == pytest.approx((wall_s[0] * S, wall_s[1] * S), abs=10_000)


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
