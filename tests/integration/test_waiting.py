"""Why tasks waited, on real clusters; the tasks themselves measure how long."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

import daskscope
from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.summary import extent
from daskscope.analysis.time.breakdown import Breakdown, breakdown


def burn_in_a_pool(seconds: float) -> tuple[float, float]:
    """Compute in a thread of its own, and return how long the task waited and how much CPU the thread used."""
    import numpy as np

    numbers = np.ones(100_000)

    def burn() -> float:
        stop = time.thread_time() + seconds
        while time.thread_time() < stop:
            np.sqrt(numbers)
        return time.thread_time()

    start = time.perf_counter()
    with ThreadPoolExecutor(1) as pool:
        cpu = pool.submit(burn).result()
    return time.perf_counter() - start, cpu


def rest_in_a_pool(seconds: float) -> tuple[float, float]:
    start = time.perf_counter()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, seconds).result()
    return time.perf_counter() - start, 0.0


def run(function: Any, path: Path) -> tuple[Breakdown, list[tuple[float, float]]]:
    options: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client, daskscope.record(path, client) as made:
        truth = client.gather(client.map(function, [0.4] * 5, pure=False))
    return breakdown(made.recording, Bins.over(*extent(made.recording))), truth


def test_waiting_for_a_helper_thread_that_computes(tmp_path: Path) -> None:
    found, truth = run(burn_in_a_pool, tmp_path / "run.daskscope")
    wall, cpu = (sum(column) for column in zip(*truth, strict=True))
    assert cpu < 1.35 * found.waiting_us["native"] / 1e6
    # On a busy machine the thread itself waits for a core.
    assert sum(found.waiting_us.values()) / 1e6 == pytest.approx(wall, rel=0.2)
    assert found.waiting_us["lock"] < 0.2 * sum(found.waiting_us.values())


def test_waiting_for_a_helper_thread_that_rests(tmp_path: Path) -> None:
    found, truth = run(rest_in_a_pool, tmp_path / "run.daskscope")
    assert found.waiting_us["blocked"] / 1e6 == pytest.approx(sum(wall for wall, _ in truth), rel=0.2)
    assert found.waiting_us["native"] < 0.2 * found.waiting_us["blocked"]
