"""Every rule of its own: it speaks about a run that has the problem, and is silent about one that has not."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rule_rows import CLUSTER, WORKERS, S, T, by_rule, task

from daskscope import insights
from daskscope.analysis.intervals import alone_us
from daskscope.analysis.summary import extent
from daskscope.insights.facts import Facts, Rule
from daskscope.insights.rules import RULES
from daskscope.testing import make_recording


def test_every_rule_of_a_family_is_listed_once_with_its_name() -> None:
    modules = [
        importlib.import_module(f"daskscope.insights.{found.name}") for found in pkgutil.iter_modules(insights.__path__)
    ]
    mine = {
        name.lower().replace("_", "-"): value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, Rule)
    }
    assert mine == {rule.id: rule for rule in RULES}
    assert len(RULES) == len(mine)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_says_why_and_when(rule: Rule) -> None:
    assert rule.title and rule.title[0].isupper() and not rule.title.endswith(".")
    assert rule.why.endswith(".") and rule.when.endswith(".")


class TestRepeatedWork:
    def test_keys_of_an_earlier_computation(self) -> None:
        tasks = [task(0, 20, "read", key="k"), task(20, 30, "sum"), task(40, 60, "read", key="k", computation="c2")]
        finding = by_rule(tasks=tasks)["repeated-work"]
        assert finding.title == "1 task ran again in another computation"
        assert finding.evidence == "2 computations share keys; computing them again took 20.0 s, most of it in read."
        assert finding.gain is not None
        # 4 threads for 100 s.
        assert (finding.gain.us, finding.gain.share) == (20 * S, 0.05)
        assert (finding.gain.wall_low_us, finding.gain.wall_high_us) == (5 * S, 20 * S)

    def test_a_key_that_was_lost_in_between_is_another_matter(self) -> None:
        tasks = [task(0, 20, "read", key="k"), task(40, 60, "read", key="k")]
        assert "repeated-work" not in by_rule(tasks=tasks)

    def test_hidden_keys_are_no_evidence(self) -> None:
        tasks = [task(n, n + 2, "read", key="g", group="g", computation=f"c{n}") for n in range(0, 60, 3)]
        assert "repeated-work" not in by_rule(tasks=tasks)

    def test_other_keys(self) -> None:
        tasks = [task(0, 20, "read", key="k"), task(40, 60, "read", key="m", computation="c2")]
        assert "repeated-work" not in by_rule(tasks=tasks)


class TestWarmUp:
    def tasks(self, first_s: float) -> list[dict[str, Any]]:
        made = []
        for worker in ("a", "b"):
            made.append(task(0, first_s, worker=worker))
            made += [task(first_s + n, first_s + n + 1, worker=worker) for n in range(5)]
        return made

    def test_slow_first_executions(self) -> None:
        finding = by_rule(tasks=self.tasks(20.0))["warm-up"]
        assert finding.title == "The first add on each worker took 20.0 s"
        assert finding.evidence == "Later ones took 1.00 s (median). On 2 workers, that is 38.0 s in total."

    def test_first_executions_as_fast_as_others(self) -> None:
        assert "warm-up" not in by_rule(tasks=self.tasks(1.5))

    def test_one_slow_worker(self) -> None:
        tasks = [one for one in self.tasks(20.0) if one["worker"] == "a"]
        tasks += [task(n, n + 1, worker="b") for n in range(6)]
        assert "warm-up" not in by_rule(tasks=tasks)


PARALLEL = [task(n / 10, n / 10 + 2, worker="ab"[n % 2], thread=n % 4) for n in range(40)]


class TestSerialSections:
    def test_a_reduction_that_runs_alone(self) -> None:
        finding = by_rule(tasks=[*PARALLEL, task(10, 60, "merge")])["serial-sections"]
        assert finding.title == "merge ran alone for 50 % of the run"
        assert finding.gain is not None
        assert (finding.gain.us, finding.gain.of) == (50 * S, "run")

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


class TestMemory:
    def samples(self, unmanaged: list[int], managed: int = 0) -> list[dict[str, Any]]:
        step = 100 / len(unmanaged)
        return [
            {"worker": "a", "time_us": T + round(n * step * S), "memory": value + managed, "managed": managed}
            for n, value in enumerate(unmanaged)
        ]

    def test_unmanaged_memory_that_grows(self) -> None:
        finding = by_rule(tasks=[task(0, 50)], samples=self.samples(list(range(100, 500, 20))))["memory-growth"]
        assert finding.title == "Unmanaged memory grew on 1 worker"
        assert finding.evidence.startswith("On a, by ")

    @pytest.mark.parametrize(
        "values", [[100] * 20, [100] * 10 + [500] * 10, [500, 100] * 10, list(range(500, 100, -20))]
    )
    def test_unmanaged_memory_that_does_not_grow_steadily(self, values: list[int]) -> None:
        assert "memory-growth" not in by_rule(tasks=[task(0, 50)], samples=self.samples(values))

    def test_memory_to_spare(self) -> None:
        finding = by_rule(tasks=[task(0, 50)], samples=self.samples([200] * 20))["spare-memory"]
        assert finding.title == "No worker used more than 20 % of its memory"

    def test_workers_that_share_their_memory(self) -> None:
        """Workers of one process have the same memory and limit."""
        samples = [{**row, "worker": name} for row in self.samples([200] * 20) for name in ("a", "b")]
        tasks = [task(0, 50, worker=name) for name in ("a", "b")]
        assert (
            by_rule(tasks=tasks, samples=samples)["spare-memory"].title == "No worker used more than 20 % of its memory"
        )

    def test_no_memory_to_spare(self) -> None:
        assert "spare-memory" not in by_rule(tasks=[task(0, 50)], samples=self.samples([200] * 19 + [400]))


class TestRetriesInVain:
    def failures(self, *will_retry: int) -> list[dict[str, Any]]:
        common = {"fingerprint": "f", "type": "ValueError", "message": "no", "prefix": "add"}
        return [{**common, "time_us": T + n, "will_retry": again} for n, again in enumerate(will_retry)]

    def test_retries_that_all_fail(self) -> None:
        finding = by_rule(exceptions=self.failures(1, 1, 0))["retries-in-vain"]
        assert finding.evidence == "2 retries did not prevent 1 final failure: ValueError: no."

    def test_retries_that_help_most_tasks(self) -> None:
        tasks = [task(0, 1, key="k", status="retried"), task(1, 2, key="k")]
        assert "retries-in-vain" not in by_rule(exceptions=self.failures(1, 1, 0), tasks=tasks)

    @pytest.mark.parametrize("will_retry", [(0, 0), (1, 1), (1, 0, 0)])
    def test_failures_without_retries_and_retries_that_help(self, will_retry: tuple[int, ...]) -> None:
        assert "retries-in-vain" not in by_rule(exceptions=self.failures(*will_retry))


class TestRecomputedResults:
    def closed(self, verdict: str) -> list[dict[str, Any]]:
        left = {"verdict": verdict, "evidence": "it was closing", "end_us": T + 30 * S}
        return [{**WORKERS[0], **left}, WORKERS[1]]

    def test_results_of_a_closed_worker(self) -> None:
        tasks = [task(0, 25, key="k"), task(40, 65, key="k", worker="b")]
        finding = by_rule(tasks=tasks, workers=self.closed("closed"))["recomputed-results"]
        assert finding.title == "1 result was recomputed after a worker left"
        assert finding.evidence == "25.0 s of compute time was wasted. a left: it was closing."

    def test_results_of_a_lost_worker_are_part_of_that_finding(self) -> None:
        tasks = [task(0, 25, key="k"), task(40, 65, key="k", worker="b")]
        assert by_rule(tasks=tasks, workers=self.closed("vanished")).keys() >= {"lost-workers"}
        assert "recomputed-results" not in by_rule(tasks=tasks, workers=self.closed("vanished"))

    def test_nothing_was_recomputed(self) -> None:
        tasks = [task(0, 25, key="k"), task(40, 65, key="m", worker="b")]
        assert "recomputed-results" not in by_rule(tasks=tasks, workers=self.closed("closed"))


class TestGraphsAndLoops:
    def computation(self, graph_s: float) -> list[dict[str, Any]]:
        return [{"computation": "c1", "seen_us": T, "tasks": 5_000, "graph_us": round(graph_s * S), "state": "done"}]

    def test_a_graph_that_takes_long(self) -> None:
        finding = by_rule(tasks=[task(0, 50)], computations=self.computation(20))["large-graphs"]
        assert finding.title == "The scheduler spent 20 % of the run on unpacking graphs"
        assert finding.evidence == "20.0 s in total; the largest one had 5,000 tasks and took 20.0 s."

    def test_a_graph_that_does_not(self) -> None:
        assert "large-graphs" not in by_rule(tasks=[task(0, 50)], computations=self.computation(2))

    def log(self, seconds: float) -> list[dict[str, Any]]:
        text = f"Event loop was unresponsive in Worker for {seconds:.2f}s.  This is often caused by long-running GIL-holding"
        return [{"time_us": T, "worker": "a", "message": text, "level": 30}] * 2

    def test_an_event_loop_that_was_blocked(self) -> None:
        finding = by_rule(tasks=[task(0, 50)], logs=self.log(4.5))["loop-stalls"]
        assert finding.title == "The event loop of a was blocked for 9.00 s"
        assert finding.evidence == "2 times, 4.50 s at most."

    def test_a_short_stall(self) -> None:
        assert "loop-stalls" not in by_rule(tasks=[task(0, 50)], logs=self.log(1.0))


def test_no_more_wall_time_is_saved_than_beyond_the_longest_chain() -> None:
    tasks = [task(n * 10, n * 10 + 10, id=n, key=f"k{n}") for n in range(9)]
    edges = [{"task": n + 1, "dependency": n, "seen_us": T} for n in range(8)]
    recording = make_recording({"clusters": [CLUSTER], "workers": WORKERS, "tasks": tasks, "edges": edges})
    facts = Facts.of(recording, *extent(recording))
    assert facts.path.bound_us == 90 * S
    saved = facts.thread_time(200 * S, "anything")
    assert saved is not None
    assert (saved.wall_low_us, saved.wall_high_us) == (10 * S, 10 * S)
