"""Make the rules about transfers and spilled results, which differ in the activity only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from daskscope import units
from daskscope.analysis.replayed_saving import Change
from daskscope.insights.facts import Facts, Finding, Rule

#: Share of thread time above which transfers or disk are worth a finding.
DATA_SHARE = 0.2
WHEN = "Above 20 % of thread time: less hardly delays a run, because other threads compute meanwhile."


@dataclass(frozen=True)
class Movement:
    """An activity that moves data: its category of thread time, its name in sentences, and what to do about it."""

    category: str
    activity: str
    advice: str
    view: str
    #: A computation without it.
    change: Change

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Yield the finding, if the activity takes enough thread time."""
        us = facts.split.split[self.category]
        if us > DATA_SHARE * facts.split.thread_us:
            title = f"Threads spent {units.percent(us / facts.split.thread_us)} of their time {self.activity}"
            evidence = f"{units.duration(us)} of {units.duration(facts.split.thread_us)} of thread time."
            saved = facts.thread_time(us, f"all thread time spent {self.activity}", self.change)
            yield facts.finding("data movement", title, evidence, self.advice, self.view, saved)


def movement_rule(id: str, what: str, why: str, movement: Movement) -> Rule:
    """Return the rule about an activity; ``what`` ends its title."""
    return Rule(id, f"Threads spend much of their time on {what}", why, WHEN, movement.check)
