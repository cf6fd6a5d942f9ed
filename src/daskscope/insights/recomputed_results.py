"""Results are recomputed after their workers were closed."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.analysis.workers import LOST
from daskscope.insights.facts import Facts, Finding, Rule

ADVICE = (
    "Retire workers, so that their results are moved first: client.retire_workers(), cluster.scale(), or --lifetime with "
    "--lifetime-stagger for batch jobs that end."
)


def check(facts: Facts) -> Iterator[Finding]:
    left = [worker for worker in facts.workers if worker.recomputed and worker.verdict not in LOST]
    us = sum(worker.recomputed_us for worker in left)
    if not facts.is_relevant(us):
        return
    count = sum(worker.recomputed for worker in left)
    yield facts.finding(
        "workers",
        f"{units.counted(count, 'result')} {'was' if count == 1 else 'were'} recomputed after {_whose(len(left))} left",
        f"{units.duration(us)} of compute time was wasted. {left[0].name or left[0].worker} left: "
        f"{left[0].evidence or left[0].verdict}.",
        ADVICE,
        "workers",
        facts.thread_time(us, "compute time of results that were recomputed"),
    )


def _whose(workers: int) -> str:
    return "a worker" if workers == 1 else units.counted(workers, "worker")


RULE = Rule(
    "recomputed-results",
    "Results are recomputed after their workers were closed",
    "A worker that is closed without being retired takes its results with it.",
    "From 5 % of thread time and 1 s. Results of workers that were lost are part of that finding.",
    check,
)
