"""One task runs alone while other threads wait for it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.executions import EXECUTED
from daskscope.analysis.grouping import rows_by_group, where
from daskscope.analysis.intervals import alone_us
from daskscope.analysis.replayed_saving import with_durations
from daskscope.insights.facts import MIN_US, Facts, Finding, Rule

ADVICE = "Split it into tasks that can run in parallel, for example with split_every= or a tree of partial results."
#: Share of the run in which exactly one task computes.
MIN_ALONE = 0.2
#: Executions of a prefix that is serial by its nature, per computation, and how many there are of others for each: without those,
#: there is no parallel work that waits.
MAX_TASKS = 3
MIN_OTHERS = 10
#: Executions of such a prefix that are looked at. Each takes 10 ms beside five million others.
MAX_ROWS = 50


def check(facts: Facts) -> Iterator[Finding]:
    if sum(worker.threads for worker in facts.workers) < 2:
        return
    tasks = facts.recording["tasks"]
    prefix, computation = tasks.strings("prefix"), tasks.strings("computation")
    ran = where(tasks.strings("status"), *EXECUTED)
    rows_of = {
        str(prefix.values[code]): rows for code, rows in rows_by_group(np.where(ran, prefix.codes, -1)) if code >= 0
    }
    total, min_us = int(ran.sum()), max(MIN_US, MIN_ALONE * facts.run_us)
    # A prefix cannot be alone for longer than it computed.
    long = sorted(one.prefix for one in facts.longest_prefixes if one.total_us >= min_us)
    for rows in (rows_of[name] for name in long if 0 < len(rows_of[name]) <= MAX_ROWS):
        if total - len(rows) < MIN_OTHERS * len(rows):
            continue
        if len(rows) > MAX_TASKS * len(np.unique(computation.codes[rows])):
            continue
        us = sum(alone_us(tasks["start_us"], tasks["stop_us"], row) for row in rows.tolist())
        if us < min_us:
            continue
        name = str(prefix.values[prefix.codes[rows[0]]]) or "unnamed tasks"
        yield facts.finding(
            "overhead",
            f"{name} ran alone for {units.percent(us / facts.run_us)} of the run",
            f"{units.counted(len(rows), 'task')} of {name} computed for {units.duration(us)} while no other task did.",
            ADVICE,
            "stream",
            facts.wall_time(
                us, "time in which it was the only task that computed", with_durations(rows, np.zeros(len(rows)))
            ),
        )


RULE = Rule(
    "serial-sections",
    "One task runs alone while other threads wait for it",
    "While a single task computes, every other thread is paid for and does nothing: Amdahl's law.",
    "Prefixes with at most 3 tasks per computation, beside ten times as many others, that are alone for 20 % of the run, and 1 s.",
    check,
)
