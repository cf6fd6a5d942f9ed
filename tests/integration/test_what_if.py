"""Predictions of a real computation: never faster than the work that the workload knows to be necessary."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest

import daskscope

#: Tasks, and the least time that each takes: it sleeps.
TASKS, ASKED_S = 12, 0.2

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client


def rest(seconds: float) -> float:
    """Sleep, and return how long it took by this thread's own clock."""
    began = time.perf_counter()
    time.sleep(seconds)
    return time.perf_counter() - began


def total(slept: list[float]) -> float:
    return sum(slept)


def delay_s(dask_worker: Any) -> float:
    """Return the difference of the scheduler's clock that the worker estimates, and adds to the times of its tasks."""
    delay: float = abs(dask_worker.scheduler_delay)
    return delay


@pytest.fixture
def client() -> Iterator[Any]:
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def test_a_real_computation_is_predicted(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.daskscope"
    client.submit(rest, 0).result()
    delays = list(client.run(delay_s).values())
    with daskscope.record(path):
        began = time.perf_counter()
        slept = client.submit(total, client.map(rest, [ASKED_S] * TASKS, pure=False)).result()
        waited = time.perf_counter() - began
        delays += client.run(delay_s).values()

    found = daskscope.what_if(path, workers=[1, 3, 12, 24])

    if found.reason:
        # On a busy machine the run took much longer than its tasks, also by its own clocks: then a refusal is right.
        assert "would not be reliable" in found.reason
        assert waited > 1.15 * slept
        return
    assert (found.workers, found.threads) == (1, 1)
    # Both clocks are the same one here. On a busy machine, the estimate is some tens of milliseconds off.
    assert found.wall_us / 1e6 <= waited + sum(delays)
    # Not the measured sleep: on a busy machine it has waits for a core, which a prediction may leave out. They are sampled, so a
    # twentieth of the time may be left out too much.
    bounds = {workers: 0.95 * TASKS * ASKED_S / min(workers, TASKS) for workers in (1, 3, 12, 24)}
    times = {prediction.workers: prediction.wall_us / 1e6 for prediction in found.predictions}
    assert [workers for workers in bounds if times[workers] < bounds[workers]] == []
    assert times[1] > times[3] > times[12]
    assert found.knee == TASKS
    assert found.prefixes[0] == "rest"


def test_without_dependencies_in_the_recording_there_is_no_prediction(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.daskscope"
    with daskscope.record(path, edges=False):
        client.submit(total, client.map(rest, [0.01] * 3, pure=False)).result()

    assert daskscope.what_if(path).reason == "Dependencies between tasks were not recorded."
