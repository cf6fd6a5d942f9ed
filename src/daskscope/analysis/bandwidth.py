"""Transfers between workers over time: number, bytes and time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.bins import Bins, Cube, make_cube
from daskscope.analysis.grouping import renumber, where
from daskscope.model.recording import Recording
from daskscope.model.table import Array, Table

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
