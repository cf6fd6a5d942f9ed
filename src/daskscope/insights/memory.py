"""Rules about the memory of workers: it grows without end, or is hardly used."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.columns.grouping import rows_by_group
from daskscope.insights.facts import Facts, Finding, Rule

#: Growth as a share of the memory limit, and samples of a worker that are needed to see it.
MIN_GROWTH = 0.2
MIN_SAMPLES = 10
#: Each third of the time has more than the one before, by this share of the whole growth.
STEADY = 0.2


def _memory_growth(facts: Facts) -> Iterator[Finding]:
    samples = facts.recording["samples"]
    unmanaged = samples["memory"] - samples["managed"]
    names, sampled = samples.strings("worker"), np.flatnonzero(samples["memory"] > 0)
    rows_of = {str(names.values[code]): sampled[rows] for code, rows in rows_by_group(names.codes[sampled])}
    grown = []
    for worker in facts.workers:
        rows = rows_of.get(worker.worker, sampled[:0])
        if len(rows) < MIN_SAMPLES or worker.memory_limit <= 0:
            continue
        rows = rows[np.argsort(samples["time_us"][rows])]
        # The first sample is of a worker that has imported nothing yet.
        thirds = [float(np.median(part)) for part in np.array_split(unmanaged[rows[1:]], 3)]
        growth = thirds[2] - thirds[0]
        is_steady = min(thirds[1] - thirds[0], thirds[2] - thirds[1]) > STEADY * growth
        if growth > MIN_GROWTH * worker.memory_limit and is_steady:
            grown.append((growth, worker))
    if grown:
        growth, worker = max(grown, key=lambda one: one[0])
        yield facts.finding(
            "memory",
            f"Unmanaged memory grew on {units.counted(len(grown), 'worker')}",
            f"On {worker.name or worker.worker}, by {units.nbytes(growth)}, which is "
            f"{units.percent(growth / worker.memory_limit)} of its limit.",
            "Dask does not know what holds it: caches, global variables, or a library that does not return memory. Try "
            "client.run(gc.collect), MALLOC_TRIM_THRESHOLD_=0 on workers, or restart them with --lifetime.",
            "memory",
        )


MEMORY_GROWTH = Rule(
    "memory-growth",
    "Unmanaged memory of workers grows",
    "A worker at its limit spills, pauses and is killed in the end, whatever the size of the data.",
    "From the first to the last third of the samples, the median grew steadily by 20 % of the memory limit.",
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
