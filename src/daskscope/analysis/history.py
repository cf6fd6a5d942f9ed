"""A cluster over time: how many workers it had and was asked to have, and how many of their threads were busy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskscope.model.table import Array

#: As many steps as a chart of 1,000 pixels shows well.
MOST_STEPS = 240
#: Workers by steps that are held at once: 100,000 of them took 400 MB, which a hostile recorder claims in a few bodies.
LIVES_AT_ONCE = 1_000


@dataclass(frozen=True)
class Life:
    """A worker from its joining to its leaving."""

    start_us: int
    end_us: int
    threads: int


@dataclass(frozen=True)
class Steps:
    """Stretches of the same length, one after the other; the time they cover may begin inside the first and end inside the last."""

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
        """How much of the time lies in each step; of no time at all, a microsecond."""
        widths: Array = np.maximum(np.diff(np.clip(self.edges, self.from_us, self.to_us)), 1)
        return widths


def steps_of(start_us: int, end_us: int, least_us: int, most: int = MOST_STEPS) -> Steps:
    """At most ``most`` steps from a start to an end, each a multiple of ``least_us`` (what the sums are kept by)."""
    first = start_us // least_us * least_us
    span = max(end_us - first, 1)
    step = least_us * -(-span // (least_us * most))
    return Steps(first, step, -(-span // step), start_us, max(start_us, end_us))


def present(lives: Sequence[Life], steps: Steps) -> tuple[Array, Array]:
    """Workers and threads that were there, on average over each step."""
    workers, threads = np.zeros(steps.count), np.zeros(steps.count)
    for first in range(0, len(lives), LIVES_AT_ONCE):
        part = lives[first : first + LIVES_AT_ONCE]
        inside = _shares(part, steps)
        workers += inside.sum(axis=0)
        threads += np.array([life.threads for life in part], dtype=np.float64) @ inside
    return workers, threads


def _shares(lives: Sequence[Life], steps: Steps) -> Array:
    """For each worker (a row), which share of each step it was there."""
    start = np.array([life.start_us for life in lives], dtype=np.float64)[:, None]
    end = np.array([life.end_us for life in lives], dtype=np.float64)[:, None]
    edges = np.clip(steps.edges, steps.from_us, steps.to_us)[None, :]
    before = np.clip(edges - start, 0, np.maximum(end - start, 0))
    shares: Array = np.diff(before, axis=1) / steps.widths
    return shares


def busy_threads(compute_us: Array, threads: Array, steps: Steps) -> Array:
    """Busy threads in each step, on average, from compute time that is known by when an execution ended.

    An execution longer than a step ends with more time than the step had: what its threads could not have done there, they did
    before.
    """
    busy = np.zeros(steps.count)
    room, carried = threads * steps.widths, 0.0
    for step in range(steps.count - 1, -1, -1):
        carried += float(compute_us[step])
        busy[step] = min(carried, float(room[step]))
        carried -= busy[step]
    result: Array = busy / steps.widths
    return result


def wanted_workers(times_us: Sequence[int], targets: Sequence[int], steps: Steps) -> list[int | None]:
    """The most workers that were asked for at any time of each step; None before anybody asked."""
    order = np.argsort(np.array(times_us, dtype=np.int64), kind="stable")
    times, wanted = np.array(times_us, dtype=np.int64)[order], np.array(targets, dtype=np.int64)[order]
    # What was asked for before a step begins holds in it, too.
    first = np.maximum(np.searchsorted(times, steps.edges[:-1], side="right") - 1, 0)
    last = np.searchsorted(times, steps.edges[1:], side="left")
    return [int(wanted[begin:end].max()) if end > 0 else None for begin, end in zip(first, last, strict=True)]
