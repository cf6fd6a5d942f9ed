"""Measure a real Scheduler with fake workers: the cost of the state machine without the noise of comms and processes.

Every task passes through all states (arrives, is assigned, finishes, is released and forgotten) in the scheduler's own
handlers; only the workers' messages are fake. Variants alternate in random order in many short segments, whose minima and p10
of CPU time are stable even on a shared machine.
"""

from __future__ import annotations

import asyncio
import gc
import random
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import dask
from distributed import Scheduler
from distributed.diagnostics.plugin import SchedulerPlugin


class SilentComm:
    """A fake connection of a worker: ignores writes and never has data to read."""

    def __init__(self) -> None:
        self.closed_event = asyncio.Event()

    async def write(self, *_: object, **__: object) -> int:
        return 1

    async def read(self, **_: object) -> object:
        await self.closed_event.wait()
        raise EOFError

    async def close(self) -> None:
        self.closed_event.set()

    def abort(self) -> None:
        self.closed_event.set()

    def closed(self) -> bool:
        return self.closed_event.is_set()

    peer_address = local_address = "inproc://bench"
    name = "bench"


METRICS: dict[str, Any] = {
    "bandwidth": {"total": 1e8, "workers": {}, "types": {}},
    "digests_total_since_heartbeat": {},
    "memory": 0,
    "spilled_bytes": {"memory": 0, "disk": 0},
}


async def start_scheduler(workers: int = 4) -> Any:
    # Stealing needs workers that respond; here it would fail its own assertions and log a traceback per task.
    # They send no heartbeats either; after five minutes, a scheduler removes such workers.
    dask.config.set(
        {
            "distributed.scheduler.worker-saturation": 1.1,
            "distributed.scheduler.work-stealing": False,
            "distributed.scheduler.worker-ttl": None,
        }
    )
    scheduler = await Scheduler(dashboard=False, port=0, host="127.0.0.1", validate=False)
    for i in range(workers):
        address = f"tcp://127.0.0.1:{40000 + i}"
        task = asyncio.create_task(
            scheduler.add_worker(
                comm=SilentComm(),
                address=address,
                status="running",
                server_id=f"Worker-{i}",
                nthreads=2,
                name=f"w{i}",
                resolve_address=False,
                now=time.time(),
                resources={},
                memory_limit=2**33,
                metrics=METRICS,
                services={},
                local_directory="",
                versions={},
                nanny="",
                extra={},
                stimulus_id="bench",
            )
        )
        scheduler._bench_tasks = [*getattr(scheduler, "_bench_tasks", []), task]
        while address not in scheduler.stream_comms:
            await asyncio.sleep(0.01)
    scheduler.client_desires_keys([], "client")
    return scheduler


def graph(kind: str, n: int) -> tuple[dict[Any, Any], set[Any]]:
    """Return a graph: ``map`` has n hashed keys, ``deps`` a chunked array that is reduced in a tree of fan-in 4."""
    from dask._task_spec import Task, TaskRef

    if kind == "map":
        keys = [f"inc-{uuid.uuid4().hex}" for _ in range(n)]
        return {key: Task(key, abs, 1) for key in keys}, set(keys)
    token = uuid.uuid4().hex
    leaves = [(f"random-{token}", i, 0) for i in range(n * 3 // 4)]
    dsk: dict[Any, Any] = {key: Task(key, abs, 1) for key in leaves}
    layer, level = leaves, 0
    while len(layer) > 1:
        parents = [(f"sum-partial-{level}-{token}", i, 0) for i in range((len(layer) + 3) // 4)]
        for i, key in enumerate(parents):
            dsk[key] = Task(key, sum, *[TaskRef(child) for child in layer[4 * i : 4 * i + 4]])
        layer, level = parents, level + 1
    return dsk, set(layer)


def run_segment(scheduler: Any, kind: str, n: int) -> int:
    """Run n tasks through all states; return how many finished."""
    dsk, keys = graph(kind, n)
    ordered = dict(zip(dsk, range(len(dsk))))
    scheduler._create_taskstate_from_graph(
        start=time.time(),
        dsk=dsk,
        keys=keys,
        ordered=ordered,
        client="client",
        annotations_by_type={},
        global_annotations=None,
        stimulus_id="bench-graph",
        submitting_task=None,
        span_metadata={"collections": []},
    )
    now, finished = time.time(), 0
    busy = True
    while busy:
        busy = False
        for address, worker in scheduler.workers.items():
            for task in list(worker.processing):
                busy = True
                finished += 1
                now += 0.0003
                message = {
                    "nbytes": 28 + finished % 50,
                    "type": b"int",
                    "typename": "int",
                    "thread": 140000000 + finished % 2,
                    "startstops": ({"action": "compute", "start": now, "stop": now + 0.0001 * (finished % 7)},),
                    "status": "OK",
                    "metadata": {},
                    "run_id": task.run_id,
                }
                scheduler.handle_task_finished(
                    key=task.key, worker=address, stimulus_id=f"task-finished-{now}", **message
                )
    scheduler.client_releases_keys(keys, "client", stimulus_id="bench-release")
    for comm in scheduler.stream_comms.values():
        comm.buffer.clear()
    return finished


#: Rounds that warm up caches and Dask's own averages.
WARM_UP = 3

Variant = Callable[[Any], SchedulerPlugin | None]


async def measure(variants: Mapping[str, Variant], kind: str, *, rounds: int, tasks: int) -> dict[str, list[float]]:
    """Return CPU microseconds per task of each variant by round; a round runs every variant once, in random order."""
    scheduler = await start_scheduler()
    results: dict[str, list[float]] = {name: [] for name in variants}
    order, rng = list(variants), random.Random(0)
    for _ in range(WARM_UP + rounds):
        rng.shuffle(order)
        for name in order:
            results[name].append(_one_segment(scheduler, variants[name], kind, tasks))
            await asyncio.sleep(0)
    await close(scheduler)
    return {name: values[WARM_UP:] for name, values in results.items()}


def _one_segment(scheduler: Any, variant: Variant, kind: str, tasks: int) -> float:
    plugin = variant(scheduler)
    if plugin is not None:
        scheduler.plugins["bench"] = plugin
    # Each segment pays for its own garbage, not for that of the previous one.
    gc.collect()
    before = time.process_time()
    finished = run_segment(scheduler, kind, tasks)
    cost = (time.process_time() - before) / finished * 1e6
    scheduler.plugins.pop("bench", None)
    return cost


async def close(scheduler: Any) -> None:
    for task in scheduler._bench_tasks:
        task.cancel()
    await asyncio.gather(*scheduler._bench_tasks, return_exceptions=True)
    await scheduler.close()


def percentile(values: list[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]
