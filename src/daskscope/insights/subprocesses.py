"""Tasks wait for programs they started."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.waiting import WHEN, waiting_finding

ADVICE = "The profile shows where they are started."


def check(facts: Facts) -> Iterator[Finding]:
    yield from waiting_finding(facts, "subprocess", "waited for programs they had started", ADVICE)


RULE = Rule(
    "subprocesses",
    "Tasks wait for programs they started",
    "A program beside the worker uses cores that Dask does not count.",
    WHEN,
    check,
)
