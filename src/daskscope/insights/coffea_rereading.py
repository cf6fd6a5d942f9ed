"""Chunks read the same parts of a file again.

ROOT stores a branch in baskets of some thousand events. A chunk that begins inside a basket reads and decompresses all of it. With
baskets of 20,000 events, chunks of 10,000 read 2.1 times as many bytes as chunks of 200,000, and chunks of 2,500 8 times.
"""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.insights.facts import Facts, Finding, Rule

MIN_AMPLIFICATION = 1.5


def check(facts: Facts) -> Iterator[Finding]:
    for run in facts.coffea:
        factor = run.read_amplification
        if factor is None or factor < MIN_AMPLIFICATION:
            continue
        least = run.least_bytes_per_event or 0.0
        yield Finding(
            "coffea",
            f"{run.name} read {factor:.1f} times as many bytes as necessary",
            f"{run.bytes_per_event:.0f} bytes per event; another run with the same columns read {least:.0f}. "
            f"Chunks of about {units.count(round(run.events / max(run.chunks, 1)))} events are smaller than the baskets of "
            "the files.",
            "Use larger chunks, or Runner(align_clusters=True).",
            "coffea",
            run.start_us,
            run.stop_us,
        )


RULE = Rule(
    "coffea-rereading",
    "The same bytes are read again",
    "Columns that are read more often than needed cost time and bandwidth.",
    "Measured against the size of the columns.",
    check,
)
