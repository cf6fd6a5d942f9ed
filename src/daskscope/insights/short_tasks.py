"""Tasks are too short."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.executions import EXECUTED
from daskscope.analysis.grouping import percentile, where
from daskscope.analysis.replayed_saving import without_overheads
from daskscope.insights.facts import Facts, Finding, Rule

SHORT_US = 10_000
MANY_TASKS = 1_000


def check(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    ran = where(tasks.strings("status"), *EXECUTED)
    lengths = (tasks["stop_us"] - tasks["start_us"])[ran]
    # Counting is ten times faster than sorting, and most runs have longer tasks.
    if len(lengths) > MANY_TASKS and 2 * np.count_nonzero(lengths < SHORT_US) >= len(lengths):
        median = units.duration(max(0, percentile(np.sort(lengths), 0.5)))
        title = f"Half of {units.counted(len(lengths), 'task')} took less than {units.duration(SHORT_US)}"
        evidence = f"The median is {median}. Dask's own overhead is up to 1 ms per task, however short the task is."
        advice = "Use larger chunks or partitions, or batch several calls into one task."
        # Not only the pauses between tasks: the scheduler, the client and messages are busy with them, too.
        split = facts.split
        besides = split.thread_us - split.compute_us - split.idle.us["nothing submitted"]
        saved = facts.thread_time(besides, "thread time besides computing while there was work", without_overheads)
        yield facts.finding("overhead", title, evidence, advice, "stream", saved)


RULE = Rule(
    "short-tasks",
    "Tasks are too short",
    "Every task costs the scheduler up to 1 ms, however short it is. Below 10 ms, that is more than a tenth.",
    "More than 1,000 tasks with a median below 10 ms. Dask's own best practices ask for more than 100 ms.",
    check,
)
