"""Transfers between some workers are much slower than between others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.bandwidth import pair_totals
from daskscope.insights.facts import MIN_SHARE, MIN_US, Facts, Finding, Rule

ADVICE = "Look at the network between their hosts: another zone or rack, a shared link, or a host that is busy."
#: Transfers that measure a bandwidth rather than a latency, and how many of them a pair needs.
MIN_NBYTES = 100_000
MIN_TRANSFERS = 3
#: Pairs that are needed to know what is usual, and how many times slower than their median a slow one is.
MIN_PAIRS = 6
MIN_RATIO = 5.0


def check(facts: Facts) -> Iterator[Finding]:
    pairs = [
        pair for pair in pair_totals(facts.recording, MIN_NBYTES) if pair.count >= MIN_TRANSFERS and pair.us > 0
    ]  # fmt: skip
    if len(pairs) < MIN_PAIRS:
        return
    usual = float(np.median([pair.nbytes / pair.us for pair in pairs]))
    slow = [pair for pair in pairs if pair.nbytes / pair.us * MIN_RATIO <= usual]
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
        ADVICE,
        "bandwidth",
        facts.thread_time(us, "time of slow transfers beyond what they take at the usual bandwidth"),
    )


def _rate(nbytes_per_us: float) -> str:
    return f"{units.nbytes(nbytes_per_us * 1e6)}/s"


RULE = Rule(
    "slow-pairs",
    "Transfers between some workers are much slower than between others",
    "A task waits for its slowest input.",
    "At most a quarter of the pairs of workers have less than a fifth of the median bandwidth, in at least 3 transfers of 100 kB; "
    "from 5 % of the run and 1 s.",
    check,
)
