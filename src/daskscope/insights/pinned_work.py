"""Tasks are pinned to few workers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.executions import EXECUTED, inputs_of
from daskscope.analysis.grouping import where
from daskscope.analysis.limits import parse_object
from daskscope.insights.facts import Facts, Finding, Rule

ADVICE = (
    "Leave out workers= and resources= of these tasks, name more workers, or set allow_other_workers=True. If they need a "
    "resource, give it to more workers."
)
#: Tasks per thread of their workers: fewer may have found a free thread where they were.
MIN_PER_THREAD = 3
#: Dask does not move shorter tasks to idle workers.
MIN_TASK_US = 5_000
#: Share of all workers that the tasks ran on.
MAX_WORKERS = 0.5


def check(facts: Facts) -> Iterator[Finding]:
    us = facts.split.idle.us.get("elsewhere", 0)
    names = pinned_prefixes(facts)
    if not names:
        return
    (prefix, workers), more = names[0], len(names) - 1
    others = f", and so did {units.counted(more, 'other prefix', 'other prefixes')}" if more else ""
    yield facts.finding(
        "idle",
        f"Threads were idle for {units.percent(us / facts.split.thread_us)} of their time while {prefix or 'unnamed'} tasks "
        f"waited for {'one worker' if workers == 1 else units.counted(workers, 'worker')}",
        f"They have no inputs that keep them there, and ran on {units.count(workers)} of "
        f"{units.counted(len(facts.workers), 'worker')} only{others}.",
        ADVICE,
        "stream",
        facts.thread_time(us, "thread time that was idle while tasks waited at other workers"),
    )


def pinned_prefixes(facts: Facts) -> list[tuple[str, int]]:
    """Return prefixes that only a restriction can have kept on few workers, longest first, with the number of these workers.

    Restrictions are not recorded. But the scheduler gives tasks without inputs to any worker, and moves waiting ones to idle
    workers unless stealing is off.
    """
    if not facts.is_relevant(facts.split.idle.us.get("elsewhere", 0)) or not _has_stealing(facts):
        return []
    tasks, groups = facts.recording["tasks"], facts.recording["groups"]
    depends = {str(one) for one in groups["prefix"][groups.lists("dependencies").lengths > 0].tolist()}
    prefix, worker = tasks.strings("prefix"), tasks.strings("worker")
    ran = where(tasks.strings("status"), *EXECUTED)
    found = []
    for one in facts.longest_prefixes:
        if one.p50_us < MIN_TASK_US or one.prefix in depends or not facts.is_relevant(one.total_us):
            continue
        rows = np.flatnonzero(ran & where(prefix, one.prefix))
        used = set(worker.values[np.unique(worker.codes[rows])].tolist())
        start_us, stop_us = int(tasks["start_us"][rows].min()), int(tasks["stop_us"][rows].max())
        there = [w for w in facts.workers if w.start_us <= start_us and (not w.end_us or w.end_us >= stop_us)]
        threads = sum(w.threads for w in there if w.worker in used)
        free = [w for w in there if w.worker not in used]
        if len(used) > MAX_WORKERS * len(there) or not free or len(rows) < MIN_PER_THREAD * threads:
            continue
        # Inputs that the client scattered are in edges, too.
        if not len(inputs_of(facts.recording, rows)[0]):
            found.append((one.prefix, len(used)))
    return found


def _has_stealing(facts: Facts) -> bool:
    """Return whether the recording says that idle workers take tasks from others."""
    configs = [parse_object(text) for text in facts.recording["clusters"]["config"].tolist()]
    return any(config.get("distributed.scheduler.work-stealing") is True for config in configs)


RULE = Rule(
    "pinned-work",
    "Tasks are pinned to few workers",
    "Tasks with workers= or resources= wait for their workers while others are idle.",
    "From 5 % of thread time and 1 s, for prefixes without inputs that ran on at most half of the workers, with 3 tasks per "
    "thread. Silent if work stealing is off.",
    check,
)
