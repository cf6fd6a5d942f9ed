"""Hundreds of thousands of tasks are all recorded, none dropped. Takes minutes; ``scripts/bench volume`` prints the figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dask.config
import pytest
from distributed import Client, LocalCluster, wait

import daskscope
from daskscope.model.recording import Completeness, Recording

TASKS = 300_000
BATCH = 20_000


def increment(x: int) -> int:
    return x + 1


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_one_of_300_000_tasks_is_recorded(tmp_path: Path, opened: Callable[[Path], Recording]) -> None:
    path = tmp_path / "run.daskscope"
    with (
        # Workers get all their tasks at once: one at a time takes ten minutes of round trips.
        dask.config.set({"distributed.scheduler.worker-saturation": float("inf")}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
        daskscope.record(path, client),
    ):
        # One graph of all of them is 16 MB, of which Dask warns.
        for _ in range(TASKS // BATCH):
            wait(client.map(increment, range(BATCH), pure=False))
    recording = opened(path)
    assert recording.completeness["tasks"] == Completeness(rows=TASKS)
    assert len(set(recording["tasks"]["key"])) == TASKS
