"""Some workers are slower than the others at the same work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.executions import EXECUTED
from daskscope.analysis.facts import Facts, Finding
from daskscope.analysis.grouping import MAX_DENSE, where
from daskscope.analysis.replayed_saving import with_durations
from daskscope.insights.rule import Rule
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


def check(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    prefix, worker = tasks.strings("prefix"), tasks.strings("worker")
    size = len(prefix.values) * len(worker.values)
    if len(worker.values) < MIN_WORKERS or size > MAX_DENSE:
        return
    rows = np.flatnonzero(where(tasks.strings("status"), *EXECUTED))
    cells = prefix.codes[rows].astype(np.int64) * len(worker.values) + worker.codes[rows]
    shape = (len(prefix.values), len(worker.values))
    counts = np.bincount(cells, minlength=size).reshape(shape)
    slower = _ratios(_durations(tasks)[rows], cells, counts)
    # A worker that got the larger chunks is not slow: data skew.
    larger = _ratios(np.maximum(tasks["nbytes"], 1)[rows], cells, counts)
    ratios = slower / np.maximum(larger, 1.0)
    slow = np.flatnonzero(ratios >= MIN_RATIO)
    if not len(slow) or len(slow) > MAX_SHARE * np.isfinite(ratios).sum():
        return
    spent = np.bincount(worker.codes[rows], weights=_durations(tasks)[rows], minlength=len(worker.values))
    us = int((spent * (1.0 - 1.0 / np.maximum(ratios, 1.0)))[slow].sum())
    if not facts.is_relevant(us):
        return
    is_slow = np.isin(worker.codes[rows], slow)
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
            with_durations(rows[is_slow], (_durations(tasks)[rows] / ratios[worker.codes[rows]])[is_slow]),
        ),
    )


def _durations(tasks: Table) -> Array:
    result: Array = np.maximum(tasks["stop_us"] - tasks["start_us"], 1)
    return result


def _ratios(values: Array, cells: Array, counts: Array) -> Array:
    """Return by which factor the values of each worker exceed the median of all workers; NaN if it can't be compared.

    Geometric means, because one long execution must not make its worker slow.
    """
    totals = np.bincount(cells, weights=np.log(values.astype(np.float32)), minlength=counts.size).reshape(counts.shape)
    known = counts >= MIN_TASKS
    means = np.where(known, totals / np.maximum(counts, 1), np.nan)
    comparable = known.sum(axis=1) >= MIN_WORKERS
    weights = np.where(known, counts, 0)[comparable]
    if not comparable.any():
        return np.full(counts.shape[1], np.nan)
    excess = means[comparable] - np.nanmedian(means[comparable], axis=1)[:, None]
    compared = weights.sum(axis=0)
    result: Array = np.exp(
        np.where(compared > 0, np.nansum(excess * weights, axis=0) / np.maximum(compared, 1), np.nan)
    )
    return result


RULE = Rule(
    "slow-workers",
    "Some workers are slower than the others at the same work",
    "A slow worker gets its share of tasks all the same, and others wait for the last of them.",
    "At most a third of the workers take 1.5 times as long as the median worker for the same prefixes (5 executions each, results "
    "of the same size); from 5 % of thread time and 1 s.",
    check,
)
