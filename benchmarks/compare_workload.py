"""The workload of ``scripts/bench compare``: eight task prefixes of about 1 s in total, two of which can be slowed."""

from __future__ import annotations

import time
from pathlib import Path

from distributed import Client, LocalCluster

import daskscope

#: Tasks of each prefix.
TASKS = 20
#: The prefixes that are slowed: one computes, one sleeps.
COMPUTING, WAITING = "score", "load"


def load(number: int, factor: float) -> int:
    time.sleep(0.008 * factor)
    return number


def parse(number: int) -> int:
    return number + _count(60_000)


def clean(number: int) -> int:
    return number + _count(80_000)


def select(number: int) -> int:
    return number + _count(40_000)


def enrich(number: int) -> int:
    time.sleep(0.003)
    return number + _count(40_000)


def score(number: int, factor: float) -> int:
    return number + _count(round(100_000 * factor))


def merge(left: int, right: int) -> int:
    return left + right + _count(50_000)


def store(number: int) -> int:
    time.sleep(0.005)
    return number


def run_once(client: Client, path: Path, computing: float = 1.0, waiting: float = 1.0) -> None:
    """Record one run; the factors are how long the two slowed prefixes take."""
    with daskscope.record(path, client, name="compare"):
        loaded = client.map(load, range(TASKS), [waiting] * TASKS, pure=False)
        parsed = client.map(parse, loaded, pure=False)
        cleaned = client.map(clean, parsed, pure=False)
        chosen = client.map(select, cleaned, pure=False)
        enriched = client.map(enrich, chosen, pure=False)
        scored = client.map(score, enriched, [computing] * TASKS, pure=False)
        merged = client.map(merge, scored, scored[::-1], pure=False)
        client.gather(client.map(store, merged, pure=False))


def record_pool(directory: Path, runs: int, factor: float) -> dict[str, list[Path]]:
    """Record runs of the code, and of the code with each of the slowed prefixes, in turn; return their files."""
    variants = {"": (1.0, 1.0), COMPUTING: (factor, 1.0), WAITING: (1.0, factor)}
    files = {name: list[Path]() for name in variants}
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        # The first run pays for imports and connections.
        run_once(client, directory / "warm-up.daskscope")
        for number in range(runs):
            for name, factors in variants.items():
                files[name].append(directory / f"{name or 'same'}-{number:02}.daskscope")
                run_once(client, files[name][-1], *factors)
    return files


def _count(steps: int) -> int:
    total = 0
    for step in range(steps):
        total += step & 1
    return total & 1
