"""The workload of ``scripts/bench compare``: eight task prefixes of about 1 s in total, one of which can be slowed."""

from __future__ import annotations

import time
from pathlib import Path

from distributed import Client, LocalCluster

import daskscope

#: Tasks of each prefix.
TASKS = 20
#: The prefix that is slowed.
SLOWED = "score"


def load(number: int) -> int:
    time.sleep(0.008)
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


def run_once(client: Client, path: Path, factor: float) -> None:
    """Record one run; ``factor`` is how much work the slowed prefix has."""
    with daskscope.record(path, client, name="compare"):
        loaded = client.map(load, range(TASKS), pure=False)
        parsed = client.map(parse, loaded, pure=False)
        cleaned = client.map(clean, parsed, pure=False)
        chosen = client.map(select, cleaned, pure=False)
        enriched = client.map(enrich, chosen, pure=False)
        scored = client.map(score, enriched, [factor] * TASKS, pure=False)
        merged = client.map(merge, scored, scored[::-1], pure=False)
        client.gather(client.map(store, merged, pure=False))


def record_pool(directory: Path, runs: int, factor: float) -> tuple[list[Path], list[Path]]:
    """Record runs of the code and of the slowed code in turn, and return their files."""
    same, slowed = list[Path](), list[Path]()
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        # The first run pays for imports and connections.
        run_once(client, directory / "warm-up.daskscope", 1.0)
        for number in range(runs):
            for files, name, work in ((same, "same", 1.0), (slowed, "slowed", factor)):
                files.append(directory / f"{name}-{number:02}.daskscope")
                run_once(client, files[-1], work)
    return same, slowed


def _count(steps: int) -> int:
    total = 0
    for step in range(steps):
        total += step & 1
    return total & 1
