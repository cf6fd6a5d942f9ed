"""How long a computation usually takes: six runs of the same code, and then another one while it runs, judged by our own clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from tests.helpers.hosted import HostedServer
from tests.helpers.services import Hosting
from tests.helpers.waiting import until

from daskscope import analytics

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client

#: On four threads, these tasks take 1.5 s.
TASKS, THREADS, SECONDS = 12, 4, 0.5


def rest(_: int, seconds: float) -> None:
    time.sleep(seconds)


@dataclass
class Watched:
    """One run: its begin and end by our clock, and each reading with the time it was made."""

    began: float
    ended: float = 0.0
    readings: list[tuple[float, dict[str, Any]]] = field(default_factory=list)

    @property
    def duration(self) -> float:
        return self.ended - self.began


class Bench:
    """Runs the same code again and again, and reads the computation that runs as a page does."""

    def __init__(self, server: HostedServer, client: Any) -> None:
        self.server, self.client = server, client
        self.token = server.make_token("mia", "ours", "read")
        self.cluster = client.scheduler_info()["id"]

    def get(self, path: str) -> dict[str, Any]:
        answer = self.server.ask("GET", f"/api/v1/{path}", token=self.token)
        assert answer.status == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def computations(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(f"computations?cluster_id={self.cluster}")["items"]
        return found

    def run(self, seconds: float, tasks: int = TASKS) -> Watched:
        """Run the code, and read its computation until it has ended."""
        known = len(self.computations())
        watched = Watched(time.time())
        futures = self.client.map(rest, range(tasks), seconds=seconds, pure=False)
        while not all(future.done() for future in futures):
            # Followed as by the live view of the cluster, so that the recorder posts at once instead of every five seconds.
            self.server.ask("GET", f"/api/v1/clusters/{self.cluster}/increments", token=self.token)
            when, newest = time.time(), self.computations()
            if len(newest) > known and newest[0]["state"] == "running":
                read = self.get(f"clusters/{self.cluster}/computations/{newest[0]['id']}")
                if read["usual"] and read["state"] == "running":
                    watched.readings.append((when, read["usual"]))
            time.sleep(0.1)
        watched.ended = time.time()
        del futures
        until(lambda: self._is_over(known + 1), "the end of the computation")
        return watched

    def _is_over(self, count: int) -> bool:
        found = self.computations()
        return len(found) == count and all(one["state"] == "finished" for one in found)


@pytest.fixture
def bench(hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with hosted(tmp_path / "data", login=True) as server:
        server.make_account("ours", mia="member")
        monkeypatch.setenv("DASKSCOPE_TOKEN", server.make_token("mia", "ours"))
        options = {
            "n_workers": 2,
            "threads_per_worker": THREADS // 2,
            "processes": False,
            "dashboard_address": None,
            "memory_limit": 0,
        }
        with (
            dask.config.set({
                "daskscope.server": server.url,
                "daskscope.spool.directory": str(tmp_path / "spool"),
                "daskscope.analytics.computation.interval": "200ms",
                "daskscope.analytics.events.interval": "200ms",
            }),
            LocalCluster(**options) as cluster,
            Client(cluster) as client,
        ):  # fmt: skip
            analytics.register(client)
            made = Bench(server, client)
            until(lambda: server.ask("GET", f"/api/v1/clusters/{made.cluster}", token=made.token).status == 200)
            yield made


# Seven runs of 1.5 s and two of about 5 s.
@pytest.mark.timeout(240)
def test_a_slow_run_is_told_from_usual_ones_while_it_runs(bench: Bench) -> None:
    usual = [bench.run(SECONDS) for _ in range(6)]
    own = sorted(run.duration for run in usual)
    # Four runs or fewer are no usual duration. The first one has no earlier run.
    assert any(run.readings for run in usual[1:5])
    assert all(read["state"] == "" and read["left"] is None for run in usual[:5] for _, read in run.readings)

    again = bench.run(SECONDS)
    while not again.readings and len(usual) < 12:
        # On a busy machine, what the recorder posts may arrive after it has ended.
        usual.append(again)
        again = bench.run(SECONDS)
    own = sorted(run.duration for run in usual)
    assert again.readings, "no run was seen while it was running"
    for when, read in again.readings:
        assert read["runs"] == len(usual)
        # On a busy machine this run can be slower, too: also by our clock, up to the way from the scheduler to us.
        assert read["state"] == "" or when - again.began > own[-1] - 0.2
        # The recorder's durations are ours, up to what the client and the scheduler need.
        assert 0.8 * own[0] <= read["median"] <= 1.2 * own[-1]
        assert read["sentence"].startswith("Usually takes ")
    truths = [(again.ended - when, read["left"]) for when, read in again.readings if read["left"]]
    assert truths
    # A second for the way from the scheduler to us.
    assert all(left["low"] - 1 <= true <= left["high"] + 1 for true, left in truths), truths

    # Every thread runs three tasks. Longer tasks where the machine is busy: the slow run takes more than three times as long.
    slow = bench.run(1.1 * own[-1])
    assert slow.duration > 2 * own[-1]
    called = [(when - slow.began, read) for when, read in slow.readings if read["state"] == "slower"]
    assert called, slow.readings
    # Never before it took longer than usual, and always at the end.
    assert all(elapsed > statistics.median(own) for elapsed, _ in called)
    assert slow.readings[-1][1]["state"] == "slower"
    assert all(read["state"] == "slower" for when, read in slow.readings if when - slow.began > 2 * own[-1])
    assert called[-1][1]["sentence"].startswith("Slower than usual: ")

    larger = bench.run(own[-1] / 3, 3 * TASKS)
    assert larger.duration > 2 * own[-1]
    assert larger.readings
    assert {read["state"] for _, read in larger.readings} == {"more tasks"}
    assert larger.readings[-1][1]["sentence"].startswith(
        f"More tasks than usual: {3 * TASKS} instead of {TASKS}. Usually it takes "
    )
