"""How many executions ran at the same time."""

from __future__ import annotations

import numpy as np

from daskscope.analysis.bins import Bins, spread
from daskscope.analysis.grouping import where
from daskscope.analysis.prefixes import EXECUTED
from daskscope.model.recording import Recording
from daskscope.model.table import Array


def parallelism(recording: Recording, bins: Bins) -> Array:
    """For each bin the mean number of executions that were running; their mean is that of the run."""
    tasks = recording["tasks"]
    ran = where(tasks.strings("status"), *EXECUTED)
    found = spread(tasks["start_us"][ran], tasks["stop_us"][ran], bins)
    means = np.zeros(bins.count)
    means[found.bin] = found.us / bins.width_us
    return means


def mean_parallelism(recording: Recording, bins: Bins) -> float:
    """The mean number of running executions over all bins."""
    return float(parallelism(recording, bins).mean())
