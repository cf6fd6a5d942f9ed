"""Predict two workers, two threads or other chunks from a recording of one thread; run it, and compare. Replay a million tasks."""

from __future__ import annotations

import math
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from distributed import Client, LocalCluster

import daskscope
from benchmarks.result import Result, at_most
from benchmarks.what_if_workloads import CHUNKS, THREADED, WORKLOADS, Start, Workload, sized_chunks
from daskscope.analysis.what_if.graph import Graph, Group, Overheads, Setup, Submission
from daskscope.analysis.what_if.predict import Options, WhatIf, what_if
from daskscope.analysis.what_if.replay import replay

#: How far a prediction may be from the truth, and for how many of ten.
TOLERANCE, SHARE = 0.15, 0.8
TASKS, LIMIT_S = 1_000_000, 10.0
#: A workload is recorded and run this many times in turn, and the median counts: other programs slow down both.
ROUNDS = 3


@dataclass(frozen=True)
class Round:
    """A prediction from a recording of one thread, and the seconds that the client waited afterwards."""

    found: WhatIf
    took_s: float

    @property
    def ratio(self) -> float:
        return self.found.predictions[0].wall_us / 1e6 / self.took_s if self.found.predictions else math.nan

    @property
    def is_in_range(self) -> bool:
        """Return whether the truth is between the shorter and the longer prediction, give or take the tolerance."""
        found, took_us = self.found.predictions[0], self.took_s * 1e6
        return found.wall_us / (1 + TOLERANCE) <= took_us <= found.max_wall_us / (1 - TOLERANCE)


def run() -> list[Result]:
    results, hits, count = [], 0, 0
    for workload in WORKLOADS:
        for (workers, threads), rounds in compare(workload).items():
            result, hit = judge(f"{workload.__name__}, 1 × 1 to {workers} × {threads}", rounds)
            print(f"    {result.what}: {result.figure} {result.note}", flush=True)
            results.append(result)
            hits, count = hits + hit, count + 1
    for factor, rounds in compare_chunks().items():
        result, hit = judge(f"chunks {factor:g} times as large", rounds)
        print(f"    {result.what}: {result.figure} {result.note}", flush=True)
        results.append(result)
        hits, count = hits + hit, count + 1
    return [
        *results,
        Result("predictions within 15 %", f"{hits} of {count}", f"≥ {SHARE:.0%}", hits / count >= SHARE),
        replay_a_million(),
    ]


def compare(workload: Workload) -> dict[tuple[int, int], list[Round]]:
    """Return the rounds for each cluster: two workers, and for some workloads two threads."""
    others = [(2, 1), (1, 2)] if workload in THREADED else [(2, 1)]
    rounds: dict[tuple[int, int], list[Round]] = {shape: [] for shape in others}
    with ExitStack() as stack:
        clients = {shape: open_client(stack, *shape) for shape in ((1, 1), *others)}
        for client in clients.values():
            # Workers import and deserialize what they need.
            workload()(client)
        for _ in range(ROUNDS):
            recording = record(workload(), clients[1, 1])
            for shape in others:
                took_s = measure(workload(), clients[shape])
                found = what_if(recording, workers=[shape[0]], threads=shape[1])
                rounds[shape].append(Round(found, took_s))
    return rounds


def compare_chunks() -> dict[float, list[Round]]:
    """Return the rounds for each size of chunks, on one thread."""
    rounds: dict[float, list[Round]] = {factor: [] for factor in CHUNKS}
    with ExitStack() as stack:
        client = open_client(stack, 1, 1)
        sized_chunks(1)(client)
        for _ in range(ROUNDS):
            recording = record(sized_chunks(1), client)
            for factor, found in rounds.items():
                took_s = measure(sized_chunks(factor), client)
                found.append(Round(what_if(recording, workers=[1], options=Options(chunks=factor)), took_s))
    return rounds


def open_client(stack: ExitStack, workers: int, threads: int) -> Client:
    cluster = LocalCluster(n_workers=workers, threads_per_worker=threads, dashboard_address=":0")
    stack.enter_context(cluster)
    client: Client = stack.enter_context(Client(cluster, set_as_default=False))
    return client


def record(start: Start, client: Client) -> daskscope.Recording:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run.daskscope"
        with daskscope.record(path, client=client):
            start(client)
        return daskscope.open_recording(path)


def measure(start: Start, client: Client) -> float:
    """Return the seconds that the client waits, without a recorder."""
    began = time.perf_counter()
    start(client)
    return time.perf_counter() - began


def judge(what: str, rounds: list[Round]) -> tuple[Result, bool]:
    """Return the result of the median round. A prediction that was declined in most rounds is not within the limit."""
    answered = sorted((one for one in rounds if one.found.predictions), key=lambda one: one.ratio)
    if 2 * len(answered) <= len(rounds):
        return Result(what, "declined", note=rounds[0].found.reason), False
    one = answered[len(answered) // 2]
    found, predicted = one.found, one.found.predictions[0].wall_us / 1e6
    note = (
        f"predicted {predicted:.2f} s, took {one.took_s:.2f} s; one thread took {found.wall_us / 1e6:.2f} s, "
        f"its replay {found.replayed_us / 1e6:.2f} s; ratios {', '.join(f'{other.ratio:.2f}' for other in answered)}; "
        f"in the range up to {found.predictions[0].max_wall_us / 1e6:.2f} s: {sum(other.is_in_range for other in answered)} of "
        f"{len(answered)}"
    )
    return Result(what, f"{one.ratio:.3f}", note=note), abs(one.ratio - 1) <= TOLERANCE


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
