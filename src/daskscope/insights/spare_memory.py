"""Workers use little of their memory."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.insights.facts import Facts, Finding, Rule

ADVICE = "Use workers with less memory, or larger chunks and fewer tasks."
#: Peak as a share of the limit, and the length of a run that shows it.
MAX_PEAK = 0.25
MIN_RUN_US = 60_000_000


def check(facts: Facts) -> Iterator[Finding]:
    known = [worker for worker in facts.workers if worker.memory_limit > 0 and worker.peak_memory > 0 and worker.tasks]
    if not known or facts.run_us < MIN_RUN_US or any(worker.spilled for worker in known):
        return
    worker = max(known, key=lambda one: one.peak_memory / one.memory_limit)
    peak = worker.peak_memory / worker.memory_limit
    if peak < MAX_PEAK:
        yield facts.finding(
            "memory",
            f"No worker used more than {units.percent(peak)} of its memory",
            f"The peak was {units.nbytes(worker.peak_memory)} of {units.nbytes(worker.memory_limit)}.",
            ADVICE,
            "memory",
            rank=3,
        )


RULE = Rule(
    "spare-memory",
    "Workers use little of their memory",
    "Memory is paid for, used or not. Larger chunks need more of it and have less overhead.",
    "Peaks below 25 % of the limit on all workers, in runs of a minute and more without spilling.",
    check,
)
