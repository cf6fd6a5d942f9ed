"""Threads spend much of their time on transfers."""

from __future__ import annotations

from daskscope.analysis.what_if.savings import without_transfers
from daskscope.insights.data_movement import Movement, movement_rule

RULE = movement_rule(
    "transfers",
    "transfers",
    "A thread that waits for inputs from other workers computes nothing.",
    Movement(
        "transfer",
        "on transfers between workers",
        "Use larger chunks, or fewer workers with more threads each, so that more inputs are already local.",
        "bandwidth",
        without_transfers,
    ),
)
