"""Workloads of ``scripts/bench accuracy`` with idle, lost and unusual work, each with its own record of what happened."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from distributed import Client, wait

from benchmarks.accuracy import Lab, Said, workload
from benchmarks.tasks import (
    Counter,
    add,
    broken,
    burn,
    fail_once,
    first_slow,
    io_counters_of_worker,
    leave,
    make,
    metered,
    outer,
    rest,
    total,
)
from benchmarks.waiting_workloads import check_compute


@workload()
def a_pause_in_the_client(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(burn, [0.2] * 8, pure=False))
    time.sleep(3)
    lab.client.gather(lab.client.map(burn, [0.2] * 8, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)
        lab.number("idle, nothing submitted", 3 * 4, said.idle("nothing submitted"), 1.6)

    return compare


@workload()
def one_long_task(lab: Lab) -> Callable[[Said], None]:
    lab.client.submit(rest, 4, pure=False).result()

    def compare(said: Said) -> None:
        lab.number("idle, too few tasks", 3 * 4, said.idle("too few tasks"), 1.0)
        lab.text("outcome", "finished", said.outcome.state)

    return compare


@workload()
def tasks_restricted_to_one_worker(lab: Lab) -> Callable[[Said], None]:
    (address, *_) = lab.client.scheduler_info()["workers"]
    lab.client.gather(lab.client.map(rest, [0.4] * 16, workers=[address], pure=False))

    def compare(said: Said) -> None:
        took = 0.4 * 16 / 2
        lab.number("idle while tasks wait at another worker", 2 * took - 0.8, said.idle("elsewhere"), 1.0)

    return compare


@workload()
def a_task_that_no_worker_can_run(lab: Lab) -> Callable[[Said], None]:
    future = lab.client.submit(rest, 0.1, resources={"GPU": 1}, pure=False)
    time.sleep(4)
    future.cancel()
    time.sleep(0.5)

    def compare(said: Said) -> None:
        lab.number("idle, no worker can run the task", 4 * 4, said.idle("cannot run"), 3.0)

    return compare


@workload(n_workers=0)
def no_workers(lab: Lab) -> Callable[[Said], None]:
    future = lab.client.submit(rest, 0.2, pure=False)
    time.sleep(3)
    lab.cluster.scale(1)
    future.result()

    def compare(said: Said) -> None:
        lab.number("time without workers at least", 3.0, min(3.0, said.facts.split.idle.no_workers_us / 1e6), 0.3)

    return compare


@workload(n_workers=3, threads_per_worker=1)
def a_killed_worker(lab: Lab) -> Callable[[Said], None]:
    futures = lab.client.map(rest, [1.5] * 6, pure=False)
    time.sleep(1.0)
    pid = next(iter(lab.client.run(os.getpid).values()))
    os.kill(pid, signal.SIGKILL)
    lost = time.time() - max(lab.begun(pid))
    lab.client.gather(futures)

    def compare(said: Said) -> None:
        killed = [s for s in said.recording["tasks"]["status"].tolist() if s == "killed"]
        lab.number("killed executions", 1, len(killed), 0, "")
        lab.number("lost time", lost, said.seconds("failed"), 0.3)
        lab.text("outcome", "finished", said.outcome.state)
        lab.text("first finding", "lost worker", said.first)

    return compare


@workload(n_workers=2, threads_per_worker=1)
def lost_results(lab: Lab) -> Callable[[Said], None]:
    held = lab.client.map(rest, [0.3] * 10, pure=False)
    wait(held)
    address = next(iter(lab.client.scheduler_info()["workers"]))
    here = [f for f in held if address in (lab.client.who_has([f]) or {}).get(f.key, ())]
    pid = lab.client.run(os.getpid, workers=[address])[address]
    os.kill(pid, signal.SIGKILL)
    time.sleep(1)
    lab.client.gather(held)

    def compare(said: Said) -> None:
        lab.number("recomputed results", len(here), said.facts.split.recomputed, 0, "")
        lab.number("lost time", 0.3 * len(here), said.seconds("failed"), 0.2)
        lab.text("first finding", "lost worker", said.first)

    return compare


@workload()
def the_same_twice(lab: Lab) -> Callable[[Said], None]:
    for _ in range(2):
        futures = lab.client.map(rest, [0.3, 0.31, 0.32])
        lab.client.gather(futures)
        del futures
        time.sleep(0.5)

    def compare(said: Said) -> None:
        lab.number("recomputed results", 0, said.facts.split.recomputed, 0, "")

    return compare


@workload(n_workers=1, threads_per_worker=2)
def cancelled_tasks(lab: Lab) -> Callable[[Said], None]:
    futures = lab.client.map(rest, [3] * 2, pure=False)
    time.sleep(1.5)
    lab.client.cancel(futures)
    time.sleep(3)

    def compare(said: Said) -> None:
        lab.number("lost time", lab.wall(), said.seconds("failed"), 0.25 * lab.wall())
        lab.text("headline", "Cancelled", said.outcome.headline.split()[0])

    return compare


@workload(threads_per_worker=1)
def a_restart(lab: Lab) -> Callable[[Said], None]:
    futures = lab.client.map(rest, [5] * 2, pure=False)
    time.sleep(2)
    lab.client.restart()
    del futures
    lab.client.gather(lab.client.map(rest, [0.3] * 4, pure=False))

    def compare(said: Said) -> None:
        lab.number("lost time", 2 * 2, said.seconds("failed"), 1.2)

    return compare


@workload(threads_per_worker=1, n_workers=1)
def an_actor(lab: Lab) -> Callable[[Said], None]:
    actor: Any = lab.client.submit(Counter, actor=True).result()
    for _ in range(5):
        actor.work(0.4).result()

    def compare(said: Said) -> None:
        check_compute(lab, said)

    return compare


@workload(threads_per_worker=1, n_workers=1)
def an_actor_beside_tasks(lab: Lab) -> Callable[[Said], None]:
    actor: Any = lab.client.submit(Counter, actor=True).result()
    naps = lab.client.map(rest, [0.5] * 6, pure=False)
    actor.work(2.5).result()
    lab.client.gather(naps)

    def compare(said: Said) -> None:
        beside = said.facts.split.actors_beside_us / 1e6
        lab.number("waiting, asleep or in native code", lab.wall("task"), said.waiting("blocked"), 0.1)
        lab.number("waiting for library threads", 0, said.waiting("native"), 0.1)
        computed = said.seconds("cpu", "noncpu") + beside
        lab.number("compute time in threads and beside them", lab.wall(), computed, 0.15)

    return compare


@workload(n_workers=1, threads_per_worker=2)
def tasks_that_submit_tasks(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(outer, [0.5, 0.5], pure=False))

    def compare(said: Said) -> None:
        computed = said.seconds("cpu", "noncpu") + said.facts.split.seceded_us / 1e6
        lab.number("compute time in threads and after seceding", lab.wall(), computed, 0.05 * lab.wall() + 0.2)
        at_most = max(lab.wall("task"), 0.0) + lab.wall("outer")
        lab.number("thread time is not exceeded", 0, max(0.0, said.seconds("cpu", "noncpu") - at_most), 0.1)

    return compare


@workload(threads_per_worker=1)
def a_custom_meter(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(metered, [1.0] * 4, pure=False))

    def compare(said: Said) -> None:
        check_compute(lab, said)

    return compare


@workload(threads_per_worker=1)
def retried_tasks(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(fail_once, [0.5] * 4, retries=3, pure=False))

    def compare(said: Said) -> None:
        # A failing task also occupies its thread while Dask packs its traceback.
        lab.number("lost time", 2 * 0.5, said.seconds("failed"), 0.7)
        lab.text("outcome", "finished", said.outcome.state)

    return compare


@workload()
def a_failure_with_dependents(lab: Lab) -> Callable[[Said], None]:
    future = lab.client.submit(broken, 0.3, pure=False)
    dependents = lab.client.map(add, [future] * 5, pure=False)
    wait(dependents)

    def compare(said: Said) -> None:
        lab.text("outcome", "failed", said.outcome.state)
        lab.number("errors", 1, len(said.facts.errors), 0, "")
        lab.text("first finding", "error", said.first)

    return compare


@workload()
def one_of_two_clients_fails(lab: Lab) -> Callable[[Said], None]:
    with Client(lab.cluster, set_as_default=False) as other:
        good = lab.client.map(rest, [0.5] * 8, pure=False)
        time.sleep(0.2)
        bad = other.submit(broken, 0.2, pure=False)
        wait([bad])
        lab.client.gather(good)

    def compare(said: Said) -> None:
        states = sorted(said.recording["computations"]["state"].tolist())
        lab.text("states of the computations", "['done', 'erred']", str(states))

    return compare


@workload(
    memory_limit="350MB",
    n_workers=1,
    # Only the limit for spilling is wanted: a nanny that kills the worker loses what it counted.
    config={"distributed.worker.memory.pause": False, "distributed.worker.memory.terminate": False},
)
def spilling(lab: Lab) -> Callable[[Said], None]:
    held = lab.client.map(np.random.default_rng(0).random, [2_000_000] * 25, pure=False)
    wait(held)
    time.sleep(1)
    (written,) = (counters.write_chars / 1e6 for counters in lab.client.run(io_counters_of_worker).values())
    lab.client.submit(len, held[0]).result()

    def compare(said: Said) -> None:
        spilled = int(said.recording["samples"]["spilled"].max()) / 1e6
        lab.number("spilled to disk", written, spilled, 0.2 * written, "MB")
        lab.text("disk time is shown", "yes", "yes" if said.seconds("disk") > 0 else "no")

    return compare


@workload(threads_per_worker=1)
def transfers(lab: Lab) -> Callable[[Said], None]:
    first, second = lab.client.scheduler_info()["workers"]
    made = lab.client.map(make, [4_000_000] * 10, workers=[first], pure=False)
    wait(made)
    lab.client.gather(lab.client.map(total, made, workers=[second], pure=False))

    def compare(said: Said) -> None:
        table = said.recording["transfers"]
        incoming = [n for n, d in zip(table["nbytes"].tolist(), table["direction"], strict=True) if d == "incoming"]
        lab.number("transferred", 10 * 32, sum(incoming) / 1e6, 3.2, "MB")

    return compare


@workload()
def short_tasks(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(add, range(3_000), pure=False))

    def compare(said: Said) -> None:
        lab.number("tasks", 3_000, said.recording["tasks"].rows, 0, "")
        lab.text(
            "too short tasks are a finding", "yes", "yes" if any(f.kind == "overhead" for f in said.findings) else "no"
        )

    return compare


@workload()
def a_straggler(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(rest, [0.1] * 30 + [4.0], pure=False))

    def compare(said: Said) -> None:
        lab.text(
            "a straggler is a finding", "yes", "yes" if any(f.kind == "straggler" for f in said.findings) else "no"
        )

    return compare


@workload(threads_per_worker=1)
def first_executions_are_slow(lab: Lab) -> Callable[[Said], None]:
    lab.client.gather(lab.client.map(first_slow, [0.05] * 40, pure=False))

    def compare(said: Said) -> None:
        lab.text("a straggler is a finding", "no", "yes" if any(f.kind == "straggler" for f in said.findings) else "no")

    return compare


@workload()
def a_shuffle(lab: Lab) -> Callable[[Said], None]:
    import dask
    import dask.dataframe as dd
    import pandas as pd

    frame = pd.DataFrame({"k": np.arange(400_000) % 997, "v": np.ones(400_000)})
    with dask.config.set({"dataframe.shuffle.method": "p2p"}):
        result = dd.from_pandas(frame, npartitions=16).shuffle("k").v.sum().compute()

    def compare(said: Said) -> None:
        lab.number("result", 400_000, float(result), 0, "")
        lab.text("outcome", "finished", said.outcome.state)
        compute = said.facts.split.compute_us / 1e6
        lab.number("CPU and waiting are compute time", compute, said.seconds("cpu", "noncpu"), 0.01, is_internal=True)

    return compare


@workload(n_workers=1, threads_per_worker=1)
def a_seceded_task(lab: Lab) -> Callable[[Said], None]:
    long = lab.client.submit(leave, 3.0, pure=False)
    time.sleep(0.3)
    lab.client.gather(lab.client.map(rest, [0.2] * 5, pure=False))
    long.result()

    def compare(said: Said) -> None:
        lab.number("compute time in threads", lab.wall("task"), said.seconds("cpu", "noncpu"), 0.15)
        lab.number("compute time of seceded tasks", lab.wall("outer"), said.facts.split.seceded_us / 1e6, 0.2)

    return compare
