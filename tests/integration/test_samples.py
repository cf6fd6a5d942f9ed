"""Samples of workers, compared with the heartbeats that really came."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster
from tests.helpers.waiting import until

import daskscope


def test_a_worker_that_hangs_has_no_new_samples(tmp_path: Path) -> None:
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        pids = client.run(os.getpid)
        hung, alive = pids
        heard = cluster.scheduler.workers[hung]
        with daskscope.record(tmp_path / "run.daskscope", client, sample_interval=0.25) as made:
            until(lambda: heard.metrics)
            os.kill(pids[hung], signal.SIGSTOP)
            try:
                # Let the last heartbeat arrive and be sampled.
                time.sleep(1)
                last = heard.last_seen
                begin_us = time.time_ns() // 1000
                time.sleep(2)
                assert heard.last_seen == last
                end_us = time.time_ns() // 1000
            finally:
                os.kill(pids[hung], signal.SIGCONT)
            until(lambda: heard.last_seen != last)
            time.sleep(1)
    samples = made.recording["samples"]
    times: dict[str, list[int]] = {}
    for worker, moment in samples.records("worker", "time_us"):
        times.setdefault(worker, []).append(moment)
    during = {worker: [t for t in moments if begin_us < t < end_us] for worker, moments in times.items()}
    assert during.get(hung) == []
    assert during[alive]
    assert during["scheduler"]
    assert any(t > end_us for t in times[hung])
