"""Scheduler CPU per task: nothing, an empty hook, TaskStreamPlugin, and our recorder, interleaved.

``recorder`` is the hook on the event loop; ``recorder + encoding`` also turns every segment into finished frames, in the same
thread, so that all CPU we ever spend on a task is counted.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.diagnostics.task_stream import TaskStreamPlugin

from benchmarks.core import measure, percentile
from benchmarks.result import Result, at_most
from daskscope.collector.executions import Executions, edge_columns, executions, task_columns
from daskscope.wire.encode import encode_body, seal


class Empty(SchedulerPlugin):
    def transition(self, key: Any, start: str, finish: str, *args: Any, stimulus_id: str, **kwargs: Any) -> None:
        """What registering any plugin at all costs."""


class Recording(SchedulerPlugin):
    """The recorder's hook."""

    def __init__(self, scheduler: Any) -> None:
        self.executions: Executions = executions(scheduler.tasks, time.time_ns, _ignore, _fail)
        self.transition = self.executions.transition  # type: ignore[method-assign]


class Encoding(Recording):
    """The hook, and the encoding of what it collected."""

    def flush(self) -> None:
        chunk = self.executions.rotate()
        seal(encode_body("tasks", task_columns(chunk)), cluster="c", epoch=1, sequence=0, kept=chunk.rows, dropped=0)
        if chunk.dependents:
            encode_body("edges", edge_columns(chunk))


def _ignore(*_: Any) -> None:
    """Only plain successes happen here."""


def _fail(error: BaseException) -> None:
    raise error


VARIANTS = {
    "nothing": lambda _: None,
    "empty hook": lambda _: Empty(),
    "TaskStreamPlugin": lambda scheduler: TaskStreamPlugin(scheduler, maxlen=100_000),
    "recorder": Recording,
    "recorder + encoding": Encoding,
}


def run(segments: int = 60, tasks: int = 1000) -> list[Result]:
    results = []
    for kind, label in (("map", "independent tasks"), ("deps", "tree reduction")):
        costs = asyncio.run(measure(VARIANTS, kind, segments=segments, tasks=tasks))
        p10 = {name: percentile(values, 0.1) for name, values in costs.items()}
        low = {name: min(values) for name, values in costs.items()}
        bare = p10["nothing"]
        added = {name: value - bare for name, value in p10.items()}
        table = ", ".join(
            f"{name} +{added[name]:.1f} (min +{low[name] - low['nothing']:.1f})" for name in list(VARIANTS)[1:]
        )
        note = f"bare {bare:.1f} µs; {table}; p10 of {segments} segments of {tasks} tasks"
        stream = added["TaskStreamPlugin"]
        results += [
            at_most(f"CPU per task over none, event loop, {label}", p10["recorder"] / bare, 1.08, "×", note),
            at_most(f"CPU per task over none, with encoding, {label}", p10["recorder + encoding"] / bare, 1.08, "×"),
            at_most(f"added CPU over TaskStreamPlugin's, event loop, {label}", added["recorder"] / stream, 1.5, "×"),
            at_most(
                f"added CPU over TaskStreamPlugin's, with encoding, {label}",
                added["recorder + encoding"] / stream,
                1.5,
                "×",
            ),
        ]
    return results
