"""Shared code of the rules about idle threads."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.insights.facts import IDLE, Facts, Finding

WHEN = "From 5 % of thread time and 1 s."


def idle_finding(facts: Facts, reason: str, advice: str, *, rank: int = 2) -> Iterator[Finding]:
    """Yield the finding for a reason to be idle, if it is worth one."""
    us = facts.split.idle.us.get(reason, 0)
    if facts.is_relevant(us):
        title = f"Threads were idle for {units.percent(us / facts.split.thread_us)} of their time: {IDLE[reason]}"
        evidence = f"{units.duration(us)} of {units.duration(facts.split.thread_us)} of thread time."
        saved = facts.thread_time(us, f"thread time in which {IDLE[reason]}")
        yield facts.finding("idle", title, evidence, advice, "stream", saved, rank)
