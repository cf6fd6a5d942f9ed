"""Read cubes of ``daskscope.analysis.columns.bins`` in tests."""

from __future__ import annotations

from collections import Counter
from typing import Any

from daskscope.analysis.columns.bins import Cube


def cube_rows(cube: Cube) -> list[tuple[Any, ...]]:
    """Return every cell as a tuple: the keys, the bin, the measures."""
    names = [_texts(cube, name) for name in cube.codes]
    values = [values.tolist() for values in cube.measures.values()]
    return list(zip(*names, cube.bin.tolist(), *values, strict=True))


def cube_totals(
    cube: Cube, measure: str, first_bin: int = 0, stop_bin: int | None = None
) -> dict[tuple[str, ...], int | float]:
    """Return the sum of a measure for each combination of keys, over all bins or a range of them."""
    totals: Counter[tuple[str, ...]] = Counter()
    keys = zip(*(_texts(cube, name) for name in cube.codes), strict=True)
    for key, bin_, value in zip(keys, cube.bin.tolist(), cube.measures[measure].tolist(), strict=True):
        if first_bin <= bin_ and (stop_bin is None or bin_ < stop_bin):
            totals[key] += value
    return dict(totals)


def _texts(cube: Cube, name: str) -> list[str]:
    texts = cube.keys[name]
    return [texts[code] if texts else str(code) for code in cube.codes[name].tolist()]
