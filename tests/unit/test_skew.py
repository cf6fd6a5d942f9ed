"""Tasks with more data than others, stragglers, tasks that run alone, and workers that are slow at everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.rule_rows import WORKERS, S, T, by_rule, task

from daskscope.analysis.columns.intervals import alone_us
from daskscope.insights.facts import Finding

RULES = {"data-skew", "stragglers", "slow-workers"}
MIB = 1 << 20


def found(**tables: list[dict[str, Any]]) -> dict[str, Finding]:
    return {rule: finding for rule, finding in by_rule(**tables).items() if rule in RULES}


def parts(long_s: float, nbytes: int, *, of: str = "result") -> dict[str, list[dict[str, Any]]]:
    """Return tasks of 1 MiB and 1 s, and one that differs, by its result or by its input."""
    sizes, lengths = [MIB] * 20 + [nbytes], [1.0] * 20 + [long_s]
    made = [task(0, 0.1, "make", id=n, key=f"make-{n}", nbytes=size) for n, size in enumerate(sizes)]
    used = [
        task(1, 1 + length, "use", id=100 + n, key=f"use-{n}", nbytes=size if of == "result" else 8)
        for n, (size, length) in enumerate(zip(sizes, lengths, strict=True))
    ]
    edges = [{"task": 100 + n, "dependency": n, "seen_us": T} for n in range(len(sizes))]
    return {"tasks": [*made, *used], "edges": edges if of == "input" else []}


@pytest.mark.parametrize("of", ["result", "input"])
def test_a_task_with_more_data(of: str) -> None:
    made = found(**parts(30, 20 * MIB, of=of))
    assert made.keys() == {"data-skew"}
    finding = made["data-skew"]
    assert finding.title == "One use task had 20 times the data of the others and took 30.0 s"
    assert finding.evidence == "Inputs and result are 20 MiB; the median of 21 tasks is 1 MiB and 1.00 s."
    assert finding.gain is not None
    assert (finding.start_us, finding.stop_us) == (T + S, T + 31 * S)
    # It is alone for 29 s. Two threads take half of that, four a quarter.
    assert (finding.gain.wall_low_us, finding.gain.wall_high_us) == (14.5 * S, 21.75 * S)


def test_a_task_with_data_beside_others_without_any() -> None:
    tables = parts(30, 20 * MIB)
    tasks = [{**one, "nbytes": one["nbytes"] if one["nbytes"] > MIB else 0} for one in tables["tasks"]]
    assert found(tasks=tasks)["data-skew"].title == "One use task had much more data than the others and took 30.0 s"


def test_a_task_with_the_same_data_is_a_straggler() -> None:
    assert found(**parts(30, MIB)).keys() == {"stragglers"}


def test_data_that_does_not_explain_the_time() -> None:
    """With 6 times the data, 80 times the time has another cause."""
    assert found(**parts(80, 6 * MIB)).keys() == {"stragglers"}


def test_a_task_with_more_data_that_is_as_fast() -> None:
    assert found(**parts(1, 20 * MIB)) == {}


def workers(count: int) -> list[dict[str, Any]]:
    return [
        {"worker": f"w{n}", "server_id": f"w{n}", "name": f"w{n}", "nthreads": 1, "start_us": T} for n in range(count)
    ]


def work(seconds: list[float], nbytes: list[int] | None = None, count: int = 8) -> list[dict[str, Any]]:
    """Return tasks of two prefixes, as long as the worker needs."""
    return [
        task(n * us, (n + 1) * us, prefix, worker=f"w{number}", key=f"{prefix}-{number}-{n}", nbytes=(nbytes or [8] * 9)[number])
        for number, us in enumerate(seconds)
        for n in range(count)
        for prefix in ("add", "mul")
    ]  # fmt: skip


def test_a_worker_that_is_slow() -> None:
    made = found(workers=workers(4), tasks=work([1, 1, 3, 1]))
    assert made.keys() == {"slow-workers"}
    finding = made["slow-workers"]
    assert finding.title == "Worker w2 took 3.0 times as long as others for the same tasks"
    assert finding.evidence == (
        "It is compared with 3 workers, prefix by prefix. 32.0 s of thread time is beyond what the others would have taken."
    )


def test_a_worker_with_more_data() -> None:
    assert found(workers=workers(4), tasks=work([1, 1, 3, 1], [MIB, MIB, 3 * MIB, MIB])) == {}


@pytest.mark.parametrize(
    ("seconds", "count"), [([1, 1, 1.2, 1], 8), ([1, 3], 8), ([1, 1, 3, 1], 4), ([1, 3, 1, 3], 8), ([0.01, 0.01, 0.03], 8)]
)  # fmt: skip
def test_differences_that_say_nothing(seconds: list[float], count: int) -> None:
    """Noise, two workers, few tasks, half of the workers, or less than a second."""
    assert found(workers=workers(len(seconds)), tasks=work(seconds, count=count)) == {}


def test_one_long_task_does_not_make_its_worker_slow() -> None:
    tasks = [*work([1, 1, 1, 1]), task(20, 90, worker="w2", key="long")]
    assert "slow-workers" not in found(workers=workers(4), tasks=tasks)


PARALLEL = [task(n / 10, n / 10 + 2, worker="ab"[n % 2], thread=n % 4) for n in range(40)]


class TestSerialSections:
    def test_a_reduction_that_runs_alone(self) -> None:
        finding = by_rule(tasks=[*PARALLEL, task(10, 60, "merge")])["serial-sections"]
        assert finding.title == "merge ran alone for 50 % of the run"
        assert finding.gain is not None
        assert (finding.gain.us, finding.gain.of) == (37.5 * S, "run")
        assert (finding.gain.wall_low_us, finding.gain.wall_high_us) == (25 * S, 37.5 * S)

    @pytest.mark.parametrize(("cpu_s", "saved_s"), [(50.0, 25.0), (0.0, 37.5)])
    def test_work_that_computes_needs_cores(self, cpu_s: float, saved_s: float) -> None:
        """Four threads on two cores share the work of one that computes as two threads do."""
        seconds = {"thread-cpu": cpu_s, "thread-noncpu": 50.0 - cpu_s}
        metrics = [
            {"context": "execute", "prefix": "merge", "activity": name, "unit": "seconds", "value": value}
            for name, value in seconds.items()
        ]
        processes = [{"worker": worker["worker"], "time_us": T, "wall_us": S, "cores": 1} for worker in WORKERS]
        tasks = [*PARALLEL, task(10, 60, "merge")]
        gain = by_rule(tasks=tasks, activities=metrics, processes=processes)["serial-sections"].gain
        assert gain is not None
        assert gain.us == saved_s * S

    def test_a_reduction_beside_others(self) -> None:
        beside = [task(10, 60, worker="b", key=f"other-{n}", thread=n) for n in range(4)]
        assert "serial-sections" not in by_rule(tasks=[*PARALLEL, *beside, task(10, 60, "merge")])

    def test_an_execution_that_ends_before_it_starts(self) -> None:
        starts, stops = np.array([0, 5, 20]), np.array([30, 40, 10])
        assert [alone_us(starts, stops, row) for row in range(3)] == [5, 10, 0]

    def test_a_single_task_is_no_section(self) -> None:
        assert "serial-sections" not in by_rule(tasks=[task(10, 60, "merge")])


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), min_size=1, max_size=12))
def test_the_time_alone_is_that_of_counting_second_by_second(spans: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in spans])
    stops = starts + np.array([length for _, length in spans])
    expected = [0] * len(spans)
    for second in range(50):
        running = [n for n in range(len(spans)) if starts[n] <= second < stops[n]]
        if len(running) == 1:
            expected[running[0]] += 1
    assert [alone_us(starts, stops, row) for row in range(len(spans))] == expected
