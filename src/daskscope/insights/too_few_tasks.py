"""Threads are idle because too few tasks can run in parallel."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.idle_time import WHEN, idle_finding

ADVICE = "Split the work into more and smaller tasks, or use fewer threads."


def check(facts: Facts) -> Iterator[Finding]:
    yield from idle_finding(facts, "too few tasks", ADVICE)


RULE = Rule(
    "too-few-tasks",
    "Threads are idle because too few tasks can run in parallel",
    "Threads without a task cost as much as busy ones.",
    WHEN,
    check,
)
