"""Graphs take long to unpack."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.insights.facts import MIN_US, Facts, Finding, Rule

ADVICE = (
    "The graph is large, or has data in it. Use fewer, larger chunks, scatter large objects instead of passing them as arguments, "
    "and load data inside of tasks."
)
#: Share of the run.
MIN_GRAPH = 0.1


def check(facts: Facts) -> Iterator[Finding]:
    computations = facts.recording["computations"]
    if not computations.rows:
        return
    us = int(np.maximum(computations["graph_us"], 0).sum())
    # A part of a run may have more of it than time: the graph was unpacked before.
    if us < max(MIN_US, MIN_GRAPH * facts.run_us) or us > facts.run_us:
        return
    row = int(np.argmax(computations["graph_us"]))
    yield facts.finding(
        "overhead",
        f"The scheduler spent {units.percent(us / facts.run_us)} of the run on unpacking graphs",
        f"{units.duration(us)} in total; the largest one had {units.counted(int(computations['tasks'][row]), 'task')} and took "
        f"{units.duration(int(computations['graph_us'][row]))}.",
        ADVICE,
        "computations",
        facts.wall_time(us, "time from the arrival of graphs until their tasks existed"),
    )


RULE = Rule(
    "large-graphs",
    "Graphs take long to unpack",
    "Workers wait until the scheduler has made tasks of the graph. It does nothing else meanwhile.",
    "From 10 % of the run and 1 s.",
    check,
)
