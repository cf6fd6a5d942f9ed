"""There are too few chunks for the threads.

All chunks of a run depend on the same task, the one that broadcasts the processor. Dask spreads such tasks only if there are more
than two per thread; fewer go to the worker that holds the processor, and are stolen from there one by one. With 4 and 8 workers the
busiest had 1.5 to 4 times the mean number of chunks then, and at most 1.25 times above.
"""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.insights.facts import Facts, Finding, Rule

CHUNKS_PER_THREAD = 2
#: The busiest worker has this many times the mean number of chunks.
MIN_IMBALANCE = 1.5


def check(facts: Facts) -> Iterator[Finding]:
    for run in facts.coffea:
        workers = _workers(facts, run.start_us, run.stop_us)
        if run.kind != "Runner" or run.chunks > CHUNKS_PER_THREAD * run.threads or workers < 2:
            continue
        most = max((tasks for _, tasks in run.tasks_by_worker), default=0)
        imbalance = most * workers / max(run.chunks, 1)
        if imbalance < MIN_IMBALANCE:
            continue
        yield Finding(
            "coffea",
            f"{run.name} had only {units.counted(run.chunks, 'chunk')} for {units.counted(run.threads, 'thread')}",
            f"The busiest of {units.count(workers)} workers processed {units.counted(most, 'chunk')}, "
            f"{imbalance:.1f} times the mean. Dask spreads chunks evenly only if there are more than two per thread.",
            f"Use a smaller chunksize, so that there are at least {units.count(3 * run.threads)} chunks, or fewer workers.",
            "coffea",
            run.start_us,
            run.stop_us,
            facts.wall_time(
                round(run.wall_us * (1 - 1 / imbalance)), "time of the run beyond that with evenly spread chunks"
            ),
        )


def _workers(facts: Facts, start_us: int, stop_us: int) -> int:
    return sum(worker.start_us < stop_us and (worker.end_us or stop_us) > start_us for worker in facts.workers)


RULE = Rule(
    "coffea-few-chunks",
    "There are fewer chunks than threads",
    "Threads without a chunk are idle.",
    "Always.",
    check,
)
