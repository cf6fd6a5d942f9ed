"""Some workers are slower than the others at the same work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daskscope import units
from daskscope.analysis.executions import EXECUTED
from daskscope.analysis.grouping import MAX_DENSE, where
from daskscope.analysis.replayed_saving import MAX_TASKS, Change, with_durations
from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.model.table import Array, Table

ADVICE = (
    "Look at its host: other programs, slower cores, a throttled or swapping machine, or storage that is far away. Replace it, or "
    "leave it out."
)
#: Executions of a prefix that say how fast a worker is, and workers with as many that it is compared with.
MIN_TASKS = 5
MIN_WORKERS = 3
#: How many times slower, and the largest share of all workers: if more are slow, slow is normal.
MIN_RATIO = 1.5
MAX_SHARE = 0.34
#: Executions that are added up at a time: 20 MB.
BLOCK = 500_000


def check(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    worker = tasks.strings("worker")
    if len(worker.values) < MIN_WORKERS or len(worker.values) * len(tasks.strings("prefix").values) > MAX_DENSE:
        return
    sums = _sums(tasks)
    # A worker that got the larger chunks is not slow: data skew.
    ratios = _ratios(sums.durations, sums.counts) / np.maximum(_ratios(sums.sizes, sums.counts), 1.0)
    slow = np.flatnonzero(ratios >= MIN_RATIO)
    if not len(slow) or len(slow) > MAX_SHARE * np.isfinite(ratios).sum():
        return
    us = int((sums.spent_us * (1.0 - 1.0 / np.maximum(ratios, 1.0)))[slow].sum())
    if not facts.is_relevant(us):
        return
    worst = int(slow[np.argmax(ratios[slow])])
    name = next((w.name for w in facts.workers if w.worker == worker.values[worst]), "") or worker.values[worst]
    others = f", and {units.counted(len(slow) - 1, 'other')} more than {MIN_RATIO:g} times" if len(slow) > 1 else ""
    yield facts.finding(
        "workers",
        f"Worker {name} took {ratios[worst]:.1f} times as long as others for the same tasks",
        f"It is compared with {units.counted(int(np.isfinite(ratios).sum()) - 1, 'worker')}, prefix by prefix{others}. "
        f"{units.duration(us)} of thread time is beyond what the others would have taken.",
        ADVICE,
        "workers",
        facts.thread_time(
            us,
            "compute time of slow workers beyond what others took for the same prefixes",
            _as_fast_as_others(tasks, slow, ratios),
        ),
    )


@dataclass(frozen=True)
class _Sums:
    """Executions by prefix (a row) and worker (a column), with the sums of logarithms; and the time of each worker."""

    counts: Array
    durations: Array
    sizes: Array
    spent_us: Array


def _sums(tasks: Table) -> _Sums:
    """Add up executions block by block: all at once would need 180 MB for five million."""
    prefix, worker = tasks.strings("prefix"), tasks.strings("worker")
    shape = len(prefix.values), len(worker.values)
    ran = where(tasks.strings("status"), *EXECUTED)
    totals = [np.zeros(shape[0] * shape[1]) for _ in range(3)]
    spent_us = np.zeros(shape[1])
    for first in range(0, tasks.rows, BLOCK):
        block = slice(first, first + BLOCK)
        kept = ran[block]
        workers = worker.codes[block][kept]
        cells = prefix.codes[block][kept].astype(np.int64) * shape[1] + workers
        durations = np.maximum(tasks["stop_us"][block] - tasks["start_us"][block], 1)[kept]
        weights = (None, np.log(durations), np.log(np.maximum(tasks["nbytes"][block], 1)[kept]))
        for total, weight in zip(totals, weights, strict=True):
            total += np.bincount(cells, weights=weight, minlength=len(total))
        spent_us += np.bincount(workers, weights=durations, minlength=shape[1])
    counts, of_durations, of_sizes = (total.reshape(shape) for total in totals)
    return _Sums(counts, of_durations, of_sizes, spent_us)


def _ratios(totals: Array, counts: Array) -> Array:
    """Return by which factor the values of each worker exceed the median of all workers; NaN if it can't be compared.

    Geometric means, because one long execution must not make its worker slow.
    """
    known = counts >= MIN_TASKS
    comparable = known.sum(axis=1) >= MIN_WORKERS
    if not comparable.any():
        return np.full(counts.shape[1], np.nan)
    means = np.where(known, totals / np.maximum(counts, 1), np.nan)[comparable]
    weights = np.where(known, counts, 0)[comparable]
    excess = means - np.nanmedian(means, axis=1)[:, None]
    compared = weights.sum(axis=0)
    result: Array = np.exp(
        np.where(compared > 0, np.nansum(excess * weights, axis=0) / np.maximum(compared, 1), np.nan)
    )
    return result


def _as_fast_as_others(tasks: Table, slow: Array, ratios: Array) -> Change | None:
    """Return the change to executions that take on slow workers what they take on others; None if there are too many."""
    if tasks.rows > MAX_TASKS:
        return None
    workers = tasks.strings("worker").codes
    rows = np.flatnonzero(np.isin(workers, slow))
    durations = np.maximum(tasks["stop_us"] - tasks["start_us"], 0)[rows]
    return with_durations(rows, durations / ratios[workers[rows]])


RULE = Rule(
    "slow-workers",
    "Some workers are slower than the others at the same work",
    "A slow worker gets its share of tasks all the same, and others wait for the last of them.",
    "At most a third of the workers take 1.5 times as long as the median worker for the same prefixes (5 executions each, results "
    "of the same size); from 5 % of thread time and 1 s.",
    check,
)
