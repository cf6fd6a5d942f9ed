"""Shared code of the rules about stragglers: whether the size of its data explains why a task took longer than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.executions import EXECUTED, input_nbytes
from daskscope.analysis.grouping import where
from daskscope.insights.facts import MIN_US, Facts
from daskscope.model.table import Array, Table

#: Rows of a prefix that say what is usual; more of them change the median by little, and cost time.
MAX_ROWS = 10_000
#: Long executions that are looked at for one that is not the first of its worker.
MAX_LONG = 50
#: Data of a skewed task, by the median of its prefix, and at least this many bytes.
MIN_BYTES_RATIO = 5.0
MIN_NBYTES = 100_000
#: A task with ten times the data takes three to thirty times as long: else something else makes it slow.
MAX_UNEXPLAINED = 3.0


@dataclass(frozen=True)
class Longest:
    """The longest execution of a prefix, besides the first of each worker, and its data: inputs and result."""

    prefix: str
    count: int
    row: int
    us: int
    median_us: int
    nbytes: int
    median_nbytes: int

    @property
    def is_skewed(self) -> bool:
        """Whether the task took longer because it had more data than others."""
        times = self.nbytes / max(self.median_nbytes, 1)
        is_larger = times >= MIN_BYTES_RATIO and self.nbytes >= MIN_NBYTES
        return is_larger and self.us / max(self.median_us, 1) <= MAX_UNEXPLAINED * times


def longest_executions(facts: Facts, min_ratio: float, min_share: float) -> list[Longest]:
    """Return the longest execution of prefixes where it takes a multiple of the median, a share of the run, and 1 s."""
    tasks, min_us = facts.recording["tasks"], max(MIN_US, min_share * facts.run_us)
    candidates = [p for p in facts.longest_prefixes if p.p50_us > 0 and p.max_us > max(min_ratio * p.p50_us, min_us)]
    found = []
    for prefix in candidates:
        mine = where(tasks.strings("status"), *EXECUTED) & where(tasks.strings("prefix"), prefix.prefix)
        row = _longest(tasks, mine, max(min_ratio * prefix.p50_us, min_us))
        if row < 0:
            continue
        rows = np.flatnonzero(mine)
        some = np.union1d(row, rows[:: -(-len(rows) // MAX_ROWS)])
        nbytes = input_nbytes(facts.recording, some) + np.maximum(tasks["nbytes"][some], 0)
        size, usual_size = int(nbytes[np.searchsorted(some, row)]), int(np.median(nbytes))
        us = int(tasks["stop_us"][row] - tasks["start_us"][row])
        found.append(Longest(prefix.prefix, prefix.count, row, us, prefix.p50_us, size, usual_size))
    return found


def _longest(tasks: Table, mine: Array, min_us: float) -> int:
    """Return the row of the longest of some executions that is not the first of its worker; -1 if none takes that long."""
    long = np.flatnonzero(mine & (tasks["stop_us"] - tasks["start_us"] > min_us))
    long = long[np.argsort(tasks["start_us"][long] - tasks["stop_us"][long], kind="stable")]
    workers = tasks.strings("worker").codes
    firsts: dict[int, int] = {}
    for row in long[:MAX_LONG].tolist():
        worker = int(workers[row])
        if worker not in firsts:
            beside = np.flatnonzero(mine & (workers == worker))
            # A worker with one execution of a prefix has no later one to compare it with: that one counts as usual.
            firsts[worker] = int(beside[np.argmin(tasks["start_us"][beside])]) if len(beside) > 1 else -1
        if row != firsts[worker]:
            return int(row)
    return -1
