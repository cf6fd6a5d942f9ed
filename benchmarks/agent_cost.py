"""Measure the cost of the agent in a worker with two busy threads, and check that its profile finds the hot line.

The sampler measures itself. All that the agent does is measured from outside: the CPU time of a worker whose two threads wait, with
and without a recording. It includes the sampler of the event loop (on Python 3.11), reading the kernel, draining and pushing.
"""

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


def rest(seconds: float) -> None:
    time.sleep(seconds)


def process_share(client: Client) -> float:
    """Return the CPU time of the worker's process while its two threads wait, in percent of a core."""
    (before,) = client.run(time.process_time).values()
    start = time.monotonic()
    wait(client.map(rest, [SECONDS / 2] * 2, pure=False))
    (after,) = client.run(time.process_time).values()
    return float(100 * (after - before) / (time.monotonic() - start))


def spent(dask_worker: Any) -> dict[str, float]:
    """Return the CPU seconds and the number of samples of the sampler so far."""
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
        ):
            process_share(client)
            bare = process_share(client)
            with daskscope.record(path, client=client):
                wait(client.map(busy, range(2), seconds=1, pure=False))
                before = next(iter(client.run(spent).values()))
                wait(client.map(busy, range(2), seconds=SECONDS, pure=False))
                after = next(iter(client.run(spent).values()))
            with daskscope.record(Path(directory) / "waiting.daskscope", client=client):
                recorded = process_share(client)
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
        at_most("sampler of the worker agent with two busy threads, of one core", share, 1, " %", note),
        at_most(
            "all of the worker agent with two waiting threads, of one core",
            recorded - bare,
            # The samplers of tasks and of the event loop limit themselves to 1 % and 0.5 %.
            2,
            " %",
            f"process {recorded:.2f} % with and {bare:.2f} % without a recording",
        ),
        equal(
            "line the profile names as the hottest",
            int(line),
            hot,
            f"{function}, {hits} of {sum(leaves.values())} samples",
        ),
    ]
