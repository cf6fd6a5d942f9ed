"""Bins of time, and cubes: sums by key and bin that a reader can add up over any stretch of time, exactly.

Everything a report shows over time is a cube. A cube has rows only for its non-empty cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.columns.grouping import product
from daskscope.model.recording import Array

#: The year 2255. Later times come from a broken clock and are cut, because sums of microseconds would overflow.
LATEST = 2**53


@dataclass(frozen=True)
class Bins:
    """``count`` bins of ``width_us``, starting at ``start_us``."""

    start_us: int
    width_us: int
    count: int

    @classmethod
    def over(cls, start_us: int, stop_us: int, max_count: int = 400) -> Bins:
        """Return one to ``max_count`` bins of whole microseconds that cover the time from start to stop."""
        start_us, stop_us = (min(max(us, 0), LATEST) for us in (start_us, stop_us))
        length = max(0, stop_us - start_us)
        width = max(1, -(-length // max(1, max_count)))
        return cls(start_us, width, max(1, -(-length // width)))

    @property
    def stop_us(self) -> int:
        return self.start_us + self.width_us * self.count

    def clip(self, times: Array) -> Array:
        """Return times as microseconds since the start; times outside move to the nearer end."""
        result: Array = np.clip(times, self.start_us, self.stop_us) - self.start_us
        return result

    def of(self, times: Array) -> Array:
        """Return the bin of each time; times outside belong to the first or the last bin."""
        result: Array = np.minimum(self.clip(times) // self.width_us, self.count - 1)
        return result


@dataclass(frozen=True)
class Cube:
    """Sums by key and bin, one row per non-empty cell.

    ``keys`` maps each key column to the texts of its codes; the list is empty if the code itself is the value.
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
    kept = np.zeros(size, dtype=bool)
    for values in totals.values():
        kept |= values != 0
    return Cube(
        {name: list(texts) for name, texts in keys.items()},
        {name: part[kept] for name, part in zip(keys, parts[:-1], strict=True)},
        parts[-1][kept],
        {name: values[kept] for name, values in totals.items()},
    )


def add_cubes(cubes: Sequence[Cube], count: int) -> Cube:
    """Return the sum of cubes with the same keys and measures."""
    first = cubes[0]
    codes = [np.concatenate([cube.codes[name] for cube in cubes]) for name in first.keys]
    measures = {name: np.concatenate([cube.measures[name] for cube in cubes]) for name in first.measures}
    return make_cube(first.keys, codes, np.concatenate([cube.bin for cube in cubes]), count, measures)


def _sums(cells: Array, values: Array, size: int) -> Array:
    totals = np.zeros(size, dtype=np.float64 if values.dtype.kind == "f" else np.int64)
    np.add.at(totals, cells, values)
    return totals
