"""Run 300,000 trivial tasks on a LocalCluster: all recorded, none dropped, the event loop never blocked."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import dask.config
from distributed import Client, LocalCluster, wait

import daskscope
from benchmarks.result import Result, at_most, equal

TASKS = 300_000
#: Futures held at a time; more would only slow down the client.
BATCH = 20_000
STALL_MS = 20


def increment(x: int) -> int:
    return x + 1


class Stopwatch:
    """Wraps the plugin's callbacks on the event loop and stores the longest call."""

    def __init__(self, plugin: Any) -> None:
        self.longest: dict[str, float] = {}
        for name in ("flush", "state", "sample", "update_graph", "log_event"):
            setattr(plugin, name, self._timed(name, getattr(plugin, name)))

    def _timed(self, name: str, method: Any) -> Any:
        def timed(*args: Any, **kwargs: Any) -> Any:
            # CPU time of this thread: time lost to other processes or the GIL does not count.
            before = time.thread_time()
            try:
                return method(*args, **kwargs)
            finally:
                self.longest[name] = max(self.longest.get(name, 0.0), (time.thread_time() - before) * 1e3)

        return timed


def run(tasks: int = TASKS) -> list[Result]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run.daskscope"
        with (
            # Workers get all their tasks at once; one at a time would measure 300,000 round trips.
            dask.config.set({"distributed.scheduler.worker-saturation": float("inf")}),
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            with daskscope.record(path, client=client):
                watch = Stopwatch(cluster.scheduler.plugins["daskscope"])
                started = time.perf_counter()
                for first in range(0, tasks, BATCH):
                    wait(client.map(increment, range(min(BATCH, tasks - first)), pure=False))
                seconds = time.perf_counter() - started
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        recording = daskscope.open_recording(path)
        size = path.stat().st_size
    complete = recording.completeness["tasks"]
    longest = max(watch.longest.values())
    detail = ", ".join(f"{name} {value:.1f}" for name, value in sorted(watch.longest.items()))
    return [
        equal(
            f"rows recorded of {tasks:,} tasks",
            recording["tasks"].rows,
            tasks,
            f"{seconds:.0f} s, file {size / 1e6:.1f} MB",
        ),
        equal(
            "rows dropped or missing",
            complete.dropped + complete.missing,
            0,
            f"scheduler process peaked at {peak:.0f} MB with {min(BATCH, tasks):,} futures",
        ),
        at_most(
            "longest turn of ours on the event loop",
            longest,
            STALL_MS,
            " ms",
            f"CPU of the loop's thread, ms: {detail}",
        ),
    ]
