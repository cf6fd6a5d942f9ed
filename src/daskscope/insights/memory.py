"""Rules about the memory of workers: it grows without end, or is hardly used."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.columns.grouping import rows_by_group, where
from daskscope.insights.facts import Facts, Finding, Rule

#: Growth as a share of the memory limit, and samples of a worker that are needed to see it.
MIN_GROWTH = 0.2
MIN_SAMPLES = 10
#: Each third of the time has more than the one before, by this share of the whole growth.
STEADY = 0.2
#: A task may need more and more memory while it runs. What remains does so over several, none of which takes a third of the time.
MIN_TASKS = 5


def _memory_growth(facts: Facts) -> Iterator[Finding]:
    samples = facts.recording["samples"]
    unmanaged = samples["memory"] - samples["managed"]
    names, sampled = samples.strings("worker"), np.flatnonzero(samples["memory"] > 0)
    rows_of = {str(names.values[code]): sampled[rows] for code, rows in rows_by_group(names.codes[sampled])}
    grown = []
    for worker in facts.workers:
        rows = rows_of.get(worker.worker, sampled[:0])
        # Before the end of its first task, a worker may have imported nothing yet.
        rows = rows[samples["time_us"][rows] >= _first_end_us(facts, worker.worker)]
        if len(rows) < MIN_SAMPLES or worker.memory_limit <= 0:
            continue
        rows = rows[np.argsort(samples["time_us"][rows])]
        thirds = [float(np.median(part)) for part in np.array_split(unmanaged[rows], 3)]
        growth = thirds[2] - thirds[0]
        is_steady = min(thirds[1] - thirds[0], thirds[2] - thirds[1]) > STEADY * growth
        first_us, last_us = (int(samples["time_us"][rows[at]]) for at in (0, -1))
        is_kept = _is_between_tasks(facts, worker.worker, first_us, last_us)
        if growth > MIN_GROWTH * worker.memory_limit and is_steady and is_kept:
            grown.append((growth, worker))
    if grown:
        growth, worker = max(grown, key=lambda one: one[0])
        yield facts.finding(
            "memory",
            f"Unmanaged memory grew on {units.counted(len(grown), 'worker')}",
            f"On worker {worker.name or worker.worker}, by {units.nbytes(growth)}, which is "
            f"{units.percent(growth / worker.memory_limit)} of its limit.",
            "Dask does not know what holds it: caches, global variables, or a library that does not return memory. Try "
            "client.run(gc.collect), MALLOC_TRIM_THRESHOLD_=0 on workers, or restart them with --lifetime.",
            "memory",
        )


def _first_end_us(facts: Facts, worker: str) -> int:
    """Return when the first task of a worker ended; the end of the run if it had none."""
    tasks = facts.recording["tasks"]
    return int(tasks["stop_us"][where(tasks.strings("worker"), worker)].min(initial=facts.stop_us))


def _is_between_tasks(facts: Facts, worker: str, start_us: int, stop_us: int) -> bool:
    """Return whether a worker executed several tasks in this time, and none for a third of it."""
    tasks = facts.recording["tasks"]
    mine = where(tasks.strings("worker"), worker) & (tasks["stop_us"] > start_us) & (tasks["start_us"] < stop_us)
    rows = np.flatnonzero(mine)
    lengths = np.minimum(tasks["stop_us"][rows], stop_us) - np.maximum(tasks["start_us"][rows], start_us)
    return len(rows) >= MIN_TASKS and 3 * int(lengths.max()) < stop_us - start_us


MEMORY_GROWTH = Rule(
    "memory-growth",
    "Unmanaged memory of workers grows",
    "A worker at its limit spills, pauses and is killed in the end, whatever the size of the data.",
    "From the first to the last third of the samples since the end of its first task, the median of a worker grew steadily by 20 % "
    "of the memory limit, over at least five tasks, none of which ran for a third of the time.",
    _memory_growth,
)


#: Peak as a share of the limit, and the length of a run that shows it.
MAX_PEAK = 0.25
MIN_RUN_US = 60_000_000


def _spare_memory(facts: Facts) -> Iterator[Finding]:
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
            "Use workers with less memory, or larger chunks and fewer tasks.",
            "memory",
            rank=3,
        )


SPARE_MEMORY = Rule(
    "spare-memory",
    "Workers use little of their memory",
    "Memory is paid for, used or not. Larger chunks need more of it and have less overhead.",
    "Peaks below 25 % of the limit on all workers, in runs of a minute and more without spilling.",
    _spare_memory,
)
