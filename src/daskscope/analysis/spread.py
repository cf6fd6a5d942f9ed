"""Amounts that belong to stretches of time, by day: a cluster that lived three days cost something on each."""

from __future__ import annotations

import numpy as np

from daskscope.model.table import Array
from daskscope.units import DAY


def day_shares(start_us: Array, stop_us: Array, first_day: int, days: int) -> Array:
    """Of each stretch (a row), the share that falls on each of ``days`` days from ``first_day`` (counted from the epoch).

    ``amounts @ day_shares(…)`` are the sums by day. A stretch without length falls on the day of its start.
    """
    begin = (start_us / DAY - first_day).astype(np.float64)
    end = np.maximum((stop_us / DAY - first_day).astype(np.float64), begin)
    length = end - begin
    edges = np.arange(days + 1, dtype=np.float64)
    # Of each stretch, the share before each edge; the share of a day is the difference of two.
    with np.errstate(divide="ignore", invalid="ignore"):
        before = (edges[None, :] - begin[:, None]) / length[:, None]
    point = (length == 0)[:, None]
    before = np.where(point, (edges[None, :] > begin[:, None]).astype(np.float64), np.clip(before, 0.0, 1.0))
    result: Array = np.diff(before, axis=1)
    return result
