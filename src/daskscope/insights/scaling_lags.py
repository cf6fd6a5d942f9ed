"""Workers come long after adaptive scaling wants them."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.scaling import does_flap, is_late, scaling_of

ADVICE = "Raise minimum= of adapt(), start workers before the work, or use hosts and images that start faster."


def check(facts: Facts) -> Iterator[Finding]:
    scaling = scaling_of(facts)
    if scaling is None or not is_late(facts, scaling) or does_flap(facts):
        return
    yield facts.finding(
        "scaling",
        f"Workers were missing for {units.duration(scaling.late_us)} after scaling had asked for them",
        f"Up to {units.counted(int(scaling.late.max()), 'worker')} of {units.count(scaling.peak)} came late.",
        ADVICE,
        "workers",
        facts.wall_time(scaling.saved_us, "work that the late workers would have done, spread over all workers"),
    )


RULE = Rule(
    "scaling-lags",
    "Workers come long after adaptive scaling wants them",
    "Work waits until hosts, containers and Python have started.",
    "The late workers would have saved 5 % of the run and 1 s. Only workers that did come count, and a cluster that flaps has "
    "another finding.",
    check,
)
