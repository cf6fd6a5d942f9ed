"""The number of workers that adaptive scaling wants is recorded, and its reply is unchanged."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

import distributed
from tests.helpers.waiting import until

import daskscope

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client


def test_the_worker_target_is_recorded_whenever_it_changes(tmp_path: Path) -> None:
    cluster = LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=None, memory_limit=0)
    with cluster, Client(cluster) as client:
        before = cluster.scheduler.handlers["adaptive_target"]
        with daskscope.record(tmp_path / "scaled.daskscope", client=client):
            cluster.adapt(minimum=0, maximum=2, interval="50ms", target_duration="100ms", wait_count=2)
            futures = client.map(lambda _: time.sleep(0.2), range(8), pure=False)
            distributed.wait(futures, timeout=60)
            del futures
            until(lambda: len(cluster.scheduler.workers) == 0, "that the workers are given back", 60)
        assert cluster.scheduler.handlers["adaptive_target"] == before

    events = daskscope.open_recording(tmp_path / "scaled.daskscope")["events"]
    kinds, details = events["kind"].tolist(), events["detail"].tolist()
    wanted = [json.loads(detail)["wanted"] for kind, detail in zip(kinds, details) if kind == "wanted-workers"]
    assert max(wanted) >= 2, "work for more than two seconds, to be done within a tenth of one"
    assert wanted[-1] == 0
    assert all(one != other for one, other in itertools.pairwise(wanted))
