"""Shared code of the rules about failures."""

from __future__ import annotations

from daskscope import units
from daskscope.analysis.failures import Failure, retried_tasks
from daskscope.insights.facts import Facts, Finding, Gain, error_line

#: Errors listed one by one.
MAX_ERRORS = 3


def error_finding(failure: Failure, evidence: str, advice: str, saved: Gain | None = None, rank: int = 2) -> Finding:
    """Return a finding about an error group."""
    first, last = failure.first_us, failure.last_us
    return Finding("error", error_line(failure), evidence, advice, "errors", first, last, saved, rank)


def failed_prefixes(failure: Failure) -> str:
    return ", ".join(prefix for prefix in failure.prefixes if prefix) or "unnamed tasks"


def were_retried(count: int) -> str:
    return f"{units.counted(count, 'failure')} {'was' if count == 1 else 'were'} retried"


def describe_retries(facts: Facts, failure: Failure) -> str:
    """Return how the retries of an error group ended, as a sentence without its full stop; empty if that is not known."""
    found = retried_tasks(facts.recording, failure.prefixes)
    if found is None:
        return ""
    retried, succeeded = found
    if succeeded == retried:
        return "all retries succeeded"
    return f"{units.count(succeeded)} of {units.counted(retried, 'retried task')} succeeded"
