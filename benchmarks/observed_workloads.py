"""Workloads of ``scripts/bench accuracy`` whose truth comes from an observer: psutil, a status log, or a counter in the workers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
from distributed import wait

from benchmarks.accuracy import Lab, Said, workload
from benchmarks.tasks import (
    add,
    count_received,
    hoard,
    hold_memory,
    link,
    log_status,
    read_late,
    release,
    rest,
)
from benchmarks.waiting_workloads import check_compute
from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.resources import shuffled
from daskscope.analysis.time.critical_path import critical_path
from daskscope.report.document import peak


@workload(n_workers=2, threads_per_worker=2)
def a_chain_of_tasks(lab: Lab) -> Callable[[Said], None]:
    chain = [lab.client.submit(link, seconds=0.4, key="chain-0")]
    for number in range(1, 6):
        chain.append(lab.client.submit(link, chain[-1], seconds=0.4, key=f"chain-{number}"))
    side = lab.client.map(rest, [0.1] * 12, what="side", pure=False)
    lab.client.submit(add, chain[-1], *side, key="last-0").result()

    def compare(said: Said) -> None:
        path = critical_path(said.recording)
        lab.number("steps on the critical path", 7, len(path.steps), 0, "")
        lab.text("first step", "chain-0", path.steps[0].key)
        lab.number("compute time on the critical path", lab.wall("chain"), path.compute_us / 1e6, 0.05)
        lab.number("lower bound of the run time", lab.wall("chain"), path.bound_us / 1e6, 0.05)

    return compare


@workload(
    n_workers=1,
    threads_per_worker=1,
    memory_limit="1000MB",
    config={
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": 0.5,
        "distributed.worker.memory.terminate": False,
    },
)
def a_paused_worker(lab: Lab) -> Callable[[Said], None]:
    lab.client.run(log_status)
    lab.client.submit(hoard, 500_000_000, pure=False).result()
    scheduler: Any = lab.cluster.scheduler
    while not any(worker.status.name == "paused" for worker in scheduler.workers.values()):
        time.sleep(0.02)
    waiting = lab.client.map(rest, [0.2] * 3, pure=False)
    time.sleep(3)
    lab.client.run(release)
    lab.client.gather(waiting)

    def compare(said: Said) -> None:
        lab.number("idle, worker paused", lab.wall("paused"), said.idle("paused"), 0.2)

    return compare


@workload(threads_per_worker=1)
def tasks_that_wait_for_files(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(read_late, [0.4] * 10, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        lab.number("waiting for files", lab.wall(), said.waiting("file"), 0.1 * lab.wall())

    return compare


@workload()
def bytes_of_a_shuffle(lab: Lab) -> Callable[[Said], None]:
    import dask
    import dask.dataframe as dd
    import pandas as pd

    lab.client.run(count_received)
    frame = pd.DataFrame({"k": np.arange(1_000_000) % 997, "v": np.random.default_rng(0).random(1_000_000)})
    with dask.config.set({"dataframe.shuffle.method": "p2p"}):
        dd.from_pandas(frame, npartitions=16).shuffle("k").v.sum().compute()

    def compare(said: Said) -> None:
        truth = lab.cpu("received") / 1e6
        lab.number("sent by P2P", truth, shuffled(said.recording) / 1e6, 0.05 * truth, "MB")

    return compare


@workload(n_workers=2, threads_per_worker=1, memory_limit="2GB")
def peak_memory_of_the_cluster(lab: Lab) -> Callable[[Said], None]:
    processes = [psutil.Process(pid) for pid in lab.client.run(os.getpid).values()]
    peaks, stop = [0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.1):
            peaks.append(sum(process.memory_info().rss for process in processes))

    observer = threading.Thread(target=watch)
    observer.start()
    # The workers hold the memory one after the other: the sum of their own peaks is larger than any moment.
    first, second = lab.client.scheduler_info()["workers"]
    for worker in (first, second):
        wait([lab.client.submit(hold_memory, 300_000_000, workers=[worker], pure=False)])
    time.sleep(1)
    stop.set()
    observer.join()

    def compare(said: Said) -> None:
        bins = Bins.over(said.facts.start_us, said.facts.stop_us)
        lab.number("peak memory", max(peaks) / 1e6, peak(said.recording, bins, "process") / 1e6, 30, "MB")

    return compare
