"""Tasks wait at other workers."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.idle_time import WHEN, idle_finding
from daskscope.insights.pinned_work import pinned_prefixes

ADVICE = "Restrictions or the location of data kept tasks on other workers. Remove restrictions, or spread the data."


def check(facts: Facts) -> Iterator[Finding]:
    if not pinned_prefixes(facts):
        yield from idle_finding(facts, "elsewhere", ADVICE)


RULE = Rule(
    "unbalanced-work",
    "Tasks wait at other workers",
    "Restrictions, or data that is in one place, keep tasks away from free threads.",
    f"{WHEN} Not if restrictions are known to be the cause.",
    check,
)
