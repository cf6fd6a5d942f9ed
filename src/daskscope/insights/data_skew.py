"""One task has much more data than the others of its prefix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.intervals import alone_us
from daskscope.analysis.replayed_saving import with_durations
from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.skew import longest_executions

ADVICE = "Divide the data more evenly: repartition(), rechunk(), or split the key or file that is so much larger than others."
#: Duration by the median of the prefix (95th percentile by median of skewed runs), and share of the run.
MIN_RATIO = 5.0
MIN_SHARE = 0.1


def check(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    for one in longest_executions(facts, MIN_RATIO, MIN_SHARE):
        if not one.is_skewed:
            continue
        name = one.prefix or "unnamed"
        start, stop = int(tasks["start_us"][one.row]), int(tasks["stop_us"][one.row])
        times = f"{one.nbytes / one.median_nbytes:,.0f} times the" if one.median_nbytes else "much more"
        than = "of the others" if one.median_nbytes else "than the others"
        yield Finding(
            "skew",
            f"One {name} task had {times} data {than} and took {units.duration(one.us)}",
            f"Inputs and result are {units.nbytes(one.nbytes)}; the median of {units.counted(one.count, 'task')} is "
            f"{units.nbytes(one.median_nbytes)} and {units.duration(one.median_us)}.",
            ADVICE,
            "stream",
            start,
            stop,
            facts.wall_time(
                min(alone_us(tasks["start_us"], tasks["stop_us"], one.row), one.us - one.median_us),
                "time in which no other task was computing, at most its duration beyond the median",
                with_durations(np.array([one.row]), np.array([one.median_us])),
            ),
        )


RULE = Rule(
    "data-skew",
    "One task has much more data than the others of its prefix",
    "The task with the largest partition decides when a computation ends, however many workers there are.",
    "5 times the median duration of its prefix, 10 % of the run and 1 s, and 5 times the bytes, which explain the duration within "
    "a factor of 3.",
    check,
)
