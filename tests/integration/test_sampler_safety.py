"""Sampling stacks must not kill workers: on CPython 3.11 and 3.12 a sampler thread did, within seconds of this workload."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from distributed import Client, LocalCluster, wait

import daskscope

SECONDS = 60.0


def short(x: int) -> int:
    return sum(range(300)) + x


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_workers_survive_being_sampled_under_many_short_tasks(tmp_path: Path) -> None:
    # Not above: every test process imports this file.
    import dask.array as da

    path = tmp_path / "run.daskscope"
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        pids = set(client.run(os.getpid).values())
        with daskscope.record(path, client):
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                wait(client.map(short, range(400), pure=False))
                x = da.random.default_rng(0).random((1000, 1000), chunks=(200, 200))
                (x + x.T).sum().compute()
        assert set(client.run(os.getpid).values()) == pids
    assert daskscope.open_recording(path)["profiles"].rows > 0
