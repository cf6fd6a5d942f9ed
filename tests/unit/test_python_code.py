"""The rules about loops of Python code, and about event loops that are blocked."""

from __future__ import annotations

from typing import Any

import pytest
from tests.helpers.coffea_rows import tables
from tests.helpers.rule_rows import S, T, by_rule, task

from daskscope.analysis.summary import extent
from daskscope.insights.facts import Facts
from daskscope.insights.python_code import PYTHON_LOOPS
from daskscope.testing import make_recording


def profile(stack: tuple[str, ...], count: int, looping: int = 0) -> dict[str, Any]:
    row = {"kind": "compute", "prefix": "Dimuon", "worker": "a", "start_us": T, "stop_us": T + S}
    return {**row, "stack": stack, "count": count, "looping": looping}


USER = "/home/me/ana.py\tprocess\t7"
AWKWARD = "/lib/python3/site-packages/awkward/highlevel.py\t__iter__\t9"
NUMBA = "/lib/python3/site-packages/numba/core/compiler.py\tcompile\t9"
OTHER = "/home/me/ana.py\tselect\t20"
NUMPY = "/lib/python3/site-packages/numpy/core/fromnumeric.py\tsum\t9"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([profile((USER,), 150, 140)], "Dimuon spends its time in a Python loop"),
        # 46 % with one short call of native code in each round, 31 % with long ones.
        ([profile((USER,), 150, 69)], "Dimuon spends its time in a Python loop"),
        ([profile((USER,), 150, 47)], None),
        ([profile((USER,), 150, 14)], None),
        ([profile((USER,), 150, 0)], None),
        ([profile((USER,), 300, 15), profile((OTHER,), 120, 120)], "Dimuon spends its time in a Python loop"),
        ([profile((USER,), 30, 30), profile((USER, NUMPY), 200)], None),
        ([profile((USER, AWKWARD), 100), profile((USER, NUMPY), 100)], "Dimuon iterates over awkward arrays"),
        ([profile((USER, NUMBA), 150), profile((USER, NUMPY), 100)], "Dimuon spends its time compiling with Numba"),
        ([profile((USER, AWKWARD), 60)], None),
    ],
)
def test_loops_of_python_code(rows: list[dict[str, Any]], expected: str | None) -> None:
    recording = make_recording({**tables(4), "profiles": rows})
    found = [finding.title for finding in PYTHON_LOOPS.check(Facts.of(recording, *extent(recording)))]
    assert found == ([] if expected is None else [expected])


def test_a_loop_is_reported_with_its_line() -> None:
    recording = make_recording({**tables(4), "profiles": [profile((USER,), 150, 140)]})
    (finding,) = PYTHON_LOOPS.check(Facts.of(recording, *extent(recording)))
    assert finding.evidence == (
        "100 % of the samples: Samples in lines of your own code, in a loop, most of them below ana.py, line 7."
    )


def test_loops_of_failed_runs_are_not_saved_twice() -> None:
    """Half of the loop's time was in runs that failed and were retried, which is a saving of its own."""
    rows = [task(0, 20, prefix="Dimuon", id=1), task(20, 40, prefix="Dimuon", id=2, status="retried")]
    found = by_rule(tasks=rows, profiles=[profile((USER,), 150, 140)])["python-loops"]
    assert found.gain is not None
    assert found.gain.us == 20 * S
    # The time of killed runs is not in the time of the prefix either.
    rows[1] |= {"status": "killed"}
    gain = by_rule(tasks=rows, profiles=[profile((USER,), 150, 140)])["python-loops"].gain
    assert gain is not None
    assert gain.us == 20 * S


class TestLoopStalls:
    def log(self, seconds: float) -> list[dict[str, Any]]:
        text = f"Event loop was unresponsive in Worker for {seconds:.2f}s.  This is often caused by long-running GIL-holding"
        return [{"time_us": T + t * S, "worker": "a", "message": text, "level": 30} for t in (10, 30)]

    def test_an_event_loop_that_was_blocked(self) -> None:
        finding = by_rule(tasks=[task(0, 50)], logs=self.log(4.5))["loop-stalls"]
        assert finding.title == "The event loop of worker a was blocked for 9.00 s"
        assert finding.evidence == "2 times, 4.50 s at most."

    def test_loops_of_one_process_log_the_same_stall(self) -> None:
        """The nannies of a local cluster and the scheduler have loops in one process."""
        logs = [
            {"time_us": T + at * S + n, "worker": "scheduler", "repeats": 1 + n % 2, "level": 20,
             "message": f"Event loop was unresponsive in {kind} for {seconds}s.  This is often caused by long-running"}
            for at, seconds in ((20, "5.45"), (40, "6.29"))
            for n, kind in enumerate(("Nanny", "Scheduler", "Nanny"))
        ]  # fmt: skip
        finding = by_rule(tasks=[task(0, 50)], logs=logs)["loop-stalls"]
        assert finding.title == "The event loop of the scheduler was blocked for 11.7 s"
        assert finding.evidence == "2 times, 6.29 s at most."
        assert "Use fewer and larger tasks." in finding.advice

    def test_a_short_stall(self) -> None:
        assert "loop-stalls" not in by_rule(tasks=[task(0, 50)], logs=self.log(1.0))
