"""Measure the cost of the agent in a worker with two busy threads, and check that its profile finds the hot line."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster, wait

import daskscope
from benchmarks.result import Result, at_most, equal

SECONDS = 20
HOT_LINE = "total += value * value"


def busy(seed: int, seconds: float) -> float:
    total = 0.0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for value in range(20_000):
            total += value * value
    return total + seed


def spent(dask_worker: Any) -> dict[str, float]:
    """Return the CPU seconds of the sampler and of the agent's own thread so far."""
    agent = dask_worker.plugins["daskscope-agent"]
    sampler = agent._probes.sampler
    return {
        "cpu": sampler.cpu_s,
        "looks": float(sampler.ticks),
        "samples": float(sampler.samples),
        "wall": time.monotonic(),
    }


def run() -> list[Result]:
    hot = next(
        number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.strip() == HOT_LINE
    )
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run.daskscope"
        with (
            LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster,
            Client(cluster) as client,
            daskscope.record(path, client=client),
        ):
            wait(client.map(busy, range(2), seconds=1, pure=False))
            before = next(iter(client.run(spent).values()))
            wait(client.map(busy, range(2), seconds=SECONDS, pure=False))
            after = next(iter(client.run(spent).values()))
        profiles = daskscope.open_recording(path)["profiles"]
    leaves: dict[str, int] = {}
    for stack, count in zip(profiles["stack"], profiles["count"], strict=True):
        if stack:
            leaves[stack[-1]] = leaves.get(stack[-1], 0) + int(count)
    _, function, line = max(leaves, key=lambda leaf: leaves[leaf]).split("\t")
    cost = {name: after[name] - before[name] for name in before}
    share = 100 * cost["cpu"] / cost["wall"]
    note = f"{cost['looks'] / cost['wall']:.0f} looks a second, {1e6 * cost['cpu'] / max(cost['samples'], 1):.0f} µs a sample"
    hits = np.sum([count for leaf, count in leaves.items() if leaf.endswith(f"\t{hot}")])
    return [
        at_most("worker agent with two busy threads, of one core", share, 1, " %", note),
        equal(
            "line the profile names as the hottest",
            int(line),
            hot,
            f"{function}, {hits} of {sum(leaves.values())} samples",
        ),
    ]
