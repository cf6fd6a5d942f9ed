"""Tasks wait for locks, events or queues."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.waiting import WHEN, waiting_finding

ADVICE = "The profile shows which. Hold locks for a shorter time, or avoid them."


def check(facts: Facts) -> Iterator[Finding]:
    yield from waiting_finding(facts, "lock", "waited for locks, events or queues", ADVICE)


RULE = Rule(
    "locks",
    "Tasks wait for locks, events or queues",
    "A lock makes tasks run one after the other, whatever the number of threads.",
    WHEN,
    check,
)
