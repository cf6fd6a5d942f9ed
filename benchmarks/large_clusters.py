"""Measure what recording costs the scheduler of a cluster with hundreds of real workers.

The scheduler has a process of its own, and the workers share a few. One cluster is measured without and with recording, in turns.

Without any recording, the CPU time per task of such a scheduler goes up and down by 50 % within minutes. So there are many short
turns, and the figure comes with the range that the same turns give when they are drawn again at random.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from statistics import mean, quantiles

import dask
import psutil
from distributed import Client, Worker, wait

from benchmarks.captured import received
from benchmarks.result import Result, at_most
from daskscope import analytics
from daskscope.client.server import Server

SIZES = (200, 500)
#: Processes in which the workers run.
HOSTS = 4
#: Tasks per turn. A round has three turns without recording, six with it, and three without.
TASKS, ROUNDS, TURNS = 2_500, 4, 3
WARM_UP = 20_000
#: Turns of each kind in which the idle scheduler is measured.
IDLE_TURNS = 2
IDLE_S = 10.0
#: Seconds until an idle recorder posts every 30 s, and seconds in which its bytes are counted.
SETTLE_S, SENT_S = 30.0, 60.0
#: Seconds until agents that were told to stop have stopped.
STOPPED_S = 3.0
START_S = 180.0
#: The limits: CPU of the scheduler per task with recording over without, and bytes that an idle cluster sends per second.
CPU_RATIO, IDLE_BYTES = 1.08, 2_000.0


def increment(number: int) -> int:
    return number + 1


async def host(scheduler: str, count: int) -> None:
    """Run workers until this process is ended."""
    workers = [
        Worker(scheduler, nthreads=1, memory_limit=0, dashboard=False, local_directory=tempfile.mkdtemp())
        for _ in range(count)
    ]
    await asyncio.gather(*workers)
    await asyncio.gather(*(worker.finished() for worker in workers))


@dataclass
class Cluster:
    """A cluster of many workers, its scheduler's process and those of its workers."""

    client: Client
    scheduler: psutil.Process
    hosts: list[subprocess.Popen[bytes]]


@contextmanager
def cluster_of(workers: int) -> Iterator[Cluster]:
    """Yield a cluster with this many workers of one thread each."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        file = Path(directory) / "scheduler.json"

        def launch(*arguments: str, start: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
            environment = {**os.environ, "TMPDIR": directory}
            process = subprocess.Popen(
                [*start, sys.executable, *arguments],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        scheduler = launch(
            "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", str(file),
        )  # fmt: skip
        while not (file.exists() and file.stat().st_size):
            time.sleep(0.05)
        client = stack.enter_context(Client(scheduler_file=str(file)))
        address = client.scheduler_info()["address"]
        run = "import asyncio, sys; from benchmarks.large_clusters import host; asyncio.run(host(sys.argv[1], int(sys.argv[2])))"
        # The scheduler has a machine of its own elsewhere: here, the workers and their agents only get what it leaves.
        hosts = [launch("-c", run, address, str(workers // HOSTS), start=("nice", "-n", "19")) for _ in range(HOSTS)]
        client.wait_for_workers(workers, timeout=START_S)
        yield Cluster(client, psutil.Process(scheduler.pid), hosts)


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@dataclass
class Costs:
    """CPU of the scheduler: its share of a core while idle, and microseconds per task; and seconds of calls."""

    idle: list[float] = field(default_factory=list)
    per_task_us: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    #: Of the CPU time per task, that of the recorder's own threads.
    threads_us: list[float] = field(default_factory=list)


def own_threads_s() -> float:
    """Return the CPU time of the recorder's threads in this process."""
    ticks = 0
    for thread in threading.enumerate():
        if thread.name.startswith("daskscope"):
            fields = Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _measure(cluster: Cluster, costs: Costs) -> None:
    if len(costs.idle) < IDLE_TURNS:
        before, began = cpu_s(cluster.scheduler), time.monotonic()
        time.sleep(IDLE_S)
        costs.idle.append((cpu_s(cluster.scheduler) - before) / (time.monotonic() - began))
    own = cluster.client.run_on_scheduler(own_threads_s)
    before, began = cpu_s(cluster.scheduler), time.monotonic()
    futures = cluster.client.map(increment, range(TASKS), pure=False)
    wait(futures)
    costs.per_task_us.append((cpu_s(cluster.scheduler) - before) * 1e6 / TASKS)
    costs.wall_s.append(time.monotonic() - began)
    costs.threads_us.append((cluster.client.run_on_scheduler(own_threads_s) - own) * 1e6 / TASKS)
    del futures


