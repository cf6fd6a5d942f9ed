"""One task runs alone while other threads wait for it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.executions import EXECUTED
from daskscope.analysis.facts import MIN_US, Facts, Finding
from daskscope.analysis.grouping import where
from daskscope.insights.rule import Rule
from daskscope.model.table import Array

ADVICE = "Split it into tasks that can run in parallel, for example with split_every= or a tree of partial results."
#: Share of the run in which exactly one task computes.
MIN_ALONE = 0.2
#: Executions of a prefix that is serial by its nature, per computation, and how many there are of others for each: without those,
#: there is no parallel work that waits.
MAX_TASKS = 3
MIN_OTHERS = 10


def check(facts: Facts) -> Iterator[Finding]:
    if sum(worker.threads for worker in facts.workers) < 2:
        return
    tasks = facts.recording["tasks"]
    rows = np.flatnonzero(where(tasks.strings("status"), *EXECUTED))
    alone = alone_us(tasks["start_us"][rows], tasks["stop_us"][rows])
    prefix, computation = tasks.strings("prefix"), tasks.strings("computation")
    for code in np.unique(prefix.codes[rows]).tolist():
        mine = prefix.codes[rows] == code
        us, count = int(alone[mine].sum()), int(mine.sum())
        computations = len(np.unique(computation.codes[rows[mine]]))
        is_serial = count <= MAX_TASKS * computations and len(rows) - count >= MIN_OTHERS * count
        if us < max(MIN_US, MIN_ALONE * facts.run_us) or not is_serial:
            continue
        name = str(prefix.values[code]) or "unnamed tasks"
        yield facts.finding(
            "overhead",
            f"{name} ran alone for {units.percent(us / facts.run_us)} of the run",
            f"{units.counted(count, 'task')} of {name} computed for {units.duration(us)} while no other task did.",
            ADVICE,
            "stream",
            facts.wall_time(us, "time in which it was the only task that computed"),
        )


def alone_us(starts: Array, stops: Array) -> Array:
    """Return for how long each execution was the only one."""
    # Clocks may have been set back while it ran.
    rows = np.flatnonzero(stops > starts)
    alone = np.zeros(len(starts), dtype=np.int64)
    alone[rows] = _alone_us(starts[rows], stops[rows])
    return alone


def _alone_us(starts: Array, stops: Array) -> Array:
    times = np.concatenate((starts, stops))
    changes = np.concatenate((np.ones(len(starts), dtype=np.int64), -np.ones(len(stops), dtype=np.int64)))
    # An execution that starts when another ends is alone: ends first.
    order = np.lexsort((changes, times))
    running = np.cumsum(changes[order])
    spans = np.diff(times[order], append=times[order][-1] if len(order) else 0)
    # While one runs, the sum of the numbers of those that run is its number.
    numbers = np.concatenate((np.arange(len(starts)), -np.arange(len(starts))))
    current = np.cumsum(numbers[order])
    only = running == 1
    return np.bincount(current[only], weights=spans[only], minlength=len(starts)).astype(np.int64)


RULE = Rule(
    "serial-sections",
    "One task runs alone while other threads wait for it",
    "While a single task computes, every other thread is paid for and does nothing: Amdahl's law.",
    "Prefixes with at most 3 tasks per computation, beside ten times as many others, that are alone for 20 % of the run, and 1 s.",
    check,
)
