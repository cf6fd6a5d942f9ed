"""Tasks failed for good."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.failures import MAX_ERRORS, error_finding, failed_prefixes, were_retried

ADVICE = "The last lines of the traceback show what failed and where."


def check(facts: Facts) -> Iterator[Finding]:
    """Yield errors that were not retried. They cost the result, which cannot be put in numbers."""
    for failure in facts.errors[:MAX_ERRORS]:
        if final := failure.count - failure.retried:
            retried = f"; {were_retried(failure.retried)}" if failure.retried else ""
            others = f"; {units.counted(failure.dependents, 'dependent')} could not run" if failure.dependents else ""
            evidence = f"{units.counted(final, 'task')} failed in {failed_prefixes(failure)}{retried}{others}."
            yield error_finding(failure, evidence, ADVICE, rank=0)


RULE = Rule(
    "failed-tasks",
    "Tasks failed for good",
    "A failed task and everything that depends on it have no result.",
    "Always; the three most frequent error groups are listed.",
    check,
)
