"""Threads are idle, and the recording does not say why."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.idle_time import WHEN, idle_finding

ADVICE = (
    "The scheduler may have been busy with a graph, or the client with the next one. Look at the logs at that time."
)


def check(facts: Facts) -> Iterator[Finding]:
    yield from idle_finding(facts, "unknown", ADVICE, rank=3)


RULE = Rule(
    "unexplained-idle",
    "Threads are idle, and the recording does not say why",
    "It is listed last, because the cause is not known.",
    WHEN,
    check,
)
