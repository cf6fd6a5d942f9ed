"""Memory of workers, and bytes between them, over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.columns.bins import Bins, Cube, make_cube
from daskscope.analysis.columns.grouping import renumber, rows_by_group, steps, where
from daskscope.model.recording import Array, Recording, Strings, Table

#: Larger transfers are invalid, and would overflow sums.
MAX_BYTES = 2**50


@dataclass(frozen=True)
class PairTotal:
    """All transfers from one worker to another."""

    source: str
    destination: str
    count: int
    nbytes: int
    us: int


def pair_totals(recording: Recording, min_nbytes: int) -> list[PairTotal]:
    """Return the totals of each pair of workers, of transfers of at least ``min_nbytes``, each transfer once."""
    table = recording["transfers"]
    names, sources, destinations, once = _once(table)
    rows = np.flatnonzero(once & (table["nbytes"] >= min_nbytes))
    width = max(1, len(names))
    codes, pairs = renumber(sources[rows] * width + destinations[rows], width * width)
    counts = np.bincount(codes, minlength=len(pairs))
    nbytes, us = (
        np.bincount(codes, weights=values, minlength=len(pairs))
        for values in (
            np.clip(table["nbytes"][rows], 0, MAX_BYTES),
            np.maximum(table["stop_us"][rows] - table["start_us"][rows], 0),
        )
    )
    return [
        PairTotal(names[pair // width], names[pair % width], count, int(size), int(time))
        for pair, count, size, time in zip(pairs.tolist(), counts.tolist(), nbytes.tolist(), us.tolist())
    ]


def transfers(recording: Recording, bins: Bins) -> Cube:
    """Return each transfer once, in the bin in which it ended: number, bytes, bytes on the wire, and time.

    Both sides report a transfer. The receiver's report counts; the sender's counts only for pairs of workers without a
    report from the receiver. Only the sender knows the bytes on the wire.
    """
    table = recording["transfers"]
    names, sources, destinations, once = _once(table)
    outgoing = where(table.strings("direction"), "outgoing")
    measures = {
        "count": once.astype(np.int64),
        "nbytes": np.where(once, np.clip(table["nbytes"], 0, MAX_BYTES), 0),
        "compressed": np.where(outgoing, np.clip(table["compressed_nbytes"], 0, MAX_BYTES), 0),
        "us": np.where(once, np.maximum(bins.clip(table["stop_us"]) - bins.clip(table["start_us"]), 0), 0),
    }
    keys = {"source": names, "destination": names}
    return make_cube(keys, [sources, destinations], bins.of(table["stop_us"]), bins.count, measures)


def shuffled(recording: Recording) -> int:
    """Return the bytes that P2P shuffles sent between workers; they bypass Dask's transfers."""
    table = recording["activities"]
    sent = where(table.strings("context"), "p2p") & where(table.strings("prefix"), "background-comms")
    sent &= where(table.strings("activity"), "process") & where(table.strings("unit"), "bytes")
    return int(np.nan_to_num(np.maximum(table["value"][sent], 0.0), posinf=0.0).sum())


def _once(table: Table) -> tuple[list[str], Array, Array, Array]:
    """Return names of workers, sources and destinations as positions among them, and which reports count."""
    names, sources, destinations = _workers(table)
    incoming, outgoing = (where(table.strings("direction"), word) for word in ("incoming", "outgoing"))
    pairs = sources * max(1, len(names)) + destinations
    return names, sources, destinations, incoming | (outgoing & ~np.isin(pairs, pairs[incoming]))


def _workers(table: Table) -> tuple[list[str], Array, Array]:
    """Return the names of all workers, and sources and destinations as positions among them."""
    sources, destinations = table.strings("source"), table.strings("destination")
    used = [column.values[np.unique(column.codes)].tolist() for column in (sources, destinations)]
    names = sorted({str(name) for texts in used for name in texts})
    index = {name: position for position, name in enumerate(names)}

    def positions(texts: Array) -> Array:
        return np.array([index.get(str(text), 0) for text in texts], dtype=np.int64)

    return names, positions(sources.values)[sources.codes], positions(destinations.values)[destinations.codes]


#: A worker whose last sample is older counts as gone.
FRESH_US = 5_000_000
#: Longer series cannot be drawn.
MAX_POINTS = 1_000_000
#: Name of the scheduler in the ``worker`` column.
SCHEDULER = "scheduler"


def _column(name: str) -> Callable[[Table], Array]:
    return lambda samples: samples[name].astype(np.float64)


def _sum(*names: str) -> Callable[[Table], Array]:
    # As floats: sums of invalid values must not wrap around.
    return lambda samples: sum((samples[name].astype(np.float64) for name in names), np.zeros(samples.rows))


#: Each measure as a function of the columns of a sample.
MEASURES: dict[str, Callable[[Table], Array]] = {
    "process": _column("memory"),
    "managed": _column("managed"),
    "unmanaged_old": _column("unmanaged_old"),
    "unmanaged_recent": _column("unmanaged_recent"),
    "unmanaged": _sum("unmanaged_old", "unmanaged_recent"),
    "spilled": _column("spilled"),
    # Memory that is certainly in use: recent unmanaged memory may be released soon.
    "optimistic": _sum("managed", "unmanaged_old"),
    "managed_total": _sum("managed", "spilled"),
    "cpu_percent": _column("cpu_percent"),
    "net_read_bps": _column("net_read_bps"),
    "net_write_bps": _column("net_write_bps"),
    "disk_read_bps": _column("disk_read_bps"),
    "disk_write_bps": _column("disk_write_bps"),
}

#: Measures of the scheduler.
SCHEDULER_MEASURES: dict[str, Callable[[Table], Array]] = {
    name: _column(name) for name in ("cpu_percent", "loop_lag_us", "processing")
} | {"process": _column("memory")}


