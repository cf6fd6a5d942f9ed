"""Measure scheduler CPU per task without a plugin, with an empty hook, with TaskStreamPlugin and with the recorder.

``recorder`` is the hook on the event loop. Encoding happens in a thread; it is measured separately, on batches of real
executions, and added, so that all CPU time per task is counted. The bar of 1.08× over no plugin holds for the sum. The bar of 1.5×
over TaskStreamPlugin holds for the event loop, which is what delays the scheduler: that plugin encodes nothing and keeps its
rows in memory, so its cost has no part that encoding could be compared with. The sum is printed without a bar.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.diagnostics.task_stream import TaskStreamPlugin

from benchmarks.core import close, measure, percentile, run_segment, start_scheduler
from benchmarks.result import Result, at_most
from daskscope.collector.guard import Guard
from daskscope.collector.privacy import Scrubber
from daskscope.collector.scheduler.executions import Executions, build_executions, edge_columns, task_columns
from daskscope.wire.encode import encode_body, seal


class Empty(SchedulerPlugin):
    def transition(self, key: Any, start: str, finish: str, *args: Any, stimulus_id: str, **kwargs: Any) -> None:
        """Do nothing: the cost of registering any plugin."""


class Recording(SchedulerPlugin):
    """The recorder's hook."""

    def __init__(self, scheduler: Any) -> None:
        self.executions: Executions = build_executions(scheduler.tasks, time.time_ns, _ignore, _fail)
        self.transition = self.executions.transition  # type: ignore[method-assign]


class Failing(SchedulerPlugin):
    """A recorder whose hook always fails, until the breaker removes it after 20 failures."""

    def __init__(self, _: Any) -> None:
        self.guard = Guard(time.monotonic, self.disable)
        hot = build_executions({}, time.time_ns, _ignore, lambda error: self.guard.caught("transition", error))
        self.transition = hot.transition  # type: ignore[method-assign]

    def disable(self, _: str) -> None:
        self.transition = _nothing  # type: ignore[method-assign]


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing: replaces the hook after the breaker removed it."""


def _ignore(*_: Any) -> None:
    """Ignore other transitions, which do not occur here."""


def _fail(error: BaseException) -> None:
    raise error


VARIANTS = {
    "nothing": lambda _: None,
    "empty hook": lambda _: Empty(),
    "TaskStreamPlugin": lambda scheduler: TaskStreamPlugin(scheduler, maxlen=100_000),
    "recorder": Recording,
    "failing recorder": Failing,
}


def run(rounds: int = 150, tasks: int = 300) -> list[Result]:
    results = []
    for kind, label in (("map", "independent tasks"), ("deps", "tree reduction")):
        costs = asyncio.run(measure(VARIANTS, kind, rounds=rounds, tasks=tasks))
        encoding = asyncio.run(_encoding(kind))
        p10 = {name: percentile(values, 0.1) for name, values in costs.items()}
        low = {name: min(values) for name, values in costs.items()}
        paired = {name: _paired(values, costs["nothing"]) for name, values in costs.items()}
        table = "; ".join(
            f"{name} +{p10[name] - p10['nothing']:.1f} / +{low[name] - low['nothing']:.1f} / +{paired[name]:.1f}"
            for name in list(VARIANTS)[1:]
        )
        bare, stream, ours = p10["nothing"], p10["TaskStreamPlugin"] - p10["nothing"], p10["recorder"] - p10["nothing"]
        note = (
            f"µs a task; nothing {bare:.1f}; added as p10 / minimum / median of pairs: {table}; "
            f"encoding, in a thread, {encoding:.1f}; "
            f"{rounds} rounds of {tasks} tasks"
        )
        results += [
            at_most(f"CPU per task over none, event loop, {label}", 1 + ours / bare, 1.08, "×", note),
            at_most(f"CPU per task over none, with encoding, {label}", 1 + (ours + encoding) / bare, 1.08, "×"),
            at_most(f"added CPU over TaskStreamPlugin's, event loop, {label}", ours / stream, 1.5, "×"),
            Result(f"added CPU over TaskStreamPlugin's, with encoding, {label}", f"{(ours + encoding) / stream:.3g}×"),
            at_most(
                f"CPU per task over none when every call of ours fails, {label}",
                p10["failing recorder"] / bare,
                1.08,
                "×",
            ),
        ]
    return results


async def _encoding(kind: str, tasks: int = 2000) -> float:
    """Return CPU microseconds per task to encode a batch of real executions as frames; the minimum of 20 batches."""
    scheduler = await start_scheduler()
    plugin = scheduler.plugins["bench"] = Recording(scheduler)
    best = float("inf")
    for _ in range(20):
        run_segment(scheduler, kind, tasks)
        before = time.process_time()
        chunk = plugin.executions.rotate()
        seal(
            encode_body("tasks", task_columns(chunk, Scrubber())),
            cluster="c",
            epoch=1,
            sequence=0,
            kept=chunk.rows,
            dropped=0,
        )
        if chunk.dependencies:
            encode_body("edges", edge_columns(chunk))
        best = min(best, (time.process_time() - before) / chunk.rows * 1e6)
    await close(scheduler)
    return best


def _paired(values: list[float], bare: list[float]) -> float:
    """Return the median over all rounds of the time a variant added; drifts of the machine cancel out."""
    return statistics.median(value - nothing for value, nothing in zip(values, bare, strict=True))
