"""Tasks wait for the network."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.waiting import WHEN, waiting_finding

ADVICE = "Read larger pieces at a time, use more threads per worker, or run the cluster closer to the data."


def check(facts: Facts) -> Iterator[Finding]:
    yield from waiting_finding(facts, "network", "waited for the network", ADVICE)


RULE = Rule(
    "network-reads",
    "Tasks wait for the network",
    "A thread that waits for a server does nothing else meanwhile, and its core is paid for.",
    WHEN,
    check,
)