@dataclass(frozen=True)
class Memory:
    """Samples by worker (row) and bin (column): the maximum of each bin, NaN without a sample."""

    workers: list[str]
    measures: dict[str, Array]


def memory(recording: Recording, bins: Bins) -> Memory:
    """Return all measures of all workers inside the bins."""
    return _by_bin(_without_scheduler(recording["samples"]), bins, MEASURES)


def scheduler(recording: Recording, bins: Bins) -> Memory:
    """Return the measures of the scheduler inside the bins."""
    samples = recording["samples"]
    return _by_bin(samples.take(where(samples.strings("worker"), SCHEDULER)), bins, SCHEDULER_MEASURES)


def _by_bin(samples: Table, bins: Bins, wanted: dict[str, Callable[[Table], Array]]) -> Memory:
    inside = (samples["time_us"] >= bins.start_us) & (samples["time_us"] <= bins.stop_us)
    samples = samples.take(inside)
    names = samples.strings("worker")
    workers, position = _positions(samples)
    cells = position[names.codes] * bins.count + bins.of(samples["time_us"])
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    firsts = np.flatnonzero(np.diff(ordered, prepend=-1))
    measures = {}
    for name, measure in wanted.items():
        grid = np.full(len(workers) * bins.count, np.nan)
        if len(firsts):
            grid[ordered[firsts]] = np.fmax.reduceat(measure(samples)[order], firsts)
        measures[name] = grid.reshape(len(workers), bins.count)
    return Memory(workers, measures)


def cluster(recording: Recording, measure: str, start_us: int, stop_us: int, interval_us: int) -> tuple[Array, Array]:
    """Return regular times from start to stop, and the sum of a measure over all workers at each of them.

    Each worker counts with its last sample until it left, unless that is older than 5 s. The sum is NaN if no worker has one.
    """
    count = min(max(0, stop_us - start_us) // max(1, interval_us) + 1, MAX_POINTS)
    times = start_us + np.arange(count, dtype=np.int64) * max(1, interval_us)
    totals, seen = np.zeros(count), np.zeros(count, dtype=bool)
    samples = _without_scheduler(recording["samples"])
    values, moments, names = MEASURES[measure](samples), samples["time_us"], samples.strings("worker")
    left = _left_us(recording["workers"])
    for code, rows in rows_by_group(names.codes):
        mine = rows[np.argsort(moments[rows], kind="stable")]
        last = np.searchsorted(moments[mine], times, side="right") - 1
        at = mine[np.maximum(last, 0)]
        fresh = (last >= 0) & (times - moments[at] <= FRESH_US)
        # Else the worker that replaced it would count twice.
        if end := left.get(str(names.values[code])):
            fresh &= times <= max(end, int(moments[mine[-1]]))
        totals[fresh] += values[at[fresh]]
        seen |= fresh
    return times, np.where(seen, totals, np.nan)


def _left_us(workers: Table) -> dict[str, int]:
    """Return when the last worker at each address left; 0 if it is still connected."""
    found: dict[str, int] = {}
    for address, end in workers.records("worker", "end_us"):
        found[address] = max(found.get(address, 0), end) if end and found.get(address, 1) else 0
    return found


def by_worker(recording: Recording, measure: str) -> dict[str, tuple[Array, Array]]:
    """Return the times and values of the samples of each worker."""
    samples = _without_scheduler(recording["samples"])
    values, moments, names = MEASURES[measure](samples), samples["time_us"], samples.strings("worker")
    ordered = {code: rows[np.argsort(moments[rows], kind="stable")] for code, rows in rows_by_group(names.codes)}
    return {str(names.values[code]): (moments[rows], values[rows]) for code, rows in ordered.items()}


def peaks_during(samples: Table, measure: str, workers: Strings, starts: Array, stops: Array) -> Array:
    """Return the maximum sample of a worker during each interval; 0 without a sample."""
    names = {text: code for code, text in enumerate(samples.strings("worker").values)}
    position = np.array([names.get(text, -1) for text in workers.values], dtype=np.int64)
    moments, ranks = np.unique(samples["time_us"], return_inverse=True)
    # Times as ranks: microseconds × workers could overflow if a clock is wrong.
    keys = samples.strings("worker").codes.astype(np.int64) * (len(moments) + 1) + ranks
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], samples[measure][order]
    found = np.zeros(len(starts), dtype=np.int64)
    for some in steps(len(starts) if len(values) else 0):
        worker = position[workers.codes[some]]
        first = np.searchsorted(keys, worker * (len(moments) + 1) + np.searchsorted(moments, starts[some]))
        end = np.searchsorted(moments, stops[some], side="right")
        last = np.searchsorted(keys, worker * (len(moments) + 1) + end)
        found[some] = _range_max(values, first, np.where(worker >= 0, last, first))
    return found


def _without_scheduler(samples: Table) -> Table:
    scheduler = where(samples.strings("worker"), SCHEDULER)
    return samples.take(~scheduler) if scheduler.any() else samples


def _positions(samples: Table) -> tuple[list[str], Array]:
    """Return the workers that have samples, ordered by name, and the position among them of each code."""
    names = samples.strings("worker")
    used = np.unique(names.codes)
    workers = sorted(str(names.values[code]) for code in used.tolist())
    index = {worker: position for position, worker in enumerate(workers)}
    return workers, np.array([index.get(str(name), -1) for name in names.values], dtype=np.int64)


def _range_max(values: Array, first: Array, last: Array) -> Array:
    """Return the maximum of ``values[first:last]`` for many ranges at once; 0 for empty ones.

    Any range is covered by two overlapping ranges whose length is a power of two. One pass per power computes the maxima of
    all ranges of that length.
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
