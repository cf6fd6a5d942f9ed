"""Tasks wait for threads of a library."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.waiting import WHEN, waiting_finding

ADVICE = (
    "These threads use cores that Dask does not count. Set OMP_NUM_THREADS=1 on workers, give each worker one thread, "
    "or compute in the task's own thread."
)
WHAT = "waited for threads of a library, such as BLAS, or for threads they had started"


def check(facts: Facts) -> Iterator[Finding]:
    yield from waiting_finding(facts, "native", WHAT, ADVICE)


RULE = Rule(
    "library-threads",
    "Tasks wait for threads of a library",
    "BLAS and similar libraries start a thread per core, in every thread of Dask: more threads than cores.",
    WHEN,
    check,
)
