"""All rules, and the findings they make in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from daskscope.analysis.findings import RULES as GENERAL
from daskscope.analysis.findings import Facts, Finding
from daskscope.insights import (
    coffea_chunk_size,
    coffea_few_chunks,
    coffea_opening,
    coffea_rereading,
    coffea_same_error,
    coffea_scaling,
    coffea_skipped,
    python_loops,
)

RULES: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    *GENERAL,
    coffea_skipped.check,
    coffea_same_error.check,
    coffea_opening.check,
    coffea_chunk_size.check,
    coffea_few_chunks.check,
    coffea_rereading.check,
    coffea_scaling.check,
    python_loops.check,
)


def findings(facts: Facts) -> tuple[Finding, ...]:
    """Return the findings: first the error that ended the run, then certain facts, then by estimated saving."""
    found = [finding for rule in RULES for finding in rule(facts)]
    return tuple(sorted(found, key=lambda finding: (finding.rank, -finding.gain.share if finding.gain else 0)))
