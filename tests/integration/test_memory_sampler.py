"""``MemorySampler`` has the same calls and results as Dask's own, and more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from distributed import Client, LocalCluster
from distributed.diagnostics.memory_sampler import MemorySampler as DaskMemorySampler

import daskscope


@pytest.fixture
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_samples_agree_with_dasks_own(client: Client) -> None:
    ours, theirs = daskscope.MemorySampler(), DaskMemorySampler()
    with ours.sample("run"), theirs.sample("run"):
        held = client.map(lambda _: bytes(50_000_000), range(2), pure=False)
        client.gather(client.map(len, held))
        time.sleep(3)
    (ours_last, dask_last) = ours.samples["run"][-1], theirs.samples["run"][-1]
    assert abs(ours_last[0] - dask_last[0]) < 2
    assert abs(ours_last[1] - dask_last[1]) < 0.2 * dask_last[1]
    assert len(ours.samples["run"]) >= 3
    managed = ours.series("run", "managed")
    assert max(size for _, size in managed) >= 100_000_000
    workers = ours.workers("run")
    assert len(workers) == 2 and all(series for series in workers.values())


def test_series_are_compared_in_pandas(client: Client) -> None:
    sampler = daskscope.MemorySampler()
    for label in ("first", "second"):
        with sampler.sample(label, interval=0.25):
            client.submit(time.sleep, 1, pure=False).result()
    aligned = sampler.to_pandas(align=True)
    assert list(aligned.columns) == ["first", "second"]
    assert aligned.index[0].total_seconds() == 0 and aligned["first"].notna().sum() >= 2
    assert sampler.to_pandas().index.is_monotonic_increasing


def test_a_very_short_block_has_a_sample(client: Client) -> None:
    sampler = daskscope.MemorySampler()
    with sampler.sample("short"):
        pass
    assert len(sampler.samples["short"]) >= 1


def test_an_asynchronous_client() -> None:
    async def run() -> daskscope.MemorySampler:
        async with (
            LocalCluster(n_workers=1, processes=False, dashboard_address=None, asynchronous=True) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            sampler = daskscope.MemorySampler()
            async with sampler.sample("run"):
                await client.submit(time.sleep, 0.5)
            return sampler

    assert asyncio.run(run()).samples["run"]


def test_an_unknown_measure_is_refused(client: Client) -> None:
    with pytest.raises(daskscope.DaskscopeError, match="process, managed"):
        daskscope.MemorySampler().sample("run", measure="nonsense")
