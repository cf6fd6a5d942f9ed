"""Tasks wait at the scheduler."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.idle_time import WHEN, idle_finding

ADVICE = "The scheduler did not send them in time. Look at its CPU usage, and use fewer, larger tasks."


def check(facts: Facts) -> Iterator[Finding]:
    yield from idle_finding(facts, "queued", ADVICE)


RULE = Rule(
    "scheduler-queue",
    "Tasks wait at the scheduler",
    "The scheduler is one process. Very many small tasks keep it busier than the workers.",
    WHEN,
    check,
)
