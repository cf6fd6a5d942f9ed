"""The sampling interval is the configured one, and a refused value is reported."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import dask
import distributed
import pytest

import daskscope

LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client
INTERVAL = "distributed.worker.profile.interval"
FLOOR = "daskscope.analytics.profile.floor"


def rest(seconds: float) -> None:
    threading.Event().wait(seconds)


def sampler_of(dask_worker: Any) -> tuple[float, int, float, float]:
    """Return the interval, the ticks and the CPU time of the sampler, and the time."""
    sampler = dask_worker.plugins["daskscope-agent"]._probes.sampler
    return sampler.interval, sampler.ticks, sampler.cpu_s, time.monotonic()


def states_and_intervals(tmp_path: Path, config: dict[str, Any]) -> tuple[list[str], list[float]]:
    path = tmp_path / "run.daskscope"
    options = {
        "n_workers": 1,
        "threads_per_worker": 1,
        "processes": False,
        "dashboard_address": None,
        "memory_limit": 0,
    }
    with dask.config.set(config), LocalCluster(**options) as cluster, Client(cluster) as client:
        with daskscope.record(path, client):
            intervals = [found[0] for found in client.run(sampler_of).values()]
        return list(daskscope.open_recording(path)["workers"]["agent"]), intervals


@pytest.mark.parametrize(
    ("config", "interval"),
    [
        ({}, 0.01),
        ({INTERVAL: "10ms"}, 0.01),
        ({INTERVAL: 40}, 0.04),
        ({INTERVAL: "10ms", FLOOR: "30ms"}, 0.03),
        ({INTERVAL: "50ms", FLOOR: "30ms"}, 0.05),
    ],
)
def test_the_longer_of_both_settings_counts(tmp_path: Path, config: dict[str, Any], interval: float) -> None:
    states, intervals = states_and_intervals(tmp_path, config)

    assert intervals == [pytest.approx(interval)]
    assert states == ["running"]


def test_an_interval_of_dask_that_is_too_short_is_reported_and_not_used(tmp_path: Path) -> None:
    states, intervals = states_and_intervals(tmp_path, {INTERVAL: "1ms"})

    assert intervals == [pytest.approx(0.01)]
    assert states == [f"running, but {INTERVAL} is 1ms, shorter than 10 ms"]


def test_the_sampler_keeps_its_rate_and_its_share_of_a_core(client: Any, tmp_path: Path) -> None:
    with daskscope.record(tmp_path / "run.daskscope", client):
        work = client.map(rest, [3.0] * 4, pure=False)
        time.sleep(0.5)
        before = client.run(sampler_of)
        client.gather(work)
        after = client.run(sampler_of)

    for worker, (interval, ticks, cpu, at) in after.items():
        seconds = at - before[worker][3]
        assert interval == pytest.approx(0.01)
        assert 10 < (ticks - before[worker][1]) / seconds <= 112
        assert (cpu - before[worker][2]) / seconds < 0.0125
