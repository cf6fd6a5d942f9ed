"""All failures of an error group were retried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from daskscope.analysis.grouping import where
from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.failures import MAX_ERRORS, describe_retries, error_finding, failed_prefixes, were_retried
from daskscope.model.recording import Recording

ADVICE = "If the error recurs, look for an unreliable resource such as storage or the network."


def check(facts: Facts) -> Iterator[Finding]:
    for failure in facts.errors[:MAX_ERRORS]:
        if failure.count == failure.retried:
            shared = any(other is not failure and {*other.prefixes} & {*failure.prefixes} for other in facts.errors)
            # The recording counts each error, but does not say which execution failed with which.
            wasted = 0 if shared else _retried_us(facts.recording, failure.prefixes)
            saved = facts.thread_time(wasted, "compute time of the executions that failed and were retried")
            ended = describe_retries(facts, failure)
            evidence = f"{were_retried(failure.count)} in {failed_prefixes(failure)}{f'; {ended}' if ended else ''}."
            yield error_finding(failure, evidence, ADVICE, saved)


def _retried_us(recording: Recording, names: Sequence[str]) -> int:
    tasks = recording["tasks"]
    rows = where(tasks.strings("status"), "retried") & where(tasks.strings("prefix"), *names)
    return int(np.maximum(tasks["stop_us"] - tasks["start_us"], 0)[rows].sum())


RULE = Rule(
    "retried-failures",
    "All failures of an error group were retried",
    "The time of the failed attempts is lost, and the next retry may fail.",
    "Always; the three most frequent error groups are listed. Whether the retries succeeded is part of the evidence.",
    check,
)
