"""Each worker gets a verdict on why it left, and its last activity is in the recording."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from distributed import KilledWorker, get_worker
from tests.helpers.waiting import until

import daskscope
import daskscope.analytics
from daskscope import Recording

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client


@pytest.fixture(autouse=True)
def importable_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[__name__.count(".")]))


@pytest.fixture
def fresh() -> Iterator[tuple[Any, Any]]:
    """A cluster that a test may break."""
    with (
        LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit="600 MiB"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield cluster, client


def inc(number: int) -> int:
    return number + 1


def warn_and_wait(seconds: float) -> str:
    logging.getLogger("distributed.analysis").warning("the last words of %s", get_worker().name)
    time.sleep(seconds)
    return str(get_worker().address)


def hoard(megabytes: int) -> int:
    """Allocate more and more memory until the worker is killed."""
    kept = []
    for _ in range(megabytes):
        kept.append(bytearray(os.urandom(1024)) * 1024)
        time.sleep(0.002)
    time.sleep(60)
    return len(kept)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def worker_row(recording: Recording, address: str) -> dict[str, Any]:
    table = recording["workers"]
    rows = [row for row in range(table.rows) if table["worker"][row] == address and table["end_us"][row]]
    assert len(rows) == 1
    return {name: table[name][rows[0]] for name in table}


def test_a_worker_killed_from_outside_vanished(fresh: tuple[Any, Any], tmp_path: Path) -> None:
    cluster, client = fresh
    path = tmp_path / "killed.daskscope"
    states = cluster.scheduler.workers
    with daskscope.record(path, client, push_interval=0.3, sample_interval=0.3):
        address, state = next(iter(states.items()))
        until(
            lambda: (
                cluster.scheduler.plugins["daskscope"].recorder.members.workers[address].row.get("agent") == "running"
            )
        )
        results = client.map(inc, range(5), workers=[address], pure=False)
        client.gather(results)
        running = client.submit(warn_and_wait, 60, workers=[address], allow_other_workers=True)
        until(lambda: state.processing)
        # A killed agent loses its last push at most: wait until its warning has arrived.
        plugin = cluster.scheduler.plugins["daskscope"]
        until(lambda: plugin.outbox.kept.get("logs"))
        until(lambda: plugin.outbox.kept.get("samples", 0) > 5)
        pid = state.pid
        os.kill(pid, signal.SIGKILL)
        until(lambda: address not in states)
        client.cancel(running)
        del running
    recording = daskscope.open_recording(path)
    row = worker_row(recording, address)
    assert (row["verdict"], row["pid"]) == ("vanished", pid)
    assert "without a goodbye" in row["evidence"]
    assert row["processing_count"] == 1
    assert row["processing"][0].startswith("warn_and_wait-")
    assert row["lost_count"] == 5
    assert any("the last words" in line for line in messages(recording, address))
    assert address in list(recording["samples"]["worker"])


def messages(recording: Recording, worker: str) -> list[str]:
    table = recording["logs"]
    return [text for text, mine in zip(table["message"], table["worker"], strict=True) if mine == worker]


def test_a_worker_over_its_memory_limit_was_killed_for_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.daskscope"
    settings = {
        "distributed.worker.memory.terminate": 0.7,
        "distributed.worker.memory.pause": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.monitor-interval": "50ms",
        "distributed.scheduler.allowed-failures": 0,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit="400 MiB"
        ) as cluster,
        Client(cluster) as client,
        daskscope.record(path, client, sample_interval=0.3),
    ):
        address = next(iter(cluster.scheduler.workers))
        future = client.submit(hoard, 1000)
        with pytest.raises(KilledWorker):
            future.result()
        until(lambda: address not in cluster.scheduler.workers)
    recording = daskscope.open_recording(path)
    row = worker_row(recording, address)
    assert row["verdict"] == "memory kill"
    assert "iB of resident memory" in row["evidence"]
    assert row["processing_count"] == 1
    # The task does not run again: it counts as one failed task, not as "killed".
    assert list(recording["tasks"]["status"]) == ["error"]
    assert set(recording["tasks"]["worker"]) == set(
        recording["workers"]["worker"][recording["workers"]["verdict"] != ""]
    )
    assert list(recording["exceptions"]["type"]) == ["KilledWorker"]
    assert "Attempted to run task" in recording["exceptions"]["message"][0]
    assert list(recording["exceptions"]["worker"]) == [address]


def test_retired_closed_and_restarted_workers_get_different_verdicts(fresh: tuple[Any, Any], tmp_path: Path) -> None:
    cluster, client = fresh
    path = tmp_path / "ends.daskscope"
    states = cluster.scheduler.workers
    with daskscope.record(path, client):
        retired, closed, restarted = list(states)
        client.retire_workers([retired])
        until(lambda: retired not in states)
        client.run(close_worker, workers=[closed], nanny=False, wait=False)
        until(lambda: closed not in states)
        client.restart()
        until(lambda: restarted not in states)
    recording = daskscope.open_recording(path)
    verdicts = {address: worker_row(recording, address)["verdict"] for address in (retired, closed, restarted)}
    assert verdicts == {retired: "retired", closed: "closed", restarted: "restarted"}
    evidence = [worker_row(recording, address)["evidence"] for address in verdicts]
    assert len(set(evidence)) == 3
    assert all(evidence)
    assert "restart" in list(recording["events"]["kind"])


async def close_worker(dask_worker: Any) -> None:
    await dask_worker.close(reason="asked to go", nanny=True)


def test_workers_that_are_scaled_down_or_closed_with_the_cluster(tmp_path: Path) -> None:
    directory = tmp_path / "life"
    with dask.config.set({"daskscope.directory": str(directory)}):
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
            ) as cluster,
            Client(cluster) as client,
        ):
            daskscope.analytics.register(client)
            first = set(cluster.scheduler.workers)
            cluster.scale(1)
            until(lambda: len(cluster.scheduler.workers) == 1)
            (left,) = cluster.scheduler.workers
            assert client.submit(inc, 1).result() == 2
        recording = daskscope.open_recording(directory)
    (gone,) = first - {left}
    # LocalCluster.scale does not retire workers: it makes the nanny close its worker, as when the cluster closes.
    verdicts = {address: worker_row(recording, address) for address in (gone, left)}
    assert [verdicts[address]["verdict"] for address in (gone, left)] == ["retired", "closed"]
    assert [verdicts[address]["lost_count"] for address in (gone, left)] == [0, 0]
    assert worker_row(recording, gone)["end_us"] < worker_row(recording, left)["end_us"]
    assert list(recording["clusters"]["end_reason"]) == ["closed"]


def test_a_task_that_kills_its_workers_is_an_exception(tmp_path: Path) -> None:
    path = tmp_path / "killer.daskscope"
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        with daskscope.record(path, client), pytest.raises(KilledWorker):
            client.submit(die, pure=False).result()
        recording = daskscope.open_recording(path)
    # The first was killed and ran again; the last failed.
    assert list(recording["tasks"]["status"]) == ["killed", "error"]
    assert set(recording["tasks"]["worker"]) == set(
        recording["workers"]["worker"][recording["workers"]["verdict"] != ""]
    )
    assert list(recording["exceptions"]["type"]) == ["KilledWorker"]
    verdicts = [verdict for verdict in recording["workers"]["verdict"] if verdict]
    assert verdicts == ["vanished", "vanished"]
    assert sum(recording["workers"]["processing_count"]) == 2
