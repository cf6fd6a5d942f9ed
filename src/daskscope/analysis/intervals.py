"""Interval arithmetic: flatten, sum, overlap and merge stretches of time, and distribute them over bins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.bins import Bins
from daskscope.analysis.grouping import counts, flat_strings, sum_by, sums
from daskscope.model.table import Array, Strings, Table
from daskscope.units import DAY

#: Intervals to process at once. Five million at once take 0.8 GB besides themselves, a million a fifth of that.
STEP = 1_000_000


def task_intervals(tasks: Table, rows: Array | None = None) -> tuple[Array, Strings, Array, Array]:
    """Return the activities of executions besides computing: row of the execution, action, start and stop.

    ``rows`` limits the result to some executions.
    """
    columns = [tasks.lists(f"interval_{name}") for name in ("action", "start_us", "stop_us")]
    if rows is None:
        rows = np.arange(tasks.rows)
    else:
        columns = [column.take(rows) for column in columns]
    actions, starts, stops = columns
    same = (actions.lengths == starts.lengths) & (actions.lengths == stops.lengths)
    if not same.all():
        # The recorder never writes rows whose list columns disagree, so there is no way to interpret them.
        matching = np.flatnonzero(same)
        rows = rows[matching]
        actions, starts, stops = (column.take(matching) for column in columns)
    return np.repeat(rows, actions.lengths), flat_strings(actions), np.asarray(starts.flat), np.asarray(stops.flat)


def sum_by_action(tasks: Table, groups: Array, size: int) -> list[Mapping[str, int]]:
    """Return microseconds by action for each of ``size`` groups; ``groups`` has the group of each execution."""
    owners, actions, starts, stops = task_intervals(tasks)
    if not len(actions):
        return [{}] * size
    width = len(actions.values)
    cells = groups[owners].astype(np.int64) * width + actions.codes
    totals = sums(cells, stops - starts, size * width).reshape(size, width)
    used = counts(cells, size * width).reshape(size, width) > 0
    return [
        {str(actions.values[i]): int(totals[group, i]) for i in np.flatnonzero(used[group]).tolist()}
        for group in range(size)
    ]


def union_us(starts: Array, stops: Array) -> int:
    """Return the length of the union of intervals; an interval that stops before it starts has no length."""
    rows = np.flatnonzero(stops > starts)
    if not len(rows):
        return 0
    order = rows[np.argsort(starts[rows], kind="stable")]
    starts, stops = starts[order], stops[order]
    # Each interval adds only the part beyond the end of all earlier ones.
    reached = np.concatenate((starts[:1], np.maximum.accumulate(stops)[:-1]))
    return int(np.maximum(stops - np.maximum(starts, reached), 0).sum())


def merge(starts: Array, stops: Array) -> tuple[Array, Array]:
    """Return the union of intervals as intervals that do not touch, in order of time."""
    rows = np.flatnonzero(stops > starts)
    order = rows[np.argsort(starts[rows], kind="stable")]
    starts, stops = starts[order], stops[order]
    if not len(starts):
        return starts, stops
    reached = np.maximum.accumulate(stops)
    first = np.concatenate(([True], starts[1:] > reached[:-1]))
    last = np.concatenate((first[1:], [True]))
    return starts[first], reached[last]


def overlaps_us(starts: Array, stops: Array, edges: Array) -> Array:
    """Return how much of each interval (a row) lies between each two neighbouring edges (a column), as floats."""
    starts = starts.astype(np.float64)[:, None]
    lengths = np.maximum(stops[:, None] - starts, 0)
    result: Array = np.diff(np.clip(edges[None, :] - starts, 0, lengths), axis=1)
    return result


def day_shares(starts: Array, stops: Array, first_day: int, days: int) -> Array:
    """Return the share of each interval (a row) on each of ``days`` days from ``first_day`` (counted from the epoch).

    ``amounts @ day_shares(…)`` sums amounts by day. An interval without length belongs to the day of its start.
    """
    edges = (first_day + np.arange(days + 1, dtype=np.float64)) * DAY
    lengths = np.maximum(stops - starts, 0).astype(np.float64)[:, None]
    empty = lengths == 0
    on_day = (starts[:, None] < edges[None, 1:]) & (starts[:, None] >= edges[None, :-1])
    return np.where(empty, on_day, overlaps_us(starts, stops, edges) / np.where(empty, 1.0, lengths))


def alone_us(starts: Array, stops: Array, row: int) -> int:
    """Return for how long an interval was the only one."""
    start, stop = int(starts[row]), int(stops[row])
    beside = (starts < stop) & (stops > start)
    beside[row] = False
    return max(0, stop - start - union_us(np.maximum(starts[beside], start), np.minimum(stops[beside], stop)))


@dataclass(frozen=True)
class Spread:
    """Microseconds by group and bin: one row per non-empty cell, ordered by group and bin."""

    group: Array
    bin: Array
    us: Array


def spread(
    starts: Array, stops: Array, bins: Bins, groups: Array | None = None, weights: Array | None = None
) -> Spread:
    """Distribute intervals over bins; the sums are exact.

    Parts outside the bins are cut off, and an interval that stops before it starts has no length. ``groups`` are codes from
    0; ``weights`` are whole numbers by which the length of each interval is multiplied.
    """
    size = (int(groups.max()) + 1 if groups is not None and len(groups) else 1) * bins.count
    parts = [
        _spread_some(starts[some], stops[some], bins, _some(groups, some), _some(weights, some), size)
        for some in steps(len(starts))
    ]
    found, totals = parts[0]
    if len(parts) > 1:
        found, totals = sum_by(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]), size)
    return Spread(found // bins.count, found % bins.count, totals)


def steps(count: int) -> list[slice]:
    """Return slices that cover ``count`` rows, at least one."""
    return [slice(first, first + STEP) for first in range(0, max(1, count), STEP)]


def _some(values: Array | None, some: slice) -> Array | None:
    return None if values is None else values[some]


def _spread_some(
    starts: Array, stops: Array, bins: Bins, groups: Array | None, weights: Array | None, size: int
) -> tuple[Array, Array]:
    """Return the cells of some intervals, in order, and the sum in each."""
    starts, stops = bins.clip(starts), bins.clip(stops)
    rows = np.flatnonzero(stops > starts)
    starts, stops = starts[rows], stops[rows]
    weight = np.ones(len(rows), dtype=np.int64) if weights is None else weights[rows]
    base = np.zeros(len(rows), dtype=np.int64) if groups is None else groups[rows].astype(np.int64) * bins.count

    first, last = starts // bins.width_us, (stops - 1) // bins.width_us
    head = np.minimum(stops, (first + 1) * bins.width_us) - starts
    crossing = np.flatnonzero(last > first)
    tail = (stops - last * bins.width_us)[crossing]
    full_cells, full_us = _fully_covered(base, first, last, weight * bins.width_us, size)
    cells = np.concatenate((base + first, (base + last)[crossing], full_cells))
    us = np.concatenate((head * weight, tail * weight[crossing], full_us))
    return sum_by(cells, us, size)


def _fully_covered(base: Array, first: Array, last: Array, amount: Array, size: int) -> tuple[Array, Array]:
    """Return the cells that intervals cover from end to end, and the amount in each.

    An interval adds its amount where it enters and subtracts it where it leaves. The levels in between are filled in last,
    so that a million intervals over all bins cost only as much as there are cells.
    """
    rows = np.flatnonzero(last > first + 1)
    cells = np.concatenate(((base + first + 1)[rows], (base + last)[rows]))
    steps, changes = sum_by(cells, np.concatenate((amount[rows], -amount[rows])), size)
    levels = np.cumsum(changes)
    filled = np.flatnonzero(levels)
    lengths = np.diff(steps, append=steps[-1:])[filled]
    offsets = np.cumsum(lengths) - lengths
    covered = np.repeat(steps[filled] - offsets, lengths) + np.arange(int(lengths.sum()))
    return covered, np.repeat(levels[filled], lengths)
