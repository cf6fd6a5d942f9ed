"""What a chunk costs: the duration of a task is nearly a line, with a fixed part and a part per byte.

The executions of a prefix show both parts if their results, or their inputs, have clearly different sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.executions import input_nbytes
from daskscope.model.recording import Recording
from daskscope.model.table import Array

MIN_TASKS = 20
#: The line explains this share of the variance, of sizes whose 90th percentile is this many times the 10th.
MIN_EXPLAINED = 0.7
MIN_SPREAD = 1.5
#: The largest of the sizes, by their median: more is skew.
MAX_SKEW = 5.0


@dataclass(frozen=True)
class Line:
    """The sizes of executions in the order of their start, with the line through their durations."""

    nbytes: Array
    fixed_us: float
    us_per_byte: float


def fit_line(recording: Recording, rows: Array) -> Line | None:
    """Return the line through the durations of the executions in some rows; None if they do not show one."""
    if len(rows) < MIN_TASKS:
        return None
    tasks = recording["tasks"]
    rows = rows[np.argsort(tasks["start_us"][rows], kind="stable")]
    nbytes = np.maximum(tasks["nbytes"][rows], 0).astype(np.float64)
    if not _is_spread(nbytes):
        nbytes = input_nbytes(recording, rows).astype(np.float64)
        if not _is_spread(nbytes):
            return None
    us = (tasks["stop_us"][rows] - tasks["start_us"][rows]).astype(np.float64)
    slope, fixed = np.polyfit(nbytes, us, 1)
    left = us - (fixed + slope * nbytes)
    explained = 1.0 - left.var() / us.var() if us.var() else 0.0
    return Line(nbytes, max(float(fixed), 0.0), float(slope)) if slope > 0 and explained >= MIN_EXPLAINED else None


def _is_spread(nbytes: Array) -> bool:
    """Return whether sizes differ enough to fit a line, without being skewed."""
    low, middle, high = np.percentile(nbytes, (10, 50, 90)).tolist()
    return bool(low > 0 and high >= MIN_SPREAD * low and float(nbytes.max()) <= MAX_SKEW * middle)
