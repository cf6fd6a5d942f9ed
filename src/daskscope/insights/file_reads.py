"""Tasks wait for files."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.waiting import WHEN, waiting_finding

ADVICE = "Use faster storage or larger reads. More threads per worker can read in parallel."


def check(facts: Facts) -> Iterator[Finding]:
    yield from waiting_finding(facts, "file", "waited for files", ADVICE)


RULE = Rule(
    "file-reads",
    "Tasks wait for files",
    "A thread that waits for a disk does nothing else meanwhile, and its core is paid for.",
    WHEN,
    check,
)
