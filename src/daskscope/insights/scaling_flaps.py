"""Adaptive scaling gives workers back and starts others soon after."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.scaling import does_flap, needed_us, replaced, scaling_of

ADVICE = "Keep workers longer: raise minimum=, wait_count= or interval= of adapt()."


def check(facts: Facts) -> Iterator[Finding]:
    scaling = scaling_of(facts)
    if scaling is None or not does_flap(facts):
        return
    count, life_us = replaced(facts)
    yield facts.finding(
        "scaling",
        f"Scaling gave {units.counted(count, 'worker')} back and replaced them",
        f"Their median uptime was {units.duration(life_us)}. Wanted workers were missing for {units.duration(scaling.late_us)}.",
        ADVICE,
        "workers",
        facts.wall_time(
            needed_us(facts, scaling),
            "work that missing workers would have done while tasks waited, spread over all workers",
        ),
    )


RULE = Rule(
    "scaling-flaps",
    "Adaptive scaling gives workers back and starts others soon after",
    "A new worker has to start and to import libraries, and the results of the old one had to be moved or were lost.",
    "At least 3 workers were given back within 5 minutes of joining, and replaced within 5 minutes.",
    check,
)
