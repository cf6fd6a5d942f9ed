"""Shared code of the rules about waiting tasks."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.analysis.replayed_saving import without_waiting
from daskscope.insights.facts import Facts, Finding

WHEN = "From 5 % of thread time and 1 s: less is within the error of the samples."


def waiting_finding(
    facts: Facts, reason: str, what: str, advice: str, *, more: str = "", rank: int = 2
) -> Iterator[Finding]:
    """Yield the finding for a reason to wait, if it is worth one. ``more`` is added to the evidence."""
    split, us = facts.split, facts.split.waiting_us.get(reason, 0)
    if facts.is_relevant(us):
        title = f"Tasks {what} for {units.percent(us / split.compute_us)} of their run time"
        evidence = f"{units.duration(us)} of {units.duration(split.compute_us)} of compute time.{more}"
        change = without_waiting(facts.recording, reason)
        saved = facts.thread_time(us, f"compute time in which tasks {what}", change)
        yield facts.finding("waiting", title, evidence, advice, "profile", saved, rank)
