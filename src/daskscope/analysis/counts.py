"""How many executions ended when: counts, time and bytes by prefix and status."""

from __future__ import annotations

import numpy as np

from daskscope.analysis.bins import Bins, Cube, make_cube
from daskscope.model.recording import Recording


def counts(recording: Recording, bins: Bins) -> Cube:
    """Executions by prefix and status in the bin in which they stopped; they add up to the rows of the recording."""
    tasks = recording["tasks"]
    prefix, status = tasks.strings("prefix"), tasks.strings("status")
    measures = {
        "count": np.ones(tasks.rows, dtype=np.int64),
        "us": np.maximum(tasks["stop_us"] - tasks["start_us"], 0),
        "nbytes": np.maximum(tasks["nbytes"], 0),
    }
    keys = {"prefix": list(map(str, prefix.values)), "status": list(map(str, status.values))}
    return make_cube(keys, [prefix.codes, status.codes], bins.of(tasks["stop_us"]), bins.count, measures)
