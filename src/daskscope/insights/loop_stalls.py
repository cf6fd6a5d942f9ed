"""Event loops are blocked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from daskscope import units
from daskscope.insights.facts import MIN_US, Facts, Finding, Rule

ADVICE = (
    "Code that holds the interpreter lock for seconds, such as a large pickle or an extension, blocks messages and heartbeats. "
    "Look at the profile of the event loop. On a scheduler, use fewer and larger tasks."
)
#: As distributed logs it.
MESSAGE = re.compile(r"Event loop was unresponsive in (\w+) for (?:about )?([0-9.]+)\s*s")
#: Share of the run.
MIN_STALLED = 0.05


def check(facts: Facts) -> Iterator[Finding]:
    stalled: dict[str, list[float]] = {}
    for worker, message, repeats in facts.recording["logs"].records("worker", "message", "repeats"):
        if found := MESSAGE.search(message):
            # Messages that differ only in numbers are recorded once.
            stalled.setdefault(worker, []).extend([float(found[2])] * max(1, repeats))
    if not stalled:
        return
    worker, seconds = max(stalled.items(), key=lambda one: sum(one[1]))
    us = min(round(sum(seconds) * 1e6), facts.run_us)
    if us < max(MIN_US, MIN_STALLED * facts.run_us):
        return
    names = {one.worker: one.name or one.worker for one in facts.workers}
    others = (
        f" {units.counted(len(stalled) - 1, 'other process', 'other processes')} had such stalls, too."
        if len(stalled) > 1
        else ""
    )
    yield facts.finding(
        "overhead",
        f"The event loop of {names.get(worker, 'the scheduler')} was blocked for {units.duration(us)}",
        f"{units.counted(len(seconds), 'time')}, {units.duration(max(seconds) * 1e6)} at most.{others}",
        ADVICE,
        "logs",
    )


RULE = Rule(
    "loop-stalls",
    "Event loops are blocked",
    "A scheduler or worker whose event loop is blocked answers nobody, and may be taken for lost.",
    "From 5 % of the run and 1 s, in one process, by the lines that Dask logs after 3 s.",
    check,
)
