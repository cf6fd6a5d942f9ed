"""Send five million executions through the recorder: its memory must not grow with them."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psutil

from benchmarks.result import Result, at_most, equal
from daskscope.collector.delivery.encoder import Encoder
from daskscope.collector.delivery.outbox import FrameQueue, Outbox
from daskscope.collector.scheduler.executions import FULL_CHUNK, build_executions, edge_columns, task_columns

ROWS = 5_000_000
LIMIT_MB = 100


class Prefix:
    name = "inc"


class Group:
    name, prefix, span_id = "inc", Prefix(), "span"


@dataclass(slots=True, eq=False)
class Task:
    key: str
    group: Group
    dependencies: set[Task] = field(default_factory=set)


def replay(rows: int) -> tuple[float, int, int]:
    """Return the peak growth of this process in MB, rows published, and rows dropped."""
    tasks: dict[Any, Task] = {}
    outbox = Outbox("cluster", 1)
    queue = FrameQueue(32 * 1024 * 1024)
    outbox.subscribe("nobody reads", queue.put)
    encoder = Encoder(outbox, _fail)
    encoder.start()
    recorder = build_executions(tasks, time.time_ns, _ignore, partial(_fail, "transition"))
    process, group = psutil.Process(), Group()
    gc.collect()
    before = peak = process.memory_info().rss
    for number in range(rows):
        _one_task(tasks, recorder.transition, group, number)
        if recorder.rows() >= FULL_CHUNK:
            chunk = recorder.rotate()
            encoder.write("tasks", partial(task_columns, chunk), chunk.rows)
            encoder.write("edges", partial(edge_columns, chunk), len(chunk.dependencies))
            encoder.barrier().wait()
            peak = max(peak, process.memory_info().rss)
    encoder.stop(10)
    return (peak - before) / 1e6, outbox.kept["tasks"], outbox.dropped.get("tasks", 0)


def _one_task(tasks: dict[Any, Task], transition: Any, group: Group, number: int) -> None:
    key, stop = f"inc-{number:032x}", 1.8e9 + number * 1e-4
    task = tasks[key] = Task(key, group)
    if number:
        task.dependencies.add(tasks[f"inc-{number - 1:032x}"])
    transition(key, "waiting", "processing", stimulus_id="s")
    interval = {"action": "compute", "start": stop - 1e-5, "stop": stop}
    transition(
        key,
        "processing",
        "memory",
        stimulus_id="s",
        worker="tcp://127.0.0.1:1",
        thread=number % 4,
        typename="int",
        nbytes=28,
        startstops=(interval,),
    )
    if number:
        old = f"inc-{number - 1:032x}"
        transition(old, "released", "forgotten", stimulus_id="s")
        # Like the scheduler; otherwise each task would keep all its predecessors alive.
        tasks.pop(old).dependencies.clear()


def _ignore(*_: Any) -> None:
    """Ignore other transitions, which do not occur here."""


def _fail(place: str, error: BaseException) -> None:
    raise RuntimeError(place) from error


def run() -> list[Result]:
    command = [sys.executable, "-m", "benchmarks.replay", str(ROWS)]
    grown, kept, dropped = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return [
        at_most(
            "memory growth while 5 million executions pass through",
            float(grown),
            LIMIT_MB,
            " MB",
            "nobody reads the queue",
        ),
        equal("rows published of 5 million", int(kept), ROWS, f"{dropped} dropped before encoding"),
    ]


if __name__ == "__main__":
    print(*replay(int(sys.argv[1])))
