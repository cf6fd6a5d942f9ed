"""The rules about chunks of another size, large graphs, work that is done again, and slow first executions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.helpers.rule_rows import CLUSTER, WORKERS, S, T, by_rule, task

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
    def computation(self, graph_s: float, nbytes: int = 0, tasks: int = 5_000) -> list[dict[str, Any]]:
        times = {"seen_us": T, "start_us": T + 30 * S, "stop_us": T + 90 * S, "graph_us": round(graph_s * S)}
        return [{"computation": "c1", "tasks": tasks, "graph_nbytes": nbytes, "state": "done", **times}]

    def test_a_graph_that_takes_long(self) -> None:
        finding = by_rule(tasks=[task(50, 90)], computations=self.computation(20))["large-graphs"]
        assert finding.title == "The scheduler spent 20 % of the run on unpacking graphs"
        assert finding.evidence == "20.0 s in total; the largest one had 5,000 tasks and took 20.0 s."

    def test_a_graph_with_data_in_it(self) -> None:
        found = by_rule(tasks=[task(34, 90)], computations=self.computation(4, 800_000_000, 500))
        assert found["large-graphs"].title == "Building, sending and unpacking graphs of 763 MiB took up to 20.0 s"
        assert found["large-graphs"].evidence.startswith(
            "The largest one had 500 tasks and 763 MiB. The scheduler took 4.00 s"
        )
        saved = found["large-graphs"].gain
        assert saved is not None
        assert (saved.us, saved.wall_low_us) == (20 * S, 4 * S)
        # Of 30 s before it arrived, the client sent it for 16 s; after the last task, 10 s follow.
        assert found["nothing-submitted"].title.startswith("Threads were idle for 24 % of their time")

    def test_many_small_graphs(self) -> None:
        """A busy host delayed each of 50 submitted tasks by 0.4 s, while others ran."""
        computations = [{**self.computation(20)[0], "submissions": 50}]
        assert "large-graphs" not in by_rule(tasks=[task(31, 90)], computations=computations)

    def test_a_short_run_that_waits_for_its_graph(self) -> None:
        """Data of 40 MB in a graph: two thirds of a second, of a run of 6 s."""
        times = {"seen_us": T, "start_us": T + S, "stop_us": T + 6 * S, "graph_us": 0}
        computation = {"computation": "c1", "tasks": 50, "state": "done", **times}
        run = {"clusters": [{**CLUSTER, "end_us": T + 6 * S}], "tasks": [task(1, 6)]}
        found = by_rule(**run, computations=[{**computation, "graph_nbytes": 40_000_000}])
        assert found["large-graphs"].title == "Building, sending and unpacking graphs of 38.1 MiB took up to 800 ms"
        assert "large-graphs" not in by_rule(**run, computations=[{**computation, "graph_nbytes": 20_000_000}])

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

    def samples(self, file: str, wall_s: float = 15.0) -> list[dict[str, Any]]:
        """Return samples of a thread that executes code of a file."""
        stack = ["/home/me/work.py\tadd\t3", f"{file}\tload\t1"]
        row = {"kind": "compute", "source": "daskscope", "prefix": "add", "stack": stack, "count": 900}
        times = {"start_us": T, "stop_us": T + 20 * S, "wall_us": round(wall_s * S)}
        return [{**row, **times, "worker": worker} for worker in ("a", "b")]

    @pytest.mark.parametrize(
        ("file", "does"),
        [
            ("<frozen importlib._bootstrap>", "imports modules"),
            ("/lib/site-packages/numba/core/dispatcher.py", "compiles code"),
        ],
    )
    def test_slow_first_executions(self, file: str, does: str) -> None:
        finding = by_rule(tasks=self.tasks(20.0), profiles=self.samples(file))["warm-up"]
        assert finding.title == f"The first add on each worker took 20.0 s: it {does}"
        assert finding.evidence == (
            "Later ones took 1.00 s (median). On 2 workers, that is 38.0 s in total. The profile has 30.0 s of it."
        )

    @pytest.mark.parametrize(
        ("file", "wall_s"), [("/lib/python3/socket.py", 15.0), ("<frozen importlib._bootstrap>", 5.0)]
    )
    def test_first_executions_that_are_slow_for_another_reason(self, file: str, wall_s: float) -> None:
        assert "warm-up" not in by_rule(tasks=self.tasks(20.0), profiles=self.samples(file, wall_s))
        assert "warm-up" not in by_rule(tasks=self.tasks(20.0))

    def test_first_executions_as_fast_as_others(self) -> None:
        profiles = self.samples("<frozen importlib._bootstrap>")
        assert "warm-up" not in by_rule(tasks=self.tasks(1.5), profiles=profiles)

    def test_one_slow_worker(self) -> None:
        tasks = [one for one in self.tasks(20.0) if one["worker"] == "a"]
        tasks += [task(n, n + 1, worker="b") for n in range(6)]
        assert "warm-up" not in by_rule(tasks=tasks, profiles=self.samples("<frozen importlib._bootstrap>"))


def test_time_in_which_event_loops_were_blocked_is_no_overhead_of_short_tasks() -> None:
    """Tasks were assigned and did not start for 50 s, in which the event loops of both workers were blocked by an import."""
    tasks = [
        task(50 + n / 1000, 50 + (n + 0.5) / 1000, id=n, key=f"add-{n}", worker="ab"[n % 2], assigned_us=T)
        for n in range(1_200)
    ]
    message = (
        "Event loop was unresponsive in Worker for 50.00s.  This is often caused by long-running GIL-holding functions"
    )
    logs = [{"worker": name, "time_us": T + 50 * S, "message": message, "repeats": 1} for name in "ab"]
    cluster = {**CLUSTER, "end_us": T + 52 * S}
    with_stall, without = (
        by_rule(tasks=tasks, logs=rows, clusters=[cluster])["short-tasks"].gain for rows in (logs, [])
    )
    assert with_stall is not None
    assert without is not None
    assert with_stall.us < 3 * S
    assert without.us > 45 * S


@pytest.mark.parametrize(("queued_s", "saved_s"), [(0.5, 11.0), (0.1, 48.0)], ids=["tasks wait for a core", "do not"])
def test_event_loops_that_wait_for_a_core_of_other_programs_are_no_overhead_of_short_tasks(
    queued_s: float, saved_s: float
) -> None:
    """Tasks did not start for 50 s on a full host, 80 % of which other programs used."""
    tasks = [
        task(50 + n / 1000, 50 + (n + 0.5) / 1000, id=n, key=f"add-{n}", worker="ab"[n % 2], assigned_us=T)
        for n in range(1_200)
    ]
    readings = [
        {"worker": name, "time_us": T + 52 * S, "wall_us": 52 * S, "host_cores": 2, "cores": 2, "own_cpu_us": 0,
         "cpu_us": round(10.4 * S), "host_cpu_us": 104 * S}
        for name in "ab"
    ]  # fmt: skip
    metrics = [
        {"context": "execute", "prefix": "add", "activity": activity, "unit": "seconds", "value": 0.3}
        for activity in ("thread-cpu", "thread-noncpu")
    ]
    times = {"wall_us": S, "cpu_us": S // 2, "runqueue_us": round(queued_s * S), "start_us": T, "count": 1}
    profile = {"kind": "compute", "prefix": "add", "worker": "a", "stack": ["/home/me/work.py\tcall\t1"], **times}
    gain = by_rule(
        tasks=tasks, activities=metrics, profiles=[profile], processes=readings,
        workers=[{**worker, "host": "h"} for worker in WORKERS], clusters=[{**CLUSTER, "end_us": T + 52 * S}],
    )["short-tasks"].gain  # fmt: skip
    assert gain is not None
    assert gain.us / S == pytest.approx(saved_s, rel=0.1)
