"""Files or chunks were skipped.

With ``skipbadfiles``, coffea leaves out files that it cannot read. Its metrics do not say so, and its number of chunks counts them.
"""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.insights.facts import Facts, Finding, Rule


def check(facts: Facts) -> Iterator[Finding]:
    for run in facts.coffea:
        parts = [
            f"{units.count(skipped)} of {units.counted(total, noun)}"
            for skipped, total, noun in (
                (run.files_skipped, run.files, "file"),
                (run.chunks_skipped, run.chunks, "chunk"),
            )
            if skipped
        ]
        if parts:
            yield Finding(
                "coffea",
                f"{run.name} skipped {' and '.join(parts)}",
                "The result lacks their events. coffea's own metrics do not count them.",
                "Check these files. The worker's warnings name them.",
                "coffea",
                run.start_us,
                run.stop_us,
                rank=1,
            )


RULE = Rule(
    "coffea-skipped",
    "Files were skipped",
    "A skipped file is missing in the result, and nothing else says so.",
    "Always.",
    check,
)
