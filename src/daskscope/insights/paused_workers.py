"""Workers are paused to save memory."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.idle_time import WHEN, idle_finding

ADVICE = "Use smaller chunks or workers with more memory, and keep fewer results in memory."


def check(facts: Facts) -> Iterator[Finding]:
    yield from idle_finding(facts, "paused", ADVICE)


RULE = Rule(
    "paused-workers",
    "Workers are paused to save memory",
    "A paused worker starts no tasks, and may stay paused until others take its data.",
    WHEN,
    check,
)
