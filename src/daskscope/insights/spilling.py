"""Threads spend much of their time on spilled results."""

from __future__ import annotations

from daskscope.analysis.what_if.savings import without_spilling
from daskscope.insights.data_movement import Movement, movement_rule

RULE = movement_rule(
    "spilling",
    "spilled results",
    "A thread that reads spilled results from disk computes nothing meanwhile.",
    Movement(
        "disk",
        "reading and writing spilled results",
        "Give workers more memory or use smaller chunks, so that results need not be spilled.",
        "memory",
        without_spilling,
    ),
)
