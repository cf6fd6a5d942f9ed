"""Tasks are assigned, but start late."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.idle_time import WHEN, idle_finding

ADVICE = "Workers were busy fetching or deserializing inputs, or their event loops were blocked. Look at transfers and worker logs."


def check(facts: Facts) -> Iterator[Finding]:
    yield from idle_finding(facts, "not started", ADVICE)


RULE = Rule(
    "slow-starts",
    "Tasks are assigned, but start late",
    "The scheduler has done its part: the worker fetches inputs, or its event loop is blocked.",
    WHEN,
    check,
)
