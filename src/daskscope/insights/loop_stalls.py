"""Event loops are blocked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from daskscope import units
from daskscope.analysis.facts import MIN_US, Facts, Finding
from daskscope.insights.rule import Rule

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
    for (message,) in facts.recording["logs"].records("message"):
        if found := MESSAGE.search(message):
            stalled.setdefault(found[1].lower(), []).append(float(found[2]))
    for part, seconds in stalled.items():
        us = round(sum(seconds) * 1e6)
        if us < max(MIN_US, MIN_STALLED * facts.run_us):
            continue
        yield facts.finding(
            "overhead",
            f"The event loop of {'the scheduler' if part == 'scheduler' else 'workers'} was blocked for {units.duration(us)}",
            f"{units.counted(len(seconds), 'time')}, {units.duration(max(seconds) * 1e6)} at most.",
            ADVICE,
            "logs",
        )


RULE = Rule(
    "loop-stalls",
    "Event loops are blocked",
    "A scheduler or worker whose event loop is blocked answers nobody, and may be taken for lost.",
    "From 5 % of the run and 1 s, by the warnings that Dask logs after 3 s.",
    check,
)
