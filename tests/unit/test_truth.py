"""The programs of ``scripts/bench truth``, and the truth that their timers tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.accuracy_page import write_section
from benchmarks.truth.behaviour import Step
from benchmarks.truth.bench import Scores, report, section
from benchmarks.truth.program import CAUSES, Planned, Program, make
from benchmarks.truth.score import Verdict, asked_s, headline_shares, untimed_s
from benchmarks.truth.timers import Execution, Timers

from daskscope.insights.facts import Facts
from daskscope.insights.story import outcome
from daskscope.testing import make_recording

S = 1_000_000
T = 1_700_000_000 * S


def execution(number: int, start: float, stop: float, ended: str = "ok") -> Execution:
    return Execution(number, start, stop, 0.0, ended, (("sleep", stop - start, 0.0, 0.0),))


def timers(tasks: list[Planned], executions: list[Execution], stop: float, submitted: float = 0.0) -> Timers:
    program = Program(0, 1, 2, "map", "sleep", tuple(tasks))
    return Timers(program, tuple(executions), {task.number: submitted for task in tasks}, 0.0, stop)


def task(number: int, *inputs: int) -> Planned:
    return Planned(number, "load", (Step("sleep", 1.0),), inputs)


def test_a_seed_makes_the_same_program_and_its_twin_differs_in_one_cause() -> None:
    for seed in range(60):
        program = make(seed)
        assert make(seed) == program
        assert make(seed, workers=2).tasks == program.tasks
        for cause in program.causes:
            if cause.has_twin:
                assert make(seed, fixed=cause.name) != program


def test_all_causes_occur() -> None:
    assert {cause.name for seed in range(400) for cause in make(seed).causes} == {cause.name for cause in CAUSES}


def test_idle_time_has_a_reason() -> None:
    # Two threads: task 0 runs alone for 1 s, 1 and 2 together after it; 1 starts half a second late.
    found = timers(
        [task(0), task(1, 0), task(2, 0)], [execution(0, 0, 1), execution(1, 1.5, 2), execution(2, 1, 2)], 3.0
    )
    assert found.idle == pytest.approx({"few": 1.0, "ready": 0.5, "nothing": 2.0})
    assert found.alone_s == pytest.approx(1.5)


def test_lost_and_failed_executions_are_wasted() -> None:
    runs = [execution(0, 0, 1, "error"), execution(0, 1, 2), execution(1, 0, 1, "killed"), execution(1, 1, 2)]
    found = timers([task(0), task(1)], [*runs, execution(1, 2, 4)], 4.0)
    assert found.failed_s == pytest.approx(1.0)
    assert found.wasted_s == pytest.approx(3.0)


def test_a_server_takes_at_least_what_it_was_asked_to() -> None:
    asks = Planned(0, "load", (Step("http", 1.0), Step("pool", 0.5, 1), Step("pool", 0.25, 2), Step("sleep", 4.0)))
    found = timers([asks], [execution(0, 0, 6), execution(0, 6, 12, "error")], 12.0)
    assert asked_s(found) == 1.5


def test_executions_wait_outside_of_their_timers_where_another_thread_holds_the_interpreter() -> None:
    runs = [execution(0, 0, 1), execution(1, 0, 1)]
    assert untimed_s(timers([task(0), task(1)], runs, 1.0)) == pytest.approx(0.0006)
    loop = Execution(1, 0.0, 1.0, 0.5, "ok", (("loop", 1.0, 0.5, 0.0),))
    assert untimed_s(timers([task(0), task(1)], [runs[0], loop], 1.0)) == pytest.approx(0.02)


def test_the_shares_of_the_headline_are_read() -> None:
    tasks = [{"start_us": T, "stop_us": T + 6 * S, "worker": "a", "status": "ok", "prefix": "add"}]
    workers = [{"worker": "a", "server_id": "a", "nthreads": 1, "start_us": T}]
    metrics = [
        {"context": "execute", "prefix": "add", "activity": name, "unit": "seconds", "value": value}
        for name, value in (("thread-cpu", 4.0), ("thread-noncpu", 2.0))
    ]
    recording = make_recording({"tasks": tasks, "workers": workers, "activities": metrics})
    reason = outcome(Facts.of(recording, T, T + 10 * S)).reason
    shares = {"computing": 40.0, "waiting": 20.0, "moving data": 0.0, "wasted": 0.0, "idle": 40.0}
    assert headline_shares(reason) == shares
    text = (
        "Threads spent <0.1 % of the time computing, 9 % on transfers, 1 % on failed or recomputed work, and 90 % idle."
    )
    assert headline_shares(text) == {"computing": 0.1, "waiting": 0.0, "moving data": 9.0, "wasted": 1.0, "idle": 90.0}
    assert headline_shares("It was raised in load.") is None
    with pytest.raises(ValueError, match="other words"):
        headline_shares("Threads spent their time well.")


def test_a_section_of_the_page_replaces_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "accuracy.md"
    page.write_text("# Accuracy\n\nIntroduction.\n\n## Statements\n\nOld.\n")
    write_section("Findings and predictions", "Scores.\n", page)
    write_section("Statements", "New.", page)
    assert page.read_text() == (
        "# Accuracy\n\nIntroduction.\n\n## Findings and predictions\n\nScores.\n\n## Statements\n\nNew.\n"
    )


def test_the_published_score_names_what_was_wrong() -> None:
    scores = Scores(notes=["9: locks: saved 0.00 s, promised 1.00 to 2.00 s"])
    scores.verdicts = {
        7: Verdict("right", "", {"gil": True}, {"GIL": True}),
        9: Verdict("missed", "", {"gil": False}, {"locks": False}),
    }
    text = section(report(scores), scores.notes)
    assert "| The first finding names a cause that was put in | 1 of 2 | ≥ 90% |" in text
    assert "Rules that spoke without a cause: gil (1 of 2)." in text
    assert "if they took a tenth of the time: locks (0 of 1)." in text
    assert "Seeds whose first finding was another one: [9]; a wrong one: []; with a false figure: []." in text
    assert text.count("9: locks: saved 0.00 s") == 1
