"""The same keys are computed in several computations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.executions import has_hidden_keys, recomputed_rows
from daskscope.analysis.grouping import where
from daskscope.insights.facts import Facts, Finding, Rule

ADVICE = (
    "Call persist() on what both need, or compute both in one call: dask.compute(a, b). Dask forgets results as soon as nobody "
    "holds them."
)


def check(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    rows, numbers = tasks.strings("key").repeated
    if has_hidden_keys(tasks, tasks.rows - len(rows) + len(np.unique(numbers))):
        return
    computation = tasks.strings("computation")
    ok = where(tasks.strings("status"), "ok")[rows] & ~computation.is_empty[rows]
    rows, numbers = rows[ok], numbers[ok]
    # The first execution of each key is needed; later ones in the same computation were lost in between.
    order = np.lexsort((tasks["start_us"][rows], numbers))
    rows, numbers = rows[order], numbers[order]
    firsts = np.unique(numbers, return_index=True)[1]
    first_of = np.repeat(firsts, np.diff(np.append(firsts, len(rows))))
    codes = computation.codes[rows]
    is_again = codes != codes[first_of] if len(rows) else np.zeros(0, dtype=bool)
    # Results that were lost with their worker are another matter.
    is_again &= ~recomputed_rows(facts.recording)[rows[first_of]] if len(rows) else is_again
    again = rows[is_again]
    us = int(np.maximum(tasks["stop_us"] - tasks["start_us"], 0)[again].sum())
    if not facts.is_relevant(us):
        return
    names = _largest(facts, again)
    count = len(np.unique(codes[np.isin(numbers, numbers[is_again])]))
    yield facts.finding(
        "overhead",
        f"{units.counted(len(again), 'task')} ran again in another computation",
        f"{count} computations share keys; computing them again took {units.duration(us)}, most of it in {names}.",
        ADVICE,
        "computations",
        facts.thread_time(us, "compute time of keys that an earlier computation had computed"),
    )


def _largest(facts: Facts, rows: np.ndarray) -> str:
    tasks = facts.recording["tasks"]
    prefix = tasks.strings("prefix")
    sums = np.bincount(
        prefix.codes[rows], weights=(tasks["stop_us"] - tasks["start_us"])[rows], minlength=len(prefix.values)
    )
    return str(prefix.values[int(np.argmax(sums))]) or "unnamed tasks"


RULE = Rule(
    "repeated-work",
    "The same keys are computed in several computations",
    "Two compute() calls on the same collection compute its common part twice.",
    "From 5 % of thread time and 1 s.",
    check,
)
