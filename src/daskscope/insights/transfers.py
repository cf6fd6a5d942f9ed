"""Threads spend much of their time on transfers."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.analysis.facts import Facts, Finding
from daskscope.insights.data_movement import WHEN, movement_finding
from daskscope.insights.rule import Rule

ADVICE = "Use larger chunks, or fewer workers with more threads each, so that more inputs are already local."


def check(facts: Facts) -> Iterator[Finding]:
    yield from movement_finding(facts, "transfer", "on transfers between workers", ADVICE, "bandwidth")


RULE = Rule(
    "transfers",
    "Threads spend much of their time on transfers",
    "A thread that waits for inputs from other workers computes nothing.",
    WHEN,
    check,
)
