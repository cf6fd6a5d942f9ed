"""A cluster over time: workers present, workers requested, and busy threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.columns.grouping import where
from daskscope.analysis.columns.intervals import overlaps_us, spread
from daskscope.model.recording import Array, Table

#: Number of steps that a chart of 1,000 pixels shows well.
MAX_STEPS = 240
#: Lifetimes processed at a time: 100,000 at once took 400 MB, and a hostile recorder sends as many in a few requests.
CHUNK = 1_000


@dataclass(frozen=True)
class Life:
    """One worker from joining to leaving."""

    start_us: int
    end_us: int
    threads: int


@dataclass(frozen=True)
class Steps:
    """Consecutive steps of the same length; the covered time may begin inside the first and end inside the last."""

    start_us: int
    step_us: int
    count: int
    from_us: int
    to_us: int

    @property
    def edges(self) -> Array:
        edges: Array = self.start_us + self.step_us * np.arange(self.count + 1, dtype=np.int64)
        return edges

    @property
    def widths(self) -> Array:
        """Return how much of the covered time lies in each step; at least a microsecond."""
        widths: Array = np.maximum(np.diff(np.clip(self.edges, self.from_us, self.to_us)), 1)
        return widths


def steps_of(start_us: int, end_us: int, resolution_us: int, max_count: int = MAX_STEPS) -> Steps:
    """Return at most ``max_count`` steps from start to end, each a multiple of ``resolution_us``, the resolution of the sums."""
    first = start_us // resolution_us * resolution_us
    span = max(end_us - first, 1)
    step = resolution_us * -(-span // (resolution_us * max_count))
    return Steps(first, step, -(-span // step), start_us, max(start_us, end_us))


def present(lives: Sequence[Life], steps: Steps) -> tuple[Array, Array]:
    """Return the mean number of workers and threads present in each step."""
    workers, threads = np.zeros(steps.count), np.zeros(steps.count)
    edges = np.clip(steps.edges, steps.from_us, steps.to_us)
    for first in range(0, len(lives), CHUNK):
        part = lives[first : first + CHUNK]
        starts, ends = (
            np.array([getattr(life, name) for life in part], dtype=np.float64) for name in ("start_us", "end_us")
        )
        inside = overlaps_us(starts, ends, edges) / steps.widths
        workers += inside.sum(axis=0)
        threads += np.array([life.threads for life in part], dtype=np.float64) @ inside
    return workers, threads


def busy_threads(compute_us: Array, threads: Array, steps: Steps) -> Array:
    """Return the mean number of busy threads in each step, from compute time summed by the end of executions.

    An execution longer than a step brings more compute time than the threads had in that step. The excess is moved to the
    steps before.
    """
    busy = np.zeros(steps.count)
    room, carried = threads * steps.widths, 0.0
    for step in range(steps.count - 1, -1, -1):
        carried += float(compute_us[step])
        busy[step] = min(carried, float(room[step]))
        carried -= busy[step]
    result: Array = busy / steps.widths
    return result


@dataclass(frozen=True)
class TaskSums:
    """Executions in each step: mean number of busy threads, executions that stopped, and those that failed."""

    busy: Array
    tasks: Array
    errors: Array


def sum_tasks(tasks: Table, steps: Steps) -> TaskSums:
    """Sum up executions by step. Unlike totals, which have a resolution of ten seconds, this takes steps of any length."""
    bins = Bins(steps.start_us, steps.step_us, steps.count)
    inside = spread(tasks["start_us"], tasks["stop_us"], bins)
    busy = np.zeros(steps.count)
    busy[inside.bin] = inside.us
    last = bins.of(tasks["stop_us"])
    failed = where(tasks.strings("status"), "error", "retried")
    return TaskSums(
        busy / steps.widths,
        np.bincount(last, minlength=steps.count),
        np.bincount(last[failed], minlength=steps.count),
    )


def wanted_workers(times_us: Sequence[int], targets: Sequence[int], steps: Steps) -> list[int | None]:
    """Return the maximum number of workers requested in each step; None before the first request."""
    order = np.argsort(np.array(times_us, dtype=np.int64), kind="stable")
    times, wanted = np.array(times_us, dtype=np.int64)[order], np.array(targets, dtype=np.int64)[order]
    # A request made before a step still holds in it.
    first = np.maximum(np.searchsorted(times, steps.edges[:-1], side="right") - 1, 0)
    last = np.searchsorted(times, steps.edges[1:], side="left")
    return [int(wanted[begin:end].max()) if end > 0 else None for begin, end in zip(first, last, strict=True)]
