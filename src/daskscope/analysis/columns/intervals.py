"""Interval arithmetic: flatten, sum, overlap and merge stretches of time, and distribute them over bins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.columns.grouping import counts, flat_strings, is_dense, steps, sum_by, sums
from daskscope.model.recording import Array, Strings, Table
from daskscope.units import DAY


def task_intervals(tasks: Table, rows: Array | None = None) -> tuple[Array, Strings, Array, Array]:
    """Return the activities of executions besides computing: row of the execution, action, start and stop.

    ``rows`` limits the result to some executions.
    """
    columns = [tasks.lists(f"interval_{name}") for name in ("action", "start_us", "stop_us")]
    if rows is not None:
        columns = [column.take(rows) for column in columns]
    actions, starts, stops = columns
    same = np.ones(1, dtype=bool)
    for column in (starts, stops):
        if column.offsets is not actions.offsets:
            same = same & (actions.lengths == column.lengths)
    matching = None
    if not same.all():
        # The recorder never writes rows whose list columns disagree, so there is no way to interpret them.
        matching = np.flatnonzero(same)
        actions, starts, stops = (column.take(matching) for column in columns)
    owners = actions.owners
    for index in (matching, rows):
        owners = owners if index is None else index[owners]
    return owners, flat_strings(actions), np.asarray(starts.flat), np.asarray(stops.flat)


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
    return merge_all((starts[some], stops[some]) for some in steps(len(starts)))


def merge_all(parts: Iterable[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the union of the intervals of all parts."""
    merged = [_merge(starts, stops) for starts, stops in parts]
    if len(merged) == 1:
        return merged[0]
    starts, stops = map(np.concatenate, zip(*merged, strict=True))
    return _merge(starts, stops)


def _merge(starts: Array, stops: Array) -> tuple[Array, Array]:
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
    size = int(groups.max()) + 1 if groups is not None and len(groups) else 1
    parts = ((starts[some], stops[some], _some(groups, some), _some(weights, some)) for some in steps(len(starts)))
    return spread_all(parts, bins, size, len(starts))


def spread_all(
    parts: Iterable[tuple[Array, Array, Array | None, Array | None]], bins: Bins, groups: int, rows: int
) -> Spread:
    """Distribute intervals given in parts (starts, stops, groups and weights); ``rows`` is the number of all intervals."""
    size = groups * bins.count
    cells = (_spread_some(starts, stops, bins, group, weights) for starts, stops, group, weights in parts)
    found, totals = (_sum_dense if is_dense(size, rows) else _sum_sparse)(cells, size)
    return Spread(found // bins.count, found % bins.count, totals)


def _some(values: Array | None, some: slice) -> Array | None:
    return None if values is None else values[some]


@dataclass(frozen=True)
class _Parts:
    """Amounts by cell, and changes of the amount of all cells from one on."""

    cells: Array
    us: Array
    changed: Array
    change: Array


def _spread_some(starts: Array, stops: Array, bins: Bins, groups: Array | None, weights: Array | None) -> _Parts:
    """Return the time that the given intervals add to each cell.

    An interval adds the width of a bin where it enters the first bin that it covers from end to end, and subtracts it where it
    leaves the last one. So a million intervals over all bins cost only as much as there are cells.
    """
    starts, stops = bins.clip(starts), bins.clip(stops)
    rows = np.flatnonzero(stops > starts)
    starts, stops = starts[rows], stops[rows]
    weight = np.ones(1, dtype=np.int64) if weights is None else weights[rows]
    base = np.zeros(1, dtype=np.int64) if groups is None else groups[rows].astype(np.int64) * bins.count
    first, last = starts // bins.width_us, (stops - 1) // bins.width_us
    enters, leaves = base + first, base + last
    head = (np.minimum(stops, (first + 1) * bins.width_us) - starts) * weight
    crossing = np.flatnonzero(last > first)
    tail = ((stops - last * bins.width_us) * weight)[crossing]
    through = np.flatnonzero(last > first + 1)
    width = np.broadcast_to(weight * bins.width_us, len(rows))[through]
    return _Parts(
        np.concatenate((enters, leaves[crossing])),
        np.concatenate((head, tail)),
        np.concatenate((enters[through] + 1, leaves[through])),
        np.concatenate((width, -width)),
    )


def _sum_dense(parts: Iterable[_Parts], size: int) -> tuple[Array, Array]:
    """Return the cells that have a sum, in order, and their sums, from an array with a slot per cell."""
    totals, changes = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    has_changes = False
    for part in parts:
        np.add.at(totals, part.cells, part.us)
        np.add.at(changes, part.changed, part.change)
        has_changes |= len(part.changed) > 0
    if has_changes:
        totals += np.cumsum(changes, out=changes)
    found = np.flatnonzero(totals)
    return found, totals[found]


def _sum_sparse(parts: Iterable[_Parts], size: int) -> tuple[Array, Array]:
    """Return the same by sorting."""
    cells, amounts, changed, changes = list[Array](), list[Array](), list[Array](), list[Array]()
    for part in parts:
        for (keys, values), (found, totals) in (
            (sum_by(part.cells, part.us, size), (cells, amounts)),
            (sum_by(part.changed, part.change, size), (changed, changes)),
        ):
            found.append(keys)
            totals.append(values)
    at, change = sum_by(np.concatenate(changed), np.concatenate(changes), size)
    levels = np.cumsum(change)
    filled = np.flatnonzero(levels)
    lengths = np.diff(at, append=at[-1:])[filled]
    offsets = np.cumsum(lengths) - lengths
    covered = np.repeat(at[filled] - offsets, lengths) + np.arange(int(lengths.sum()))
    return sum_by(
        np.concatenate((*cells, covered)), np.concatenate((*amounts, np.repeat(levels[filled], lengths))), size
    )