def _timed(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def run(sizes: tuple[int, ...] = SIZES) -> list[Result]:
    return [result for workers in sizes for result in _of_size(workers)]


def _of_size(workers: int) -> list[Result]:
    bare, recorded, starts, ends = Costs(), Costs(), list[float](), list[float]()
    with received() as (url, posts), dask.config.set({"daskscope.server": url}), cluster_of(workers) as cluster:
        warm_up = cluster.client.map(increment, range(WARM_UP), pure=False)
        wait(warm_up)
        del warm_up
        for _ in range(ROUNDS):
            for _ in range(TURNS):
                _measure(cluster, bare)
            starts.append(_timed(partial(analytics.register, cluster.client)))
            time.sleep(STOPPED_S)
            for _ in range(2 * TURNS):
                _measure(cluster, recorded)
            ends.append(_timed(partial(analytics.unregister, cluster.client)))
            time.sleep(STOPPED_S)
            for _ in range(TURNS):
                _measure(cluster, bare)
        sent_per_s = sum(len(body) for _, body in posts) / max(posts[-1][0] - posts[0][0], 1.0)
        analytics.register(cluster.client)
        idle_per_s = _sent_while_idle(posts)
        shown_s, cpu = _with_half_dying(cluster, url, workers)
    per_task = mean(recorded.per_task_us) / mean(bare.per_task_us)
    low, high = _range_of_ratio(recorded.per_task_us, bare.per_task_us)
    each = (
        f"{low:.2f} to {high:.2f}; without {mean(bare.per_task_us):.0f} µs ({min(bare.per_task_us):.0f} to "
        f"{max(bare.per_task_us):.0f}), with {mean(recorded.per_task_us):.0f} µs ({min(recorded.per_task_us):.0f} to "
        f"{max(recorded.per_task_us):.0f}); wall {mean(bare.wall_s):.1f} and {mean(recorded.wall_s):.1f} s for {TASKS:,} tasks"
    )
    shares = [100 * share for share in (*bare.idle, *recorded.idle)]
    idle = f"without {_listed(shares[:IDLE_TURNS], 1)} %, with {_listed(shares[IDLE_TURNS:], 1)} %"
    of = f"{workers} workers: "
    return [
        at_most(f"{of}CPU of the scheduler per task, with over without recording", per_task, CPU_RATIO, "×", each),
        Result(f"{of}of it, the recorder's own threads", f"{mean(recorded.threads_us):.0f} µs",
            note=f"{mean(recorded.threads_us) / mean(bare.per_task_us):.1%} of the scheduler's without recording"),
        Result(f"{of}CPU of the idle scheduler, of a core", f"{min(recorded.idle):.1%}", note=idle),
        at_most(f"{of}sent while idle, per second", idle_per_s, IDLE_BYTES, " B", f"{sent_per_s:,.0f} B in all rounds"),
        Result(f"{of}register() / unregister()", f"{min(starts):.2f} / {min(ends):.2f} s",
            note=f"{_listed(starts, 2)} / {_listed(ends, 2)} s"),
        Result(f"{of}half of them die; the server knows after", f"{shown_s:.1f} s",
            note=f"CPU of the scheduler until then: {cpu:.1f} s"),
    ]  # fmt: skip


def _range_of_ratio(above: list[float], below: list[float]) -> tuple[float, float]:
    """Return the range of 90 % of the ratios of means, with the values drawn again at random."""
    draw = Random(1)
    drawn = [mean(draw.choices(above, k=len(above))) / mean(draw.choices(below, k=len(below))) for _ in range(1_000)]
    cuts = quantiles(drawn, n=20)
    return cuts[0], cuts[-1]


def _listed(values: list[float], digits: int = 0) -> str:
    return ", ".join(f"{value:,.{digits}f}" for value in values)


def _sent_while_idle(posts: list[tuple[float, bytes]]) -> float:
    time.sleep(SETTLE_S)
    first, began = len(posts), time.monotonic()
    time.sleep(SENT_S)
    return sum(len(body) for _, body in posts[first:]) / (time.monotonic() - began)


def _with_half_dying(cluster: Cluster, url: str, workers: int) -> tuple[float, float]:
    """Kill half of the workers; return the seconds until the server knows, and the CPU time of the scheduler until then."""
    base, _, secret = url.partition("/?secret=")
    server = Server(base, "", secret)
    name = str(cluster.client.scheduler_info()["id"])
    before, began = cpu_s(cluster.scheduler), time.monotonic()
    for process in cluster.hosts[: HOSTS // 2]:
        process.send_signal(signal.SIGKILL)
    dead = workers // HOSTS * (HOSTS // 2)
    while time.monotonic() - began < START_S:
        if server.get(f"clusters/{name}")["workers"] <= workers - dead:
            break
        time.sleep(0.5)
    return time.monotonic() - began, cpu_s(cluster.scheduler) - before
