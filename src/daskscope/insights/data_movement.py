"""Rules about moving data: transfers between workers, and results that are spilled to disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daskscope import units
from daskscope.analysis.resources import pair_totals, shuffled
from daskscope.analysis.what_if.savings import Change, without_spilling, without_transfers
from daskscope.insights.facts import MIN_SHARE, MIN_US, Facts, Finding, Rule, at_least

#: Share of thread time above which transfers or disk are worth a finding: less hardly delays a run, because other threads
#: compute meanwhile.
DATA_SHARE = 0.2
WHEN = f"Above {100 * DATA_SHARE:g} % of thread time."


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
            sent = shuffled(facts.recording)
            if self.category == "transfer" and sent:
                evidence += f" P2P shuffles sent {units.nbytes(sent)}."
            saved = facts.thread_time(us, f"all thread time spent {self.activity}", self.change)
            yield facts.finding("data movement", title, evidence, self.advice, self.view, saved)


def _movement_rule(id: str, what: str, why: str, movement: Movement) -> Rule:
    """Return the rule about an activity; ``what`` ends its title."""
    return Rule(id, f"Threads spend much of their time on {what}", why, WHEN, movement.check)


TRANSFERS = _movement_rule(
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
SPILLING = _movement_rule(
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


# ---------------------------------------------------------------- slow pairs of workers

#: Transfers that measure a bandwidth rather than a latency, and how many of them a pair needs.
MIN_NBYTES = 100_000
MIN_TRANSFERS = 3
#: Pairs that are needed to know what is usual, and how many times slower than their median a slow one is.
MIN_PAIRS = 6
MIN_SLOWDOWN = 5.0


def _slow_pairs(facts: Facts) -> Iterator[Finding]:
    pairs = [
        pair for pair in pair_totals(facts.recording, MIN_NBYTES) if pair.count >= MIN_TRANSFERS and pair.us > 0
    ]  # fmt: skip
    if len(pairs) < MIN_PAIRS:
        return
    usual = float(np.median([pair.nbytes / pair.us for pair in pairs]))
    slow = [pair for pair in pairs if pair.nbytes / pair.us * MIN_SLOWDOWN <= usual]
    us = round(sum(pair.us - pair.nbytes / usual for pair in slow))
    # If half of the pairs are slow, none of the two speeds is the usual one.
    if not slow or 4 * len(slow) > len(pairs) or us < max(MIN_US, MIN_SHARE * facts.run_us):
        return
    worst = min(slow, key=lambda pair: pair.nbytes / pair.us)
    names = {worker.worker: worker.name or worker.worker for worker in facts.workers}
    source, destination = (names.get(end, end) for end in (worst.source, worst.destination))
    yield facts.finding(
        "data movement",
        f"Transfers from worker {source} to {destination} were {usual * worst.us / worst.nbytes:.0f} times slower than usual",
        f"{_rate(worst.nbytes / worst.us)} in {units.counted(worst.count, 'transfer')}; the median of "
        f"{units.counted(len(pairs), 'pair')} of workers is {_rate(usual)}. "
        f"{units.counted(len(slow), 'pair')} {'is' if len(slow) == 1 else 'are'} that slow.",
        "Look at the network between their hosts: another zone or rack, a shared link, or a host that is busy.",
        "bandwidth",
        facts.thread_time(us, "time of slow transfers beyond what they take at the usual bandwidth"),
    )


def _rate(nbytes_per_us: float) -> str:
    return f"{units.nbytes(nbytes_per_us * 1e6)}/s"


SLOW_PAIRS = Rule(
    "slow-pairs",
    "Transfers between some workers are much slower than between others",
    "A task waits for its slowest input.",
    "At most a quarter of the pairs of workers have less than a fifth of the median bandwidth, in at least 3 transfers of 100 kB; "
    f"from {at_least(MIN_SHARE, 'the run')}.",
    _slow_pairs,
)
