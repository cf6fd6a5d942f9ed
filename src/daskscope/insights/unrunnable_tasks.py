"""The remaining tasks need a worker that does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.idle_time import WHEN, idle_finding

ADVICE = "Add a worker with the resources these tasks ask for, or cancel them."


def check(facts: Facts) -> Iterator[Finding]:
    yield from idle_finding(facts, "cannot run", ADVICE, rank=1)


RULE = Rule(
    "unrunnable-tasks",
    "The remaining tasks need a worker that does not exist",
    "Such tasks wait forever, and keep the cluster running.",
    WHEN,
    check,
)
