"""Progress of real computations, compared with the workload's own clock and counters; and real causes of a standstill."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from distributed.core import Status
from tests.helpers.archive import frame
from tests.helpers.hosted import HostedServer
from tests.helpers.services import Hosting
from tests.helpers.waiting import until

from daskscope import analytics
from daskscope.analysis.running import progress

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client

#: When each task of the workload finished, by its own clock.
FINISHED: list[float] = []
RELEASE = threading.Event()


def rest(_: int, seconds: float) -> None:
    time.sleep(seconds)
    FINISHED.append(time.time())


def wait_for_release(number: int) -> int:
    if number:
        RELEASE.wait(60)
    return number


@pytest.fixture
def server(hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostedServer]:
    with hosted(tmp_path / "data", login=True) as server:
        server.make_account("ours", mia="member")
        monkeypatch.setenv("DASKSCOPE_TOKEN", server.make_token("mia", "ours"))
        with dask.config.set({
            "daskscope.server": server.url,
            "daskscope.spool.directory": str(tmp_path / "spool"),
            "daskscope.analytics.computation.interval": "500ms",
            "daskscope.analytics.events.interval": "500ms",
        }):  # fmt: skip
            yield server


@pytest.fixture
def client(server: HostedServer) -> Iterator[Any]:
    FINISHED.clear()
    RELEASE.clear()
    # Without a memory limit, no memory monitor resumes a paused worker.
    options = {"threads_per_worker": 2, "processes": False, "dashboard_address": None, "memory_limit": 0}
    with LocalCluster(n_workers=2, resources={"GPU": 1}, **options) as cluster, Client(cluster) as client:
        analytics.register(client)
        yield client
        RELEASE.set()


class Watcher:
    """Reads the progress of a cluster as a page does."""

    def __init__(self, server: HostedServer, client: Any) -> None:
        self.server, self.token = server, server.make_token("mia", "ours", "read")
        self.path = f"/api/v1/clusters/{client.scheduler_info()['id']}/progress"
        until(lambda: server.ask("GET", self.path, token=self.token).status == 200, "the first batch")

    def read(self) -> dict[str, Any]:
        answer = self.server.ask("GET", self.path, token=self.token)
        assert answer.status == 200, answer.text
        read: dict[str, Any] = answer.json()
        return read

    def only(self) -> dict[str, Any]:
        items = self.read()["items"]
        return items[0] if items else {}


def test_the_estimate_agrees_with_the_clock_of_the_workload(server: HostedServer, client: Any) -> None:
    watcher, total = Watcher(server, client), 160
    began = time.time()
    futures = client.map(rest, range(total), seconds=0.25, pure=False)
    readings: list[tuple[float, int, dict[str, Any]]] = []
    while len(FINISHED) < total:
        read = watcher.only()
        if read:
            readings.append((time.time(), len(FINISHED), read))
        time.sleep(0.25)
    distributed.wait(futures)

    assert all(read["total"] == total for _, _, read in readings)
    for _, finished, read in readings:
        # The recorder is some seconds behind, and never ahead.
        assert read["done"] <= finished
        assert read["done"] + read["running"] + read["waiting"] == total
        assert read["running"] <= 4
        assert [part["prefix"] for part in read["prefixes"]] == ["rest"]
    # What the workload's own counter predicts at the same moment: other load on the machine may change the speed later.
    estimates = [
        ((total - finished) * (when - began) / finished, read["left"])
        for when, finished, read in readings
        if read["left"] and 20 <= finished <= total - 20
    ]
    assert len(estimates) >= 3
    # The recorder is some seconds behind.
    near = [left["low"] / 2 <= true <= 2 * left["high"] for true, left in estimates]
    assert sum(near) >= 0.6 * len(near), estimates
    until(lambda: watcher.read() == {"items": [], "total": 0}, "the end of the computation")


def test_a_task_that_no_worker_fits_is_stuck(server: HostedServer, client: Any) -> None:
    watcher = Watcher(server, client)
    futures = client.map(rest, range(3), seconds=0.01, resources={"GPU": 2}, pure=False)
    # What the workers offer comes with a later batch than the tasks.
    why = "no worker fits 3 tasks: none offers GPU=2 (3)"
    until(lambda: watcher.only().get("stuck") == why, "the stuck computation")
    found = watcher.only()
    assert (found["waiting"], found["running"], found["left"], found["summary"]) == (3, 0, None, "0 of 3 tasks")
    del futures


def test_a_task_that_runs_much_longer_than_its_prefix_is_stuck(
    server: HostedServer, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LONG_US", 2_000_000)
    watcher = Watcher(server, client)
    futures = client.map(wait_for_release, [0] * 8 + [1], pure=False)
    until(lambda: watcher.only().get("stuck"), "the stuck computation", 60)
    found = watcher.only()
    assert found["stuck"].startswith(f"{futures[-1].key} has been running for ")
    assert (found["done"], found["running"]) == (8, 1)
    RELEASE.set()
    until(lambda: not watcher.read()["items"], "the end of the computation")


def test_a_cluster_without_workers_is_stuck(server: HostedServer, client: Any) -> None:
    watcher = Watcher(server, client)
    client.cluster.scale(0)
    until(lambda: not client.scheduler_info()["workers"], "the workers to leave")
    future = client.submit(rest, 1, seconds=0.01, pure=False)
    until(lambda: watcher.only().get("stuck") == "the cluster has no workers", "the stuck computation")
    del future


def pause(dask_worker: Any) -> None:
    dask_worker.status = Status.paused


def resume(dask_worker: Any) -> None:
    dask_worker.status = Status.running


def test_paused_workers_are_the_cause(server: HostedServer, client: Any) -> None:
    watcher = Watcher(server, client)
    client.run(pause)
    futures = client.map(rest, range(3), seconds=0.01, pure=False)
    cause = "all 2 workers are paused, because their memory is nearly full"
    until(lambda: watcher.only().get("stuck") == cause, "the stuck computation")
    client.run(resume)
    distributed.wait(futures)


def break_transfers(dask_worker: Any) -> None:
    """Make every transfer from a worker fail, as a broken network does."""

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no route to host")

    dask_worker.handlers["get_data"] = fail


def test_failing_transfers_are_the_cause(server: HostedServer, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "NO_WORK_US", 3_000_000)
    watcher = Watcher(server, client)
    first, second = client.scheduler_info()["workers"]
    source = client.submit(bytes, 1_000, workers=[first], pure=False)
    distributed.wait(source)
    client.run(break_transfers, workers=[first])
    future = client.submit(len, source, workers=[second], pure=False)
    until(
        lambda: watcher.only().get("stuck", "").startswith("transfers between workers fail"),
        "the stuck computation",
        60,
    )
    del future


def test_a_computation_is_not_called_slow_once_its_tasks_are_done(hosted: Hosting, tmp_path: Path) -> None:
    now = time.time_ns() // 1000

    def row(number: int, began_s: float, took_s: float, **more: Any) -> dict[str, Any]:
        start = now - round(1e6 * began_s)
        stop = start + round(1e6 * took_s) if took_s else 0
        known = {"code": "x.compute()", "code_line": 0, "state": "done", "tasks": 200, "released": 200}
        return {**known, "computation": f"c{number}", "start_us": start, "stop_us": stop, "seen_us": now, **more}

    def running(sequence: int, **states: int) -> bytes:
        unfinished = {"state": "running", "unfinished": 20, "prefix_states": json.dumps({"rest": states})}
        return frame("computations", [row(9, 60, 0, **unfinished, seen_us=now + sequence)], sequence)

    with hosted(tmp_path / "data") as server:
        cluster = {"cluster": "c", "name": "nightly", "seen_us": now, "start_us": now - 900_000_000, "workers": 1}
        earlier = [row(number, 800 - 100 * number, 5) for number in range(6)]
        server.send(frame("clusters", [{**cluster, "threads": 2}], 0), frame("computations", earlier, 1))

        def read() -> dict[str, Any]:
            found: dict[str, Any] = server.ask("GET", "/api/v1/clusters/c/progress").json()["items"][0]
            return found

        server.send(running(2, released=180, processing=20))
        assert read()["usual"]["state"] == "slower"
        server.send(running(3, released=200))
        assert (read()["usual"], read()["summary"]) == (None, "all 200 tasks done")
