"""The first execution on each worker is slow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.executions import EXECUTED, first_on_worker
from daskscope.analysis.grouping import rows_by_group, where
from daskscope.analysis.replayed_saving import with_durations
from daskscope.insights.facts import Facts, Finding, Rule

ADVICE = (
    "It imports modules, compiles code or opens connections. Import them when workers start (--preload), let Numba cache what it "
    "compiles (cache=True), and keep workers between computations."
)
#: The first executions take this many times the median of the others, on this share of the workers.
MIN_RATIO = 3.0
MIN_WORKERS = 0.75


def check(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    ran, first = where(tasks.strings("status"), *EXECUTED), first_on_worker(tasks)
    names = tasks.strings("prefix")
    rows_of = {str(names.values[code]): rows for code, rows in rows_by_group(names.codes)}
    for prefix in facts.prefixes:
        mine = rows_of[prefix.prefix][ran[rows_of[prefix.prefix]]]
        durations = np.maximum(tasks["stop_us"][mine] - tasks["start_us"][mine], 0)
        rows, warm, later = mine[first[mine]], durations[first[mine]], durations[~first[mine]]
        if not len(warm) or len(later) < 2 * len(warm):
            continue
        usual = float(np.median(later))
        slow = warm > MIN_RATIO * max(usual, 1.0)
        us = int((warm[slow] - usual).sum())
        if slow.mean() < MIN_WORKERS or not facts.is_relevant(us):
            continue
        name = prefix.prefix or "unnamed tasks"
        yield facts.finding(
            "overhead",
            f"The first {name} on each worker took {units.duration(float(np.median(warm)))}",
            f"Later ones took {units.duration(usual)} (median). On {units.counted(int(slow.sum()), 'worker')}, that is "
            f"{units.duration(us)} in total.",
            ADVICE,
            "stream",
            facts.thread_time(
                us,
                "time of first executions beyond the median of later ones",
                with_durations(rows, np.full(len(rows), usual)),
            ),
        )


RULE = Rule(
    "warm-up",
    "The first execution on each worker is slow",
    "Imports and compilation happen in every worker process, and again whenever a worker is replaced.",
    "First executions of a prefix take 3 times the median of later ones on three quarters of the workers; from 5 % of thread "
    "time and 1 s.",
    check,
)
