"""Adaptive scaling wants more workers than it is allowed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.scaling import scaling_of

ADVICE = "Raise maximum= of adapt(), or the quota, if the result is needed sooner. Workers that are as busy cost the same in total."
#: Share of the run, and its length, in which scaling wanted this many times the workers there were.
MIN_CAPPED = 0.25
MIN_CAPPED_US = 5_000_000
MIN_RATIO = 1.5
#: Share of thread time that tasks used: workers that are not busy do not show that more of them would be.
MIN_BUSY = 0.75


def check(facts: Facts) -> Iterator[Finding]:
    scaling = scaling_of(facts)
    # Runs of coffea have a prediction of their own.
    if scaling is None or facts.coffea or not facts.split.thread_us:
        return
    capped = (scaling.there == scaling.peak) & (scaling.wanted >= MIN_RATIO * scaling.peak) & (scaling.peak > 0)
    us = int(scaling.us[capped].sum())
    is_busy = facts.split.compute_us >= MIN_BUSY * facts.split.thread_us
    if us < max(MIN_CAPPED_US, MIN_CAPPED * facts.run_us) or not is_busy:
        return
    saved_us = int((scaling.us * (1.0 - scaling.there / np.maximum(scaling.wanted, 1)))[capped].sum())
    yield facts.finding(
        "scaling",
        f"Scaling wanted up to {units.counted(int(scaling.wanted.max()), 'worker')}, but had {units.count(scaling.peak)}",
        f"For {units.duration(us)}, that is {units.percent(us / facts.run_us)} of the run, it wanted more than it had. Tasks used "
        f"{units.percent(facts.split.compute_us / facts.split.thread_us)} of the thread time.",
        ADVICE,
        "workers",
        facts.wall_time(saved_us, "time that all wanted workers would save if tasks can use them all"),
    )


RULE = Rule(
    "scaling-capped",
    "Adaptive scaling wants more workers than it is allowed",
    "Tasks wait although they could run in parallel.",
    "For 25 % of the run and 5 s, scaling wanted 1.5 times the workers of its peak, and tasks used 75 % of the thread time.",
    check,
)
