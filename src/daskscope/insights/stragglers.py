"""One task takes much longer than the others of its prefix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.intervals import alone_us
from daskscope.analysis.replayed_saving import with_durations
from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.skew import longest_executions

#: A straggler takes more than 10 times the median of its prefix, more than 10 % of the run, and more than 1 s.
STRAGGLER_RATIO = 10
STRAGGLER_SHARE = 0.1


def check(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    for one in longest_executions(facts, STRAGGLER_RATIO, STRAGGLER_SHARE):
        # Data skew is a finding of its own.
        if one.is_skewed:
            continue
        saved = facts.wall_time(
            min(alone_us(tasks["start_us"], tasks["stop_us"], one.row), one.us - one.median_us),
            "time in which no other task was computing, at most its duration beyond the median",
            with_durations(np.array([one.row]), np.array([one.median_us])),
        )
        title = f"One {one.prefix or 'unnamed'} task took {units.duration(one.us)}"
        evidence = (
            f"The median of {units.counted(one.count, 'task')} is {units.duration(one.median_us)}. "
            f"This one took {units.percent(one.us / facts.run_us) if facts.run_us else 'all'} of the run."
        )
        advice = "Split its input, or partition the data more evenly."
        start, stop = int(tasks["start_us"][one.row]), int(tasks["stop_us"][one.row])
        yield Finding("straggler", title, evidence, advice, "stream", start, stop, saved)


RULE = Rule(
    "stragglers",
    "One task takes much longer than the others of its prefix",
    "The last task decides when a computation ends. All other threads wait for it.",
    "More than 10 times the median of its prefix, 10 % of the run and 1 s, if the size of its data does not explain it. The first "
    "execution on a worker does not count: it imports modules and compiles code.",
    check,
)
