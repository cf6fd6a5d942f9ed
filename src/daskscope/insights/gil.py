"""Tasks wait for the global interpreter lock."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.waiting import WHEN, waiting_finding

ADVICE = "Use more worker processes with fewer threads each, or libraries that release the GIL."


def check(facts: Facts) -> Iterator[Finding]:
    yield from waiting_finding(facts, "gil", "waited for Python's global interpreter lock (GIL)", ADVICE)


RULE = Rule(
    "gil",
    "Tasks wait for the global interpreter lock",
    "One thread of a process runs Python code at a time. More threads then make tasks slower, not faster.",
    WHEN,
    check,
)
