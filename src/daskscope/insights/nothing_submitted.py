"""Threads are idle because nothing is submitted."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.idle_time import WHEN, idle_finding

ADVICE = "The client was busy or waiting. Submit work without waiting for each result, or use a smaller cluster."


def check(facts: Facts) -> Iterator[Finding]:
    yield from idle_finding(facts, "nothing submitted", ADVICE)


RULE = Rule(
    "nothing-submitted",
    "Threads are idle because nothing is submitted",
    "An idle cluster costs as much as a busy one.",
    WHEN,
    check,
)
