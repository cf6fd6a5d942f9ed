"""Predict two workers, or two threads, from a recording of one thread; run it, and compare. Replay a million tasks."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from distributed import Client, LocalCluster

import daskscope
from benchmarks.result import Result, at_most
from benchmarks.what_if_workloads import THREADED, WORKLOADS, Workload
from daskscope.analysis.replay import replay
from daskscope.analysis.replay_graph import Graph, Group, Overheads, Setup, Submission
from daskscope.analysis.what_if import WhatIf, what_if

#: How far a prediction may be from the truth, and for how many of ten.
TOLERANCE, SHARE = 0.15, 0.8
TASKS, LIMIT_S = 1_000_000, 10.0
#: Runs of a workload to compare with; the fastest counts, because other programs only make it slower.
REPEATS = 2


def run() -> list[Result]:
    results, hits, count = [], 0, 0
    for workload in WORKLOADS:
        recorded = record(workload)
        for workers, threads in ((2, 1), *(((1, 2),) if workload in THREADED else ())):
            result, hit = compare(workload, recorded, workers, threads)
            print(f"    {result.what}: {result.figure} {result.note}", flush=True)
            results.append(result)
            hits, count = hits + hit, count + 1
    share = hits / count
    return [
        *results,
        Result("predictions within 15 %", f"{hits} of {count}", f"≥ {SHARE:.0%}", share >= SHARE),
        replay_a_million(),
    ]


def record(workload: Workload) -> daskscope.Recording:
    """Return a recording of one worker with one thread."""
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        # Workers import and deserialize what they need.
        workload()(client)
        start = workload()
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "run.daskscope"
            with daskscope.record(path):
                start(client)
            return daskscope.open_recording(path)


def measure(workload: Workload, workers: int, threads: int) -> float:
    """Return the seconds that the client waits, without a recorder."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=threads, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        workload()(client)
        took = []
        for _ in range(REPEATS):
            start = workload()
            began = time.perf_counter()
            start(client)
            took.append(time.perf_counter() - began)
        return min(took)


def compare(workload: Workload, recording: daskscope.Recording, workers: int, threads: int) -> tuple[Result, bool]:
    found: WhatIf = what_if(recording, workers=[workers], threads=threads)
    what = f"{workload.__name__}, 1 × 1 to {workers} × {threads}"
    if found.reason:
        return Result(what, "declined", note=found.reason), False
    predicted, actual = found.predictions[0].wall_us / 1e6, measure(workload, workers, threads)
    ratio = predicted / actual
    one = f"one thread took {found.wall_us / 1e6:.2f} s, its replay {found.replayed_us / 1e6:.2f} s"
    note = f"predicted {predicted:.2f} s, took {actual:.2f} s; {one}"
    return Result(what, f"{ratio:.3f}", note=note), abs(ratio - 1) <= TOLERANCE


def replay_a_million() -> Result:
    """Replay loads, a task for each, and sums of pairs: a million tasks on eight workers."""
    graph = tree_graph(TASKS)
    start = time.process_time()
    replay(graph, Setup.uniform(8, 2), Overheads(3000.0, 300.0, 100.0, 1000.0, 3000.0))
    took = time.process_time() - start
    return at_most(f"replay of {len(graph.us):,} tasks", took, LIMIT_S, " s", "CPU time, without reading the recording")


def tree_graph(tasks: int) -> Graph:
    leaves = tasks // 3
    group = [0] * leaves + [1] * leaves
    inputs: list[tuple[int, ...]] = [()] * leaves + [(i,) for i in range(leaves)]
    level = list(range(leaves, 2 * leaves))
    while len(level) > 1:
        above = list(range(len(inputs), len(inputs) + len(level) // 2))
        inputs += list(zip(level[::2], level[1::2], strict=False))
        level = above + level[2 * len(above) :]
    group += [2] * (len(inputs) - len(group))
    dependents: list[list[int]] = [[] for _ in inputs]
    for number, given in enumerate(inputs):
        for one in given:
            dependents[one].append(number)
    inputs_from, all_inputs = _flat(inputs)
    dependents_from, all_dependents = _flat(dependents)
    return Graph(
        us=[5000.0 + 97.0 * (number % 101) for number in range(len(inputs))],
        nbytes=[1000] * len(inputs),
        group=group,
        inputs_from=inputs_from,
        inputs=all_inputs,
        dependents_from=dependents_from,
        dependents=all_dependents,
        groups=[Group(group.count(i), i, i * leaves, 10_000.0, 0.9) for i in range(3)],
        submissions=[Submission(0.0, range(leaves), [0.0] * leaves)],
    )


def _flat(lists: list[tuple[int, ...]] | list[list[int]]) -> tuple[list[int], list[int]]:
    offsets, flat = [0], list[int]()
    for values in lists:
        flat += values
        offsets.append(len(flat))
    return offsets, flat
