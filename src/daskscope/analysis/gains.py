"""What doing something about a finding would save at most, from the times that were recorded and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.model.table import Array, Table


@dataclass(frozen=True)
class Gain:
    """An upper bound: nobody can save more than was spent."""

    us: int
    #: run (wall time) or threads (time of all threads)
    of: str
    #: The part of that whole.
    share: float
    #: What was added up.
    how: str


def gain(us: int, whole_us: int, of: str, how: str) -> Gain | None:
    """Nothing where nothing was spent, or where it is not known of how much."""
    if us <= 0 or whole_us <= 0:
        return None
    return Gain(min(us, whole_us), of, min(us, whole_us) / whole_us, how)


def alone_us(starts: Array, stops: Array, row: int) -> int:
    """For how long nothing else computed while this execution did."""
    start, stop = int(starts[row]), int(stops[row])
    others = np.delete(np.arange(len(starts)), row)
    others = others[(stops[others] > start) & (starts[others] < stop)]
    others = others[np.argsort(starts[others], kind="stable")]
    if not len(others):
        return max(0, stop - start)
    begin, end = np.maximum(starts[others], start), np.minimum(stops[others], stop)
    # Of each only what reaches beyond all that began before it.
    reached = np.concatenate(([start], np.maximum.accumulate(end)[:-1]))
    covered = int(np.maximum(end - np.maximum(begin, reached), 0).sum())
    return max(0, stop - start - covered)


def short_gaps_us(tasks: Table, rows: Array, below_us: int) -> int:
    """Time between two executions on the same thread that are less than this apart; threads nobody named are left out."""
    known = rows[tasks["thread"][rows] != 0]
    worker, thread = tasks.strings("worker").codes[known], tasks["thread"][known]
    start, stop = tasks["start_us"][known], tasks["stop_us"][known]
    order = np.lexsort((start, thread, worker))
    same = (np.diff(worker[order]) == 0) & (np.diff(thread[order]) == 0)
    gaps = (start[order][1:] - stop[order][:-1])[same]
    return int(gaps[(gaps > 0) & (gaps < below_us)].sum())
