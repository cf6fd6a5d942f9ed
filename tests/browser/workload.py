"""A few seconds of real work with data for every view. Run as a program: workload.py FILE.

It runs in a subprocess because Playwright keeps an event loop running in the test process.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import dask.array as da
import dask.config
import distributed
import pandas as pd
from dask.dataframe import from_pandas
from distributed import span, wait
from distributed.metrics import context_meter

import daskscope

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client


def spin(number: int) -> int:
    """Compute for 60 ms, to have samples in the profile."""
    stop = time.perf_counter() + 0.06
    total = number
    while time.perf_counter() < stop:
        total += sum(range(200))
    return total


def read_events(number: int) -> int:
    with context_meter.meter("my-reader"):
        time.sleep(0.05)
    context_meter.digest_metric("my-reader", 100 + number, "events")
    return number


def divide(number: int) -> float:
    return number / 0


def flaky(place: str) -> str:
    """Fail the first time."""
    try:
        os.close(os.open(place, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return "done"
    raise ConnectionError("the storage did not answer")


def die() -> None:
    """Kill the worker, so that its results are lost."""
    os._exit(1)


def conclude(number: int) -> int:
    """Run after the worker is lost, so that one task prefix has lost nothing.

    If that worker had the end of the array and of the shuffle, everything before is computed again, and all other prefixes have.
    """
    return number


def work(client: Any, scratch: str) -> None:
    kept = [client.map(spin, range(24), pure=False)]
    wait(kept)
    with span("reading"):
        kept.append(client.map(read_events, range(12)))
        wait(kept)
    with span("analysis"):
        frame = pd.DataFrame({"name": [f"n{number % 50}" for number in range(20_000)], "value": range(20_000)})
        shuffled = from_pandas(frame, npartitions=6).shuffle("name", npartitions=5)
        kept.append(shuffled.groupby("name").value.sum().persist())
        with span("array"):
            x = da.random.random((1500, 1500), chunks=(500, 500))
            kept.append((x @ x.T).sum(axis=0).persist())
        wait(kept)
    kept.append(client.submit(flaky, scratch, retries=2))
    failing = client.map(divide, range(3))
    wait([*kept, *failing])
    victim = next(iter(client.who_has(kept[0][:1]).values()))
    client.run(die, workers=list(victim), on_error="ignore")
    # A task that is sent to the victim before the scheduler knows that it is gone would be lost as well.
    while set(victim) & set(client.scheduler_info()["workers"]):
        time.sleep(0.01)
    wait([*kept, *(client.submit(spin, number, pure=False) for number in range(100, 112))])
    wait(client.submit(conclude, 1))


def main(path: str) -> None:
    # Fork the workers from one process that has imported distributed.
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    with (
        LocalCluster(n_workers=3, threads_per_worker=2, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        # Tasks begin with the recording, also on a busy machine: tests click into the first part of the time.
        client.wait_for_workers(3)
        wait([client.submit(spin, 0, workers=[worker], pure=False) for worker in client.scheduler_info()["workers"]])
        with daskscope.record(path, name="browser tests"):
            work(client, f"{path}.flaky")


if __name__ == "__main__":
    main(sys.argv[1])
