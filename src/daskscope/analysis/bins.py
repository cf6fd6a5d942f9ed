"""Time in bins: sums that a reader can add up over any stretch of time, exactly.

Everything a report shows by time is a cube: sums by key and bin, of which only the cells that are not empty are held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskscope.analysis.grouping import product, sum_by
from daskscope.model.table import Array

#: The year 2255. What a broken clock says beyond is cut, or sums of microseconds would overflow.
LATEST = 2**53


@dataclass(frozen=True)
class Bins:
    """``count`` bins of ``width_us`` from ``start_us`` on."""

    start_us: int
    width_us: int
    count: int

    @classmethod
    def over(cls, start_us: int, stop_us: int, most: int = 400) -> Bins:
        """At most ``most`` bins of whole microseconds that cover the time from start to stop; at least one."""
        start_us, stop_us = (min(max(us, 0), LATEST) for us in (start_us, stop_us))
        length = max(0, stop_us - start_us)
        width = max(1, -(-length // max(1, most)))
        return cls(start_us, width, max(1, -(-length // width)))

    @property
    def stop_us(self) -> int:
        return self.start_us + self.width_us * self.count

    def clip(self, times: Array) -> Array:
        """Moments as microseconds since the start; what lies outside moves to the nearer end."""
        result: Array = np.clip(times, self.start_us, self.stop_us) - self.start_us
        return result

    def of(self, times: Array) -> Array:
        """The bin of each moment; what lies outside counts to the first or the last."""
        result: Array = np.minimum(self.clip(times) // self.width_us, self.count - 1)
        return result


@dataclass(frozen=True)
class Spread:
    """Microseconds by group and bin, one row per cell that is not empty, ordered by group and bin."""

    group: Array
    bin: Array
    us: Array


def spread(
    starts: Array, stops: Array, bins: Bins, groups: Array | None = None, weights: Array | None = None
) -> Spread:
    """Distribute intervals over bins; the sums are exact.

    What lies outside the bins is cut off, what stops before it starts has no length. ``groups`` are codes from 0, ``weights``
    are whole numbers that the length of each interval counts by.
    """
    starts, stops = bins.clip(starts), bins.clip(stops)
    rows = np.flatnonzero(stops > starts)
    starts, stops = starts[rows], stops[rows]
    weight = np.ones(len(rows), dtype=np.int64) if weights is None else weights[rows]
    base = np.zeros(len(rows), dtype=np.int64) if groups is None else groups[rows].astype(np.int64) * bins.count
    size = (int(groups.max()) + 1 if groups is not None and len(groups) else 1) * bins.count

    first, last = starts // bins.width_us, (stops - 1) // bins.width_us
    head = np.minimum(stops, (first + 1) * bins.width_us) - starts
    crossing = np.flatnonzero(last > first)
    tail = (stops - last * bins.width_us)[crossing]
    whole_cells, whole_us = _whole(base, first, last, weight * bins.width_us, size)
    cells = np.concatenate((base + first, (base + last)[crossing], whole_cells))
    us = np.concatenate((head * weight, tail * weight[crossing], whole_us))
    found, totals = sum_by(cells, us, size)
    return Spread(found // bins.count, found % bins.count, totals)


def _whole(base: Array, first: Array, last: Array, amount: Array, size: int) -> tuple[Array, Array]:
    """The cells that intervals cover from end to end, and how much of each.

    An interval adds its amount where it enters and takes it away where it leaves; levels in between are filled in last, so that a
    million intervals over all bins cost no more than the cells there are.
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


@dataclass(frozen=True)
class Cube:
    """Sums by key and bin, one row per cell that is not empty.

    ``keys`` has for each key column the texts its codes stand for; none where the code itself is the value.
    """

    keys: dict[str, list[str]]
    codes: dict[str, Array]
    bin: Array
    measures: dict[str, Array]

    @property
    def rows(self) -> int:
        return len(self.bin)


def make_cube(
    keys: Mapping[str, Sequence[str]], codes: Sequence[Array], bin_: Array, count: int, measures: Mapping[str, Array]
) -> Cube:
    """Sum rows into cells of ``count`` bins; cells in which every measure is zero are left out."""
    sizes = [len(texts) or int(column.max(initial=-1)) + 1 for texts, column in zip(keys.values(), codes, strict=True)]
    cells, parts = product([*codes, bin_], [*sizes, count])
    size = len(parts[-1])
    totals = {name: _sums(cells, values, size) for name, values in measures.items()}
    held = np.zeros(size, dtype=bool)
    for values in totals.values():
        held |= values != 0
    return Cube(
        {name: list(texts) for name, texts in keys.items()},
        {name: part[held] for name, part in zip(keys, parts[:-1], strict=True)},
        parts[-1][held],
        {name: values[held] for name, values in totals.items()},
    )


def _sums(cells: Array, values: Array, size: int) -> Array:
    totals = np.zeros(size, dtype=np.float64 if values.dtype.kind == "f" else np.int64)
    np.add.at(totals, cells, values)
    return totals


def total(
    cube: Cube, measure: str, first_bin: int = 0, stop_bin: int | None = None
) -> dict[tuple[str, ...], int | float]:
    """The sum of a measure for each combination of keys, over all bins or a stretch of them."""
    inside = cube.bin >= first_bin
    if stop_bin is not None:
        inside &= cube.bin < stop_bin
    sizes = [len(cube.keys[name]) or int(codes.max(initial=-1)) + 1 for name, codes in cube.codes.items()]
    groups, parts = product([codes[inside] for codes in cube.codes.values()], sizes)
    sums = _sums(groups, cube.measures[measure][inside], len(parts[0]))
    names = [_texts(cube, name, part) for name, part in zip(cube.codes, parts, strict=True)]
    return dict(zip(zip(*names, strict=True), sums.tolist(), strict=True))


def rows(cube: Cube) -> list[tuple[Any, ...]]:
    """Every cell as a tuple: the keys, the bin, the measures."""
    names = [_texts(cube, name, codes) for name, codes in cube.codes.items()]
    values = [values.tolist() for values in cube.measures.values()]
    return list(zip(*names, cube.bin.tolist(), *values, strict=True))


def _texts(cube: Cube, name: str, codes: Array) -> list[str]:
    texts = cube.keys[name]
    return [texts[code] for code in codes.tolist()] if texts else [str(code) for code in codes.tolist()]
