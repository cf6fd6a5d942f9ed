"""Shared code of the rules about stragglers: whether the size of its data explains why a task took longer than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.executions import EXECUTED, first_on_worker, input_nbytes
from daskscope.analysis.facts import MIN_US, Facts
from daskscope.analysis.grouping import where

#: Rows of a prefix that say what is usual; more of them change the median by little, and cost time.
MAX_ROWS = 10_000
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
    candidates = [p for p in facts.prefixes if p.p50_us > 0 and p.max_us > max(min_ratio * p.p50_us, min_us)]
    if not candidates:
        return []
    durations = tasks["stop_us"] - tasks["start_us"]
    usual = where(tasks.strings("status"), *EXECUTED) & ~first_on_worker(tasks)
    found = []
    for prefix in candidates:
        rows = np.flatnonzero(usual & where(tasks.strings("prefix"), prefix.prefix))
        if not len(rows):
            continue
        row = int(rows[np.argmax(durations[rows])])
        us = int(durations[row])
        if us <= max(min_ratio * prefix.p50_us, min_us):
            continue
        some = np.union1d(row, rows[:: -(-len(rows) // MAX_ROWS)])
        nbytes = input_nbytes(facts.recording, some) + np.maximum(tasks["nbytes"][some], 0)
        size, usual_size = int(nbytes[np.searchsorted(some, row)]), int(np.median(nbytes))
        found.append(Longest(prefix.prefix, prefix.count, row, us, prefix.p50_us, size, usual_size))
    return found
