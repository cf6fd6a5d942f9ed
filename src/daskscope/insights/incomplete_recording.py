"""The recording is incomplete."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.analysis.summary import completeness, describe_gap, recording_gaps
from daskscope.insights.facts import Facts, Finding, Rule, sentence


def check(facts: Facts) -> Iterator[Finding]:
    yield from _dropped(facts)
    yield from _gaps(facts)


def _dropped(facts: Facts) -> Iterator[Finding]:
    parts = [part for part in completeness(facts.recording) if part.dropped]
    if parts:
        dropped = sum(part.dropped for part in parts)
        title = f"{units.counted(dropped, 'row')} {'was' if dropped == 1 else 'were'} dropped"
        evidence = sentence([part.share(part.dropped) for part in parts])
        advice = "Totals of computations and task groups are exact. Views of individual rows are incomplete."
        yield facts.finding("incomplete", title, evidence, advice, "tables", rank=3)


def _gaps(facts: Facts) -> Iterator[Finding]:
    gaps = recording_gaps(facts.recording)
    if gaps:
        title = f"Nothing was recorded for {units.duration(sum(stop - start for start, stop in gaps))}"
        advice = "Recording was ended and started again. The time between counts as idle."
        evidence = sentence([describe_gap(*gap) for gap in gaps])
        yield facts.finding("incomplete", title, evidence, advice, "tables", rank=3)


RULE = Rule(
    "incomplete-recording",
    "The recording is incomplete",
    "Rows that were dropped are missing in tables and charts. Totals are exact.",
    "Always.",
    check,
)
