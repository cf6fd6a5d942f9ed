"""Tasks are off-CPU, and the cause is not known."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.waiting import WHEN, waiting_finding

REASONS = {
    "blocked": (
        "slept or were blocked in native code",
        "The profile shows the lines in which they waited.",
    ),
    "unknown": ("were off-CPU", "They were too short to be sampled, so the cause is not known."),
}


def check(facts: Facts) -> Iterator[Finding]:
    for reason, (what, advice) in REASONS.items():
        yield from waiting_finding(facts, reason, what, advice, rank=3)


RULE = Rule(
    "off-cpu",
    "Tasks are off-CPU, and the cause is not known",
    (
        "A thread that sleeps or is blocked does nothing else meanwhile. It is listed last, because there may be "
        "nothing to change."
    ),
    WHEN,
    check,
)
