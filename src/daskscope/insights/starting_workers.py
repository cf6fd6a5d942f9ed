"""Workers have just joined."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.idle_time import WHEN, idle_finding

ADVICE = "Start workers before submitting work, or keep them between computations."


def check(facts: Facts) -> Iterator[Finding]:
    yield from idle_finding(facts, "starting", ADVICE)


RULE = Rule(
    "starting-workers",
    "Workers have just joined",
    "Starting a worker and importing libraries takes seconds, in which its threads do nothing.",
    WHEN,
    check,
)
