"""What was sent between workers: how much, how fast, between whom, of which types."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.bins import Bins, Cube, make_cube
from daskscope.analysis.executions import edge_rows
from daskscope.analysis.grouping import where
from daskscope.analysis.lives import interval_rows
from daskscope.model.recording import Recording
from daskscope.model.table import Array, Table

#: More bytes than this in one transfer are nonsense, and would overflow sums.
MOST_BYTES = 2**50


@dataclass(frozen=True)
class Pair:
    """All transfers from one worker to another."""

    source: str
    destination: str
    count: int
    nbytes: int
    us: int

    @property
    def bytes_per_second(self) -> float:
        return self.nbytes / self.us * 1e6 if self.us else 0.0


def transfers(recording: Recording, bins: Bins) -> Cube:
    """Each transfer once, in the bin in which it ended: number, bytes, bytes on the wire, and time.

    Both sides report a transfer. The receiver's word counts, the sender's only between workers of which the receiver reported
    nothing. Only the sender knows the bytes on the wire.
    """
    table = recording["transfers"]
    names, sources, destinations = _workers(table)
    incoming, outgoing = (where(table.strings("direction"), word) for word in ("incoming", "outgoing"))
    pairs = sources * max(1, len(names)) + destinations
    once = incoming | (outgoing & ~np.isin(pairs, pairs[incoming]))
    measures = {
        "count": once.astype(np.int64),
        "nbytes": np.where(once, np.clip(table["nbytes"], 0, MOST_BYTES), 0),
        "compressed": np.where(outgoing, np.clip(table["compressed_nbytes"], 0, MOST_BYTES), 0),
        "us": np.where(once, np.maximum(bins.clip(table["stop_us"]) - bins.clip(table["start_us"]), 0), 0),
    }
    keys = {"source": names, "destination": names}
    return make_cube(keys, [sources, destinations], bins.of(table["stop_us"]), bins.count, measures)


def matrix(recording: Recording) -> tuple[list[str], Array, Array]:
    """Workers, and the bytes and bytes per second from each (row) to each (column); NaN where nothing was sent."""
    cube = transfers(recording, _whole(recording["transfers"]))
    size = len(cube.keys["source"])
    nbytes, us = np.zeros((size, size), dtype=np.int64), np.zeros((size, size), dtype=np.int64)
    at = (cube.codes["source"], cube.codes["destination"])
    np.add.at(nbytes, at, cube.measures["nbytes"])
    np.add.at(us, at, cube.measures["us"])
    return cube.keys["source"], nbytes, np.where(us > 0, nbytes / np.maximum(us, 1) * 1e6, np.nan)


def slowest_pairs(recording: Recording, n: int = 10) -> tuple[Pair, ...]:
    """The pairs of workers between which bytes took longest, the slowest first."""
    cube = transfers(recording, _whole(recording["transfers"]))
    names = cube.keys["source"]
    columns = [cube.codes["source"], cube.codes["destination"], *(cube.measures[m] for m in ("count", "nbytes", "us"))]
    found = [
        Pair(names[source], names[destination], count, nbytes, us)
        for source, destination, count, nbytes, us in zip(*(column.tolist() for column in columns), strict=True)
        if us
    ]
    return tuple(sorted(found, key=lambda pair: (pair.bytes_per_second, -pair.us, pair.source, pair.destination))[:n])


def compressed_ratio(recording: Recording) -> float | None:
    """Bytes on the wire over bytes of the results, where the sender told both; None where nobody did."""
    table = recording["transfers"]
    told = where(table.strings("direction"), "outgoing") & (table["compressed_nbytes"] > 0) & (table["nbytes"] > 0)
    wire, whole = (np.clip(table[name][told], 0, MOST_BYTES).sum() for name in ("compressed_nbytes", "nbytes"))
    return float(wire / whole) if told.any() else None


@dataclass(frozen=True)
class TypeTransfers:
    """Results of one type that executions fetched from other workers."""

    type: str
    count: int
    nbytes: int
    seconds: float


def by_type(recording: Recording) -> tuple[TypeTransfers, ...]:
    """What was fetched by the type of the result, the longest first; an estimate.

    An execution fetched the inputs that were made on other workers; the time it took is divided among them by size. Without
    dependencies between executions the inputs are not known, and time counts to the type that came out of it.
    """
    tasks = recording["tasks"]
    owners, actions, starts, stops = interval_rows(tasks)
    fetched = np.flatnonzero(where(actions, "transfer"))
    spent = np.zeros(tasks.rows)
    np.add.at(spent, owners[fetched], np.maximum(stops[fetched] - starts[fetched], 0) / 1e6)
    dependents, inputs = edge_rows(recording)
    workers = tasks.strings("worker").codes
    remote = (workers[dependents] != workers[inputs]) & (spent[dependents] > 0)
    dependents, inputs = dependents[remote], inputs[remote]
    if not len(inputs):
        dependents = inputs = np.flatnonzero(spent)
    nbytes = np.clip(tasks["nbytes"][inputs], 0, MOST_BYTES)
    sizes = np.maximum(nbytes, 1).astype(np.float64)
    together = np.bincount(dependents, weights=sizes, minlength=tasks.rows)
    seconds = spent[dependents] * sizes / together[dependents]
    types = tasks.strings("type")
    codes, names = types.codes[inputs], types.values
    counts = np.bincount(codes, minlength=len(names))
    totals = [np.bincount(codes, weights=weights, minlength=len(names)) for weights in (nbytes, seconds)]
    found = [
        TypeTransfers(str(names[i]), int(counts[i]), int(totals[0][i]), float(totals[1][i]))
        for i in np.flatnonzero(counts).tolist()
    ]
    return tuple(sorted(found, key=lambda entry: (-entry.seconds, entry.type)))


def _workers(table: Table) -> tuple[list[str], Array, Array]:
    """The names of all workers, and who sent and who received as positions among them."""
    sources, destinations = table.strings("source"), table.strings("destination")
    used = [column.values[np.unique(column.codes)].tolist() for column in (sources, destinations)]
    names = sorted({str(name) for texts in used for name in texts})
    index = {name: place for place, name in enumerate(names)}

    def places(texts: Array) -> Array:
        return np.array([index.get(str(text), 0) for text in texts], dtype=np.int64)

    return names, places(sources.values)[sources.codes], places(destinations.values)[destinations.codes]


def _whole(table: Table) -> Bins:
    """One bin over all transfers."""
    starts, stops = table["start_us"], table["stop_us"]
    if not table.rows:
        return Bins(0, 1, 1)
    return Bins.over(int(starts.min()), int(max(starts.max(), stops.max())), most=1)
