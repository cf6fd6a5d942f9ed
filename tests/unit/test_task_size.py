"""The rules about chunks of another size, large graphs, work that is done again, and slow first executions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.helpers.rule_rows import WORKERS, S, T, by_rule, task

from daskscope.insights.facts import Finding

MIB = 1 << 20


def found(
    fixed_s: float, s_per_mb: float, sizes: list[float], *, noise_s: float = 0.0, **tables: Any
) -> Finding | None:
    """Run tasks one after the other on four threads, as long as a line says, for 100 s at most."""
    free, tasks = [0.0] * 4, []
    for n, size in enumerate(sizes):
        thread = free.index(min(free))
        start, length = free[thread], fixed_s + s_per_mb * size + noise_s * (n % 4)
        free[thread] = start + length
        times = {"start_us": T + round(start * S), "stop_us": T + round((start + length) * S)}
        names: dict[str, Any] = {
            "prefix": "read",
            "key": f"read-{n}",
            "computation": "c",
            "worker": "ab"[thread % 2],
            "status": "ok",
        }
        tasks.append({**names, **times, "id": n, "thread": thread, "nbytes": round(size * MIB)})
    cluster = {"cluster": "c", "recording_us": T, "end_us": T + round(max(free) * S)}
    workers = [{**worker, "memory_limit": 10**10} for worker in WORKERS]
    return by_rule(**{"tasks": tasks, "clusters": [cluster], "workers": workers, **tables}).get("chunk-size")


def test_chunks_that_are_too_small() -> None:
    finding = found(0.5, 0.01, [1.0, 2.0, 3.0] * 32)
    assert finding is not None
    assert finding.title == "Larger chunks would be faster for read"
    assert finding.evidence == (
        "A task takes 500 ms and 10 ms per MiB. With 2 MiB per chunk (median), 96 % of that is the fixed part."
    )
    assert finding.advice == "Try chunks or partitions of about 8 MiB, 4 times as large."
    assert finding.gain is not None
    # 96 tasks on 4 threads take 24 times 0.52 s; 24 tasks take 6 times 0.58 s.
    assert finding.gain.us == pytest.approx((24 * 0.52 - 6 * 0.58) * S, rel=0.02)


def test_chunks_that_are_too_large() -> None:
    """21 tasks on 4 threads take 6 rounds, the last of one task."""
    finding = found(0.0, 1.0, [1.0, 1.5, 2.0] * 6 + [2.0, 2.0, 6.0])
    assert finding is not None
    assert finding.title == "Smaller chunks would be faster for read"
    assert finding.advice == "Try chunks or partitions of about 384 KiB, a quarter as large."


@pytest.mark.parametrize(
    ("fixed_s", "s_per_mb", "sizes"),
    [
        (0.01, 0.25, [1.0, 2.0, 3.0] * 32),
        (0.5, 0.01, [2.0, 2.1, 2.2] * 32),
        (0.5, 0.01, [1.0, 2.0, 3.0] * 5),
        (0.5, 0.0, [1.0, 2.0, 3.0] * 32),
        (0.002, 0.001, [1.0, 2.0, 3.0] * 32),
        (0.5, 0.01, [1.0, 2.0, 3.0] * 30 + [40.0]),
    ],
    ids=["time goes by bytes", "equal sizes", "few tasks", "no line", "short tasks", "skew"],
)
def test_runs_that_say_nothing(fixed_s: float, s_per_mb: float, sizes: list[float]) -> None:
    assert found(fixed_s, s_per_mb, sizes) is None


def test_durations_that_vary_for_other_reasons() -> None:
    assert found(0.5, 0.01, [1.0, 2.0, 3.0] * 32, noise_s=0.2) is None


def test_chunks_that_would_not_fit_into_memory() -> None:
    workers = [{**worker, "memory_limit": 50 * MIB} for worker in WORKERS]
    assert found(0.5, 0.01, [1.0, 2.0, 3.0] * 32, workers=workers) is None


class TestLargeGraphs:
    def computation(self, graph_s: float) -> list[dict[str, Any]]:
        return [{"computation": "c1", "seen_us": T, "tasks": 5_000, "graph_us": round(graph_s * S), "state": "done"}]

    def test_a_graph_that_takes_long(self) -> None:
        finding = by_rule(tasks=[task(0, 50)], computations=self.computation(20))["large-graphs"]
        assert finding.title == "The scheduler spent 20 % of the run on unpacking graphs"
        assert finding.evidence == "20.0 s in total; the largest one had 5,000 tasks and took 20.0 s."

    def test_a_graph_that_does_not(self) -> None:
        assert "large-graphs" not in by_rule(tasks=[task(0, 50)], computations=self.computation(2))


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
