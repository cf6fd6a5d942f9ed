"""Retries never succeed."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.analysis.facts import Facts, Finding, error_line
from daskscope.insights.failures import MAX_ERRORS, failed_prefixes
from daskscope.insights.rule import Rule

ADVICE = "Every attempt fails with the same error, so retries only delay it. Leave out retries= until it is fixed."
#: Retries per task that failed for good.
MIN_RETRIES = 1.0


def check(facts: Facts) -> Iterator[Finding]:
    for failure in facts.errors[:MAX_ERRORS]:
        final = failure.count - failure.retried
        if final and failure.retried >= MIN_RETRIES * final:
            retries = units.counted(failure.retried, "retry", "retries")
            evidence = f"{retries} did not prevent {units.counted(final, 'final failure')}: {error_line(failure)}."
            title = f"Retries of {failed_prefixes(failure)} never succeeded"
            yield Finding("retries", title, evidence, ADVICE, "errors", failure.first_us, failure.last_us, rank=1)


RULE = Rule(
    "retries-in-vain",
    "Retries never succeed",
    "Retries help against unreliable resources. An error in the code or in its input comes back every time.",
    "Every task that failed for good was retried at least once on average.",
    check,
)
