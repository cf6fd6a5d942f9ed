"""Memory and the other things that are sampled: of each worker over time, and of all together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.bins import Bins
from daskscope.analysis.grouping import rows_by_group, where
from daskscope.model.recording import Recording
from daskscope.model.table import Array, Table

#: A worker whose last sample is older than this is taken to be gone.
FRESH_US = 5_000_000
#: More moments than this nobody can draw.
MOST_MOMENTS = 1_000_000
#: What the scheduler goes by among the workers.
SCHEDULER = "scheduler"


def _column(name: str) -> Callable[[Table], Array]:
    return lambda samples: samples[name].astype(np.float64)


def _sum(*names: str) -> Callable[[Table], Array]:
    # As floating point numbers: sums of nonsense must not wrap around.
    return lambda samples: sum((samples[name].astype(np.float64) for name in names), np.zeros(samples.rows))


#: How each measure comes from the columns of a sample.
MEASURES: dict[str, Callable[[Table], Array]] = {
    "process": _column("memory"),
    "managed": _column("managed"),
    "unmanaged_old": _column("unmanaged_old"),
    "unmanaged_recent": _column("unmanaged_recent"),
    "unmanaged": _sum("unmanaged_old", "unmanaged_recent"),
    "spilled": _column("spilled"),
    # What is needed for sure: recent unmanaged memory may go away by itself.
    "optimistic": _sum("managed", "unmanaged_old"),
    "managed_total": _sum("managed", "spilled"),
    "cpu_percent": _column("cpu_percent"),
    "net_read_bps": _column("net_read_bps"),
    "net_write_bps": _column("net_write_bps"),
    "disk_read_bps": _column("disk_read_bps"),
    "disk_write_bps": _column("disk_write_bps"),
}


@dataclass(frozen=True)
class Memory:
    """Samples on the grid of the bins: a row a worker, the largest value of each bin, NaN where there is no sample."""

    workers: list[str]
    measures: dict[str, Array]


def memory(recording: Recording, bins: Bins) -> Memory:
    """All measures of all workers inside the bins."""
    samples = _of_workers(recording["samples"])
    inside = (samples["time_us"] >= bins.start_us) & (samples["time_us"] <= bins.stop_us)
    samples = samples.take(inside)
    names = samples.strings("worker")
    workers, place = _places(samples)
    cells = place[names.codes] * bins.count + bins.of(samples["time_us"])
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    firsts = np.flatnonzero(np.diff(ordered, prepend=-1))
    measures = {}
    for name, of in MEASURES.items():
        grid = np.full(len(workers) * bins.count, np.nan)
        if len(firsts):
            grid[ordered[firsts]] = np.fmax.reduceat(of(samples)[order], firsts)
        measures[name] = grid.reshape(len(workers), bins.count)
    return Memory(workers, measures)


def cluster(recording: Recording, measure: str, start_us: int, stop_us: int, interval_us: int) -> tuple[Array, Array]:
    """A measure of all workers together at regular moments from start to stop, and these moments.

    Each worker counts with its last sample unless that is older than 5 s; NaN where there is none of any worker.
    """
    count = min(max(0, stop_us - start_us) // max(1, interval_us) + 1, MOST_MOMENTS)
    times = start_us + np.arange(count, dtype=np.int64) * max(1, interval_us)
    totals, seen = np.zeros(count), np.zeros(count, dtype=bool)
    samples = _of_workers(recording["samples"])
    values, moments = MEASURES[measure](samples), samples["time_us"]
    for _, rows in rows_by_group(samples.strings("worker").codes):
        mine = rows[np.argsort(moments[rows], kind="stable")]
        last = np.searchsorted(moments[mine], times, side="right") - 1
        at = mine[np.maximum(last, 0)]
        fresh = (last >= 0) & (times - moments[at] <= FRESH_US)
        totals[fresh] += values[at[fresh]]
        seen |= fresh
    return times, np.where(seen, totals, np.nan)


def by_worker(recording: Recording, measure: str) -> dict[str, tuple[Array, Array]]:
    """A measure of each worker: the moments of its samples, and their values."""
    samples = _of_workers(recording["samples"])
    values, moments, names = MEASURES[measure](samples), samples["time_us"], samples.strings("worker")
    ordered = {code: rows[np.argsort(moments[rows], kind="stable")] for code, rows in rows_by_group(names.codes)}
    return {str(names.values[code]): (moments[rows], values[rows]) for code, rows in ordered.items()}


def peaks(recording: Recording, measure: str = "process") -> dict[str, float]:
    """The largest sample of each worker."""
    samples = _of_workers(recording["samples"])
    values = MEASURES[measure](samples)
    names = samples.strings("worker")
    return {str(names.values[code]): float(np.fmax.reduce(values[rows])) for code, rows in rows_by_group(names.codes)}


def _of_workers(samples: Table) -> Table:
    scheduler = where(samples.strings("worker"), SCHEDULER)
    return samples.take(~scheduler) if scheduler.any() else samples


def _places(samples: Table) -> tuple[list[str], Array]:
    """The workers that have samples, in the order of their names, and for each code the place among them."""
    names = samples.strings("worker")
    used = np.unique(names.codes)
    workers = sorted(str(names.values[code]) for code in used.tolist())
    index = {worker: place for place, worker in enumerate(workers)}
    return workers, np.array([index.get(str(name), -1) for name in names.values], dtype=np.int64)
