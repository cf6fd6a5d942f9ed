"""The largest sample taken while something ran."""

from __future__ import annotations

import numpy as np

from daskscope.model.table import Array, Strings, Table


def peaks_during(samples: Table, measure: str, workers: Strings, starts: Array, stops: Array) -> Array:
    """For each stretch of time on a worker the largest sample taken of that worker; 0 where there is none."""
    names = {text: code for code, text in enumerate(samples.strings("worker").values)}
    place = np.array([names.get(text, -1) for text in workers.values], dtype=np.int64)
    moments, turns = np.unique(samples["time_us"], return_inverse=True)
    # Moments by their rank: microseconds times workers could overflow where a clock is off.
    keys = samples.strings("worker").codes.astype(np.int64) * (len(moments) + 1) + turns
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], samples[measure][order]
    worker = place[workers.codes]
    first = np.searchsorted(keys, worker * (len(moments) + 1) + np.searchsorted(moments, starts))
    last = np.searchsorted(keys, worker * (len(moments) + 1) + np.searchsorted(moments, stops, side="right"))
    return _largest(values, first, np.where(worker >= 0, last, first))


def _largest(values: Array, first: Array, last: Array) -> Array:
    """The largest of ``values[first:last]`` for many stretches at once; 0 for empty ones.

    Any stretch is two overlapping ones whose length is a power of two, so the largest of all stretches of one power after the
    other is enough.
    """
    found = np.zeros(len(first), dtype=np.int64)
    rows = np.flatnonzero(last > first)
    lengths = (last - first)[rows]
    powers = np.frexp(lengths)[1] - 1
    level = values
    for power in range(int(powers.max(initial=-1)) + 1):
        mine = rows[powers == power]
        found[mine] = np.maximum(level[first[mine]], level[last[mine] - 2**power])
        half = 2**power
        level = np.maximum(level[: len(level) - half], level[half:]) if len(level) > half else level
    return np.maximum(found, 0)
