"""Retries never succeed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.failures import Failure
from daskscope.analysis.grouping import where
from daskscope.insights.facts import Facts, Finding, Rule, error_line
from daskscope.insights.failures import MAX_ERRORS, failed_prefixes

ADVICE = "Every attempt fails with the same error, so retries only delay it. Leave out retries= until it is fixed."
#: Retries per task that failed for good.
MIN_RETRIES = 1.0


def check(facts: Facts) -> Iterator[Finding]:
    for failure in facts.errors[:MAX_ERRORS]:
        final = failure.count - failure.retried
        if final and failure.retried >= MIN_RETRIES * final and not _has_success(facts, failure):
            retries = units.counted(failure.retried, "retry", "retries")
            evidence = f"{retries} did not prevent {units.counted(final, 'final failure')}: {error_line(failure)}."
            title = f"Retries of {failed_prefixes(failure)} never succeeded"
            yield Finding("retries", title, evidence, ADVICE, "errors", failure.first_us, failure.last_us, rank=1)


def _has_success(facts: Facts, failure: Failure) -> bool:
    """Return whether a task of these prefixes succeeded after a retry."""
    tasks = facts.recording["tasks"]
    mine, status = where(tasks.strings("prefix"), *failure.prefixes), tasks.strings("status")
    keys = tasks.strings("key")
    retried = set(keys.take(np.flatnonzero(mine & where(status, "retried"))).to_numpy().tolist())
    return not retried.isdisjoint(keys.take(np.flatnonzero(mine & where(status, "ok"))).to_numpy().tolist())


RULE = Rule(
    "retries-in-vain",
    "Retries never succeed",
    "Retries help against unreliable resources. An error in the code or in its input comes back every time.",
    "Every task that failed for good was retried at least once on average, and no retry of its prefix succeeded.",
    check,
)
