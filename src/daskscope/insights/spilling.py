"""Threads spend much of their time on spilled results."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.analysis.facts import Facts, Finding
from daskscope.insights.data_movement import WHEN, movement_finding
from daskscope.insights.rule import Rule

ADVICE = "Give workers more memory or use smaller chunks, so that results need not be spilled."


def check(facts: Facts) -> Iterator[Finding]:
    yield from movement_finding(facts, "disk", "reading and writing spilled results", ADVICE, "memory")


RULE = Rule(
    "spilling",
    "Threads spend much of their time on spilled results",
    "A thread that reads spilled results from disk computes nothing meanwhile.",
    WHEN,
    check,
)
