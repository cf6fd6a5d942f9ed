"""Sums by task prefix: executions and their other activities, and Dask's fine performance metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.bins import Bins, Cube, make_cube
from daskscope.analysis.executions import EXECUTED, recomputed_rows
from daskscope.analysis.grouping import combine, counts, percentile, rows_by_group, sums, where
from daskscope.analysis.intervals import sum_by_action
from daskscope.analysis.memory import peaks_during
from daskscope.model.recording import Recording
from daskscope.model.table import Table

DISK = ("disk-read", "disk-write")
FINE_METRIC_KEYS = ("context", "span", "prefix", "activity", "unit")
#: Fine metrics that pages and ``show`` leave out, by the labels they have: plain digests such as tick-duration, P2P buffers that
#: wait, and P2P metrics of tasks, which Dask counts in the context ``execute`` too.
INTERNAL_METRICS: tuple[dict[str, str], ...] = (
    {"prefix": "", "activity": "total"},
    {"context": "p2p", "activity": "idle"},
    {"context": "p2p", "prefix": "foreground"},
)


@dataclass(frozen=True)
class Prefix:
    """All executions of one task prefix."""

    prefix: str
    count: int
    total_us: int
    mean_us: int
    p50_us: int
    p95_us: int
    max_us: int
    nbytes: int
    errors: int
    retries: int
    killed: int
    transfer_us: int
    disk_us: int
    #: Microseconds by action of all activities besides computing, under Dask's names.
    intervals_us: Mapping[str, int]
    #: Standard deviation of the durations.
    std_us: int = 0
    p99_us: int = 0
    #: Compute time of results that were lost and recomputed.
    recomputed_us: int = 0
    #: Peak memory of a worker process while it ran the prefix; 0 if it was not sampled.
    peak_memory: int = 0


@dataclass(frozen=True)
class Activity:
    """The total of one fine metric; any label, any unit."""

    context: str
    prefix: str
    activity: str
    unit: str
    total: float


def prefixes(recording: Recording) -> tuple[Prefix, ...]:
    """Return every prefix that ran, longest compute time first."""
    tasks = recording["tasks"]
    names, status = tasks.strings("prefix"), tasks.strings("status")
    size, executed = len(names.values), where(status, *EXECUTED)
    durations = tasks["stop_us"] - tasks["start_us"]
    nbytes = sums(names.codes, tasks["nbytes"], size)
    by_status = {word: counts(names.codes[where(status, word)], size) for word in ("error", "retried", "killed")}
    intervals = sum_by_action(tasks, names.codes, size)
    again = np.flatnonzero(recomputed_rows(recording))
    recomputed = sums(names.codes[again], np.maximum(durations[again], 0), size)
    memory = np.zeros(size, dtype=np.int64)
    during = peaks_during(recording["samples"], "memory", tasks.strings("worker"), tasks["start_us"], tasks["stop_us"])
    np.maximum.at(memory, names.codes, during)
    found = []
    for code, rows in rows_by_group(names.codes):
        ordered = np.sort(durations[rows[executed[rows]]])
        count, total = len(ordered), int(ordered.sum())
        found.append(
            Prefix(
                prefix=names.values[code],
                count=count,
                total_us=total,
                mean_us=round(total / count) if count else 0,
                p50_us=percentile(ordered, 0.5) if count else 0,
                p95_us=percentile(ordered, 0.95) if count else 0,
                max_us=int(ordered[-1]) if count else 0,
                nbytes=int(nbytes[code]),
                errors=int(by_status["error"][code]),
                retries=int(by_status["retried"][code]),
                killed=int(by_status["killed"][code]),
                transfer_us=intervals[code].get("transfer", 0),
                disk_us=sum(intervals[code].get(action, 0) for action in DISK),
                intervals_us=intervals[code],
                std_us=round(float(np.std(ordered))) if count else 0,
                p99_us=percentile(ordered, 0.99) if count else 0,
                recomputed_us=int(recomputed[code]),
                peak_memory=int(memory[code]),
            )
        )
    return tuple(sorted(found, key=lambda prefix: (-prefix.total_us, prefix.prefix)))


def activities(recording: Recording) -> tuple[Activity, ...]:
    """Return the totals of Dask's fine metrics, ordered by unit, largest first, without internal metrics."""
    table = without_internal(recording["activities"])
    columns = [table.strings(name) for name in ("context", "prefix", "activity", "unit")]
    codes, labels = combine(columns)
    totals: Iterable[float] = np.bincount(codes, weights=table["value"], minlength=len(labels)) if len(codes) else []
    found = [Activity(c, p, a, u, float(total)) for (c, p, a, u), total in zip(labels, totals, strict=True)]
    return tuple(sorted(found, key=lambda a: (*_rank(a.unit), -a.total, a.context, a.prefix, a.activity)))


def without_internal(table: Table) -> Table:
    """Return fine metrics that measure work, each once."""
    internal = np.zeros(table.rows, dtype=bool)
    for labels in INTERNAL_METRICS:
        internal |= np.logical_and.reduce([where(table.strings(name), text) for name, text in labels.items()])
    return table.take(~internal)


def _rank(unit: str) -> tuple[bool, bool, str]:
    """Sort seconds first and metrics without a unit last."""
    return unit != "seconds", unit == "", unit


def fine_metrics(recording: Recording, bins: Bins) -> Cube:
    """Return Dask's fine metrics in the bin in which they were reported; the totals are those of the recording."""
    table = recording["activities"]
    columns = [table.strings(name) for name in FINE_METRIC_KEYS]
    keys = {name: list(map(str, column.values)) for name, column in zip(FINE_METRIC_KEYS, columns, strict=True)}
    values = np.where(np.isfinite(table["value"]), table["value"], 0.0)
    return make_cube(
        keys, [column.codes for column in columns], bins.of(table["time_us"]), bins.count, {"value": values}
    )
