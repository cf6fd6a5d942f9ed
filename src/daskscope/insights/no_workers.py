"""Work waits for a worker."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.insights.facts import MIN_US, Facts, Finding, Rule

ADVICE = "Check why workers did not start. Keep a minimum number of workers if the cluster scales by itself."


def check(facts: Facts) -> Iterator[Finding]:
    us = facts.split.idle.no_workers_us
    if us >= MIN_US:
        title = f"Work waited {units.duration(us)} for a worker"
        evidence = f"{units.duration(us)} of {units.duration(facts.run_us)} passed without a worker."
        yield facts.finding("idle", title, evidence, ADVICE, "workers", facts.wall_time(us, "time without workers"), 1)


RULE = Rule(
    "no-workers",
    "Work waits for a worker",
    "Without a worker, nothing runs, and a cluster that scales by itself may not start one.",
    "From 1 s.",
    check,
)
