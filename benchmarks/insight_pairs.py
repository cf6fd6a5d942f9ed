"""For each rule a workload that provokes it, and a healthy twin that does the same work after following the advice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from distributed import wait

from benchmarks import insight_tasks as tasks
from benchmarks import insight_work as work


@dataclass(frozen=True)
class Side:
    """A workload and its cluster."""

    work: Callable[[Any], object]
    workers: int = 2
    threads: int = 2
    #: Of ``LocalCluster``.
    options: dict[str, Any] = field(default_factory=dict)
    #: Of Dask.
    config: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pair:
    """A rule, a workload that provokes it, and a twin that follows the advice."""

    rule: str
    problem: Side
    twin: Side
    #: Whether the advice saves time that can be measured.
    has_gain: bool = True


NO_STEALING = {"distributed.scheduler.work-stealing": False}
NO_QUEUE = {**NO_STEALING, "distributed.scheduler.worker-saturation": "inf"}
EARLY_PAUSE = {"distributed.worker.memory.pause": 0.5, "distributed.worker.memory.monitor-interval": "50ms"}
MB = 1_000_000
#: Parts of 1 to 3 MB, and the same bytes in a quarter of the parts.
SMALL_PARTS = [MB + n % 3 * MB for n in range(64)]
LARGE_PARTS = [sum(SMALL_PARTS[n : n + 4]) for n in range(0, 64, 4)]

FAILURES = (
    Pair("failed-tasks", Side(lambda c: work.fail(c, 0)), Side(lambda c: work.rounds(c, 0.0)), has_gain=False),
    Pair("retries-in-vain", Side(lambda c: work.fail(c, 3)), Side(lambda c: work.rounds(c, 0.0)), has_gain=False),
    Pair("lost-workers", Side(lambda c: work.lose(c, 1)), Side(lambda c: work.lose(c, 0)), has_gain=False),
    Pair(
        "retried-failures",
        Side(lambda c: work.fail_first(c, is_reliable=False)),
        Side(lambda c: work.fail_first(c, is_reliable=True)),
    ),
    Pair(
        "recomputed-results",
        Side(lambda c: work.close_a_worker(c, retire=False), options={"processes": False}),
        Side(lambda c: work.close_a_worker(c, retire=True), options={"processes": False}),
    ),
    Pair(
        "incomplete-recording",
        Side(lambda c: work.depend_on_many(c, 5_001)),
        Side(lambda c: work.depend_on_many(c, 50)),
        has_gain=False,
    ),
)

GRAPH = (
    Pair(
        "short-tasks",
        Side(lambda c: wait(c.map(tasks.nothing, range(4_000), pure=False))),
        Side(
            lambda c: wait(
                c.map(tasks.many_nothings, [list(range(n, n + 100)) for n in range(0, 4_000, 100)], pure=False)
            )
        ),
    ),
    Pair(
        "stragglers",
        Side(lambda c: work.pauses(c, [0.05] * 60 + [4.0])),
        Side(lambda c: work.pauses(c, [0.05] * 60 + [0.1] * 40)),
    ),
    Pair("serial-sections", Side(lambda c: work.reduce_parts(c, 1)), Side(lambda c: work.reduce_parts(c, 8))),
    Pair(
        "repeated-work",
        Side(lambda c: work.read_twice(c, together=False)),
        Side(lambda c: work.read_twice(c, together=True)),
    ),
    Pair("warm-up", Side(work.warm_up), Side(work.warm_up, options={"preload": ["import benchmarks.slow_import"]})),
    Pair("large-graphs", Side(lambda c: work.unpack_graph(c, 2.0)), Side(lambda c: work.unpack_graph(c, 0.0))),
    Pair(
        "data-skew",
        Side(lambda c: work.process_parts(c, [MB] * 40 + [40 * MB])),
        Side(lambda c: work.process_parts(c, [2 * MB] * 40)),
    ),
    Pair("chunk-size", Side(lambda c: work.read_parts(c, SMALL_PARTS)), Side(lambda c: work.read_parts(c, LARGE_PARTS))),
)  # fmt: skip

WAITING = (
    Pair(
        "gil",
        Side(lambda c: work.map_tasks(c, tasks.count_with_lock_held, 40, 8_000_000), workers=1, threads=4),
        Side(lambda c: work.map_tasks(c, tasks.count_with_lock_held, 40, 8_000_000), workers=2, threads=1),
    ),
    Pair(
        "python-loops",
        Side(lambda c: work.map_tasks(c, tasks.count_in_python, 60, 2_000_000), threads=1),
        Side(lambda c: work.map_tasks(c, tasks.count_in_numpy, 60, 2_000_000), threads=1),
    ),
    Pair(
        "locks",
        Side(lambda c: work.map_tasks(c, tasks.with_lock, 40, 0.1)),
        Side(lambda c: work.pauses(c, [0.1] * 40)),
    ),
    Pair("network-reads", Side(lambda c: work.read_from_server(c, 0.3)), Side(lambda c: work.read_from_server(c, 0.0))),
    Pair("file-reads", Side(lambda c: work.read_files(c, 0.3)), Side(lambda c: work.read_files(c, 0.0))),
    Pair(
        "subprocesses",
        Side(lambda c: work.map_tasks(c, tasks.run_program, 40, 0.3)),
        Side(lambda c: work.map_tasks(c, tasks.run_program, 40, 0.0)),
    ),
    Pair(
        "busy-hosts",
        Side(lambda c: work.beside_other_programs(c, 4), workers=1),
        Side(lambda c: work.beside_other_programs(c, 0), workers=1, threads=1),
    ),
    Pair(
        "library-threads",
        Side(lambda c: work.map_tasks(c, tasks.digest_in_threads, 16, 150), workers=1, threads=1),
        Side(lambda c: work.map_tasks(c, tasks.digest, 16, 150), workers=1, threads=1),
        has_gain=False,
    ),
    Pair(
        "off-cpu",
        Side(lambda c: work.pauses(c, [0.2] * 60)),
        Side(lambda c: work.map_tasks(c, tasks.digest, 20, 100), workers=1, threads=1),
        has_gain=False,
    ),
)

DATA = (
    Pair(
        "transfers",
        Side(lambda c: work.move(c, apart=True), threads=1),
        Side(lambda c: work.move(c, apart=False), threads=1),
    ),
    Pair(
        "spilling",
        Side(work.spill, options={"memory_limit": 500 * MB}),
        Side(work.spill, options={"memory_limit": 5_000 * MB}),
    ),
    Pair(
        "slow-pairs",
        Side(lambda c: work.exchange(c, 0.4), workers=4, threads=1),
        Side(lambda c: work.exchange(c, 0.0), workers=4, threads=1),
    ),
    Pair(
        "memory-growth",
        Side(
            lambda c: work.map_tasks(c, tasks.keep_more, 120, 4 * MB, 1.0), options={"memory_limit": 900 * MB}
        ),
        Side(
            lambda c: work.map_tasks(c, tasks.keep_more, 120, 4_000, 1.0), options={"memory_limit": 900 * MB}
        ),
        has_gain=False,
    ),
    Pair(
        "spare-memory",
        Side(lambda c: work.pauses(c, [2.0] * 124), options={"memory_limit": 4_000 * MB}),
        Side(lambda c: work.pauses(c, [2.0] * 124), options={"memory_limit": 350 * MB}),
        has_gain=False,
    ),
)  # fmt: skip

IDLE = (
    Pair(
        "too-few-tasks",
        Side(lambda c: work.pauses(c, [4.0])),
        Side(lambda c: work.pauses(c, [0.1] * 40)),
    ),
    Pair("nothing-submitted", Side(lambda c: work.rounds(c, 2.0)), Side(lambda c: work.rounds(c, 0.0))),
    Pair("slow-starts", Side(lambda c: work.block_workers(c, 2.5)), Side(lambda c: work.block_workers(c, 0.0))),
    Pair(
        "loop-stalls",
        Side(lambda c: work.block_workers(c, 4.0, busy_s=5.0, count=4)),
        Side(lambda c: work.block_workers(c, 0.0, busy_s=5.0, count=4)),
        has_gain=False,
    ),
    Pair("scheduler-queue", Side(lambda c: work.block_scheduler(c, 2.5)), Side(lambda c: work.block_scheduler(c, 0.0))),
    Pair(
        "unexplained-idle",
        Side(lambda c: work.block_scheduler_in_a_chain(c, 2.8), workers=1, threads=1),
        Side(lambda c: work.block_scheduler_in_a_chain(c, 0.0), workers=1, threads=1),
    ),
    Pair("pinned-work", Side(lambda c: work.restrict(c, pinned=True)), Side(lambda c: work.restrict(c, pinned=False))),
    Pair(
        "unbalanced-work",
        Side(lambda c: work.use_parts(c, everywhere=False), config=NO_STEALING),
        Side(lambda c: work.use_parts(c, everywhere=True), config=NO_STEALING),
    ),
    Pair(
        "paused-workers",
        Side(
            lambda c: work.fill_memory(c, 450 * MB), workers=1, options={"memory_limit": 900 * MB}, config=EARLY_PAUSE
        ),
        Side(lambda c: work.fill_memory(c, 1 * MB), workers=1, options={"memory_limit": 900 * MB}, config=EARLY_PAUSE),
    ),
    Pair(
        "unrunnable-tasks",
        Side(work.need_resources),
        Side(work.need_resources, options={"resources": {"GPU": 2}}),
    ),
    Pair(
        "no-workers",
        Side(lambda c: work.wait_for_workers(c, late=True)),
        Side(lambda c: work.wait_for_workers(c, late=False)),
    ),
    Pair(
        "slow-workers",
        Side(lambda c: work.slow_worker(c, 5.0), workers=4, threads=1),
        Side(lambda c: work.slow_worker(c, 1.0), workers=4, threads=1),
    ),
)

SCALING = (
    Pair(
        "starting-workers",
        Side(work.join_late, workers=1, config=NO_QUEUE),
        Side(lambda c: work.pauses(c, [0.2] * 60), config=NO_QUEUE),
    ),
    Pair(
        "scaling-capped",
        Side(lambda c: work.adapt(c, (1, 1), lambda c: work.pauses(c, [0.2] * 60)), workers=1, threads=1),
        Side(
            lambda c: work.adapt(c, (4, 8), lambda c: work.pauses(c, [0.2] * 60), target_duration="20s"),
            workers=4,
            threads=1,
        ),
    ),
    Pair(
        "scaling-lags",
        Side(
            lambda c: work.adapt(c, (1, 3), lambda c: work.pauses(c, [0.2] * 150), target_duration="10s"),
            workers=1,
            threads=1,
            options={"preload": ["import time; time.sleep(3)"]},
        ),
        Side(
            lambda c: work.adapt(c, (3, 3), lambda c: work.pauses(c, [0.2] * 150), target_duration="10s"),
            workers=3,
            threads=1,
        ),
    ),
    Pair(
        "scaling-flaps",
        Side(lambda c: work.adapt(c, (1, 3), work.bursts, target_duration="5s", wait_count=2), workers=1, threads=1),
        Side(lambda c: work.adapt(c, (3, 3), work.bursts, target_duration="5s", wait_count=2), workers=3, threads=1),
    ),
)

PAIRS = (*FAILURES, *GRAPH, *WAITING, *DATA, *IDLE, *SCALING)
