"""Dask's fine performance metrics over time; any label, any unit."""

from __future__ import annotations

import numpy as np

from daskscope.analysis.bins import Bins, Cube, make_cube
from daskscope.analysis.grouping import where
from daskscope.model.recording import Recording
from daskscope.model.table import Array

KEYS = ("context", "span", "prefix", "activity", "unit")


def fine_metrics(recording: Recording, bins: Bins) -> Cube:
    """What was added, in the bin of the moment it was reported; nothing is left out, so totals are those of the recording."""
    table = recording["activities"]
    columns = [table.strings(name) for name in KEYS]
    keys = {name: list(map(str, column.values)) for name, column in zip(KEYS, columns, strict=True)}
    codes = [column.codes for column in columns]
    return make_cube(keys, codes, bins.of(table["time_us"]), bins.count, {"value": _finite(table["value"])})


def cache_hits(recording: Recording) -> dict[str, float]:
    """The part of what tasks read that came from memory rather than from disk, by ``bytes`` and by ``count``.

    Only units of which something was read are there.
    """
    table = recording["activities"]
    values = _finite(table["value"])

    def read(activity: str, unit: str) -> float:
        rows = where(table.strings("activity"), activity) & where(table.strings("unit"), unit)
        return max(0.0, float(values[rows].sum()))

    shares = {}
    for unit in ("bytes", "count"):
        memory, disk = read("memory-read", unit), read("disk-read", unit)
        if memory + disk > 0:
            shares[unit] = memory / (memory + disk)
    return shares


def _finite(values: Array) -> Array:
    """Nonsense adds nothing."""
    return np.where(np.isfinite(values), values, 0.0)
