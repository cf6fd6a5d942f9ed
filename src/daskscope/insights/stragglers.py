"""One task takes much longer than the others of its prefix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.executions import EXECUTED, first_on_worker
from daskscope.analysis.facts import Facts, Finding
from daskscope.analysis.grouping import where
from daskscope.analysis.intervals import alone_us
from daskscope.insights.rule import Rule

#: A straggler takes more than 10 times the median of its prefix, and more than 10 % of the run.
STRAGGLER_RATIO = 10
STRAGGLER_SHARE = 0.1


def check(facts: Facts) -> Iterator[Finding]:
    run_us, tasks = facts.stop_us - facts.start_us, facts.recording["tasks"]
    long = [p for p in facts.prefixes if p.max_us > max(STRAGGLER_RATIO * p.p50_us, STRAGGLER_SHARE * run_us)]
    if not long:
        return
    usual = where(tasks.strings("status"), *EXECUTED) & ~first_on_worker(tasks)
    for prefix in long:
        rows = np.flatnonzero(usual & where(tasks.strings("prefix"), prefix.prefix))
        if not len(rows):
            continue
        durations = tasks["stop_us"][rows] - tasks["start_us"][rows]
        row, longest = int(rows[np.argmax(durations)]), int(durations.max())
        if longest > STRAGGLER_RATIO * prefix.p50_us > 0 and longest > STRAGGLER_SHARE * run_us:
            saved = facts.wall_time(
                min(alone_us(tasks["start_us"], tasks["stop_us"], row), longest - prefix.p50_us),
                "time in which no other task was computing, at most its duration beyond the median",
            )
            title = f"One {prefix.prefix or 'unnamed'} task took {units.duration(longest)}"
            evidence = (
                f"The median of {units.counted(prefix.count, 'task')} is {units.duration(prefix.p50_us)}. "
                f"This one took {units.percent(longest / run_us) if run_us else 'all'} of the run."
            )
            advice = "Split its input, or partition the data more evenly."
            start, stop = int(tasks["start_us"][row]), int(tasks["stop_us"][row])
            yield Finding("straggler", title, evidence, advice, "stream", start, stop, saved)


RULE = Rule(
    "stragglers",
    "One task takes much longer than the others of its prefix",
    "The last task decides when a computation ends. All other threads wait for it.",
    "More than 10 times the median of its prefix and more than 10 % of the run. The first execution on a worker does not count: it "
    "imports modules and compiles code.",
    check,
)
