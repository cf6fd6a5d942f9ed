"""Shared code of the rules about transfers and spilled results."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.analysis.facts import Facts, Finding

#: Share of thread time above which transfers or disk are worth a finding.
DATA_SHARE = 0.2
WHEN = "Above 20 % of thread time: less hardly delays a run, because other threads compute meanwhile."


def movement_finding(facts: Facts, category: str, activity: str, advice: str, view: str) -> Iterator[Finding]:
    """Yield the finding for a category of thread time, if it is worth one."""
    us = facts.split.split[category]
    if us > DATA_SHARE * facts.split.thread_us:
        title = f"Threads spent {units.percent(us / facts.split.thread_us)} of their time {activity}"
        evidence = f"{units.duration(us)} of {units.duration(facts.split.thread_us)} of thread time."
        saved = facts.thread_time(us, f"all thread time spent {activity}")
        yield facts.finding("data movement", title, evidence, advice, view, saved)
