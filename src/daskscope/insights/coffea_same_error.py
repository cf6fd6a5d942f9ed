"""A chunk failed in the same way on every try.

coffea asks Dask to retry failed chunks three times. An error of the code or of a file does not go away: four executions are lost
instead of one. In one run they took 22 % of the thread time.
"""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.insights.facts import Facts, Finding, Rule, error_line


def check(facts: Facts) -> Iterator[Finding]:
    for run in facts.coffea:
        prefixes = {run.name}
        for failure in facts.errors:
            if not (failure.retried and failure.count > failure.retried and {*failure.prefixes} & prefixes):
                continue
            if not facts.is_relevant(run.failed_us):
                continue
            yield Finding(
                "coffea",
                f"Retries of {run.name} failed again",
                f"{error_line(failure)}: {units.counted(failure.count, 'execution')} failed, "
                f"{units.count(failure.retried)} of them were retried. They took {units.duration(run.failed_us)}.",
                "Retries help against unreliable storage only. For an error of the code, set DaskExecutor(retries=0).",
                "errors",
                failure.first_us,
                failure.last_us,
                facts.thread_time(run.failed_us, "time of the executions that failed"),
                1,
            )


RULE = Rule(
    "coffea-same-error",
    "All chunks fail with the same error",
    "An error in the processor fails every chunk, after the whole time of each.",
    "Always.",
    check,
)
