"""Where the time went, by task prefix: executions and what they did besides computing, and Dask's fine metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.grouping import combine, counts, interval_sums, percentile, rows_by_group, sums, where
from daskscope.analysis.peaks import peaks_during
from daskscope.analysis.recomputed import recomputed_rows
from daskscope.model.recording import Recording

#: Executions that came to an end by themselves. A killed one has no duration that was measured.
EXECUTED = ("ok", "error", "retried")
DISK = ("disk-read", "disk-write")


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
    #: Microseconds by action of everything besides computing, whatever Dask calls it.
    intervals_us: Mapping[str, int]
    #: How far durations scatter around their mean.
    std_us: int = 0
    p99_us: int = 0
    #: Executions whose result was lost, so that they ran again.
    recomputed_us: int = 0
    #: The largest memory of a worker process seen while the prefix ran on it, 0 where nobody looked.
    peak_memory: int = 0


@dataclass(frozen=True)
class Activity:
    """What one activity adds up to; any label, any unit."""

    context: str
    prefix: str
    activity: str
    unit: str
    total: float


def prefixes(recording: Recording) -> tuple[Prefix, ...]:
    """Every prefix that ran, the one that computed longest first."""
    tasks = recording["tasks"]
    names, status = tasks.strings("prefix"), tasks.strings("status")
    size, executed = len(names.values), where(status, *EXECUTED)
    durations = tasks["stop_us"] - tasks["start_us"]
    nbytes = sums(names.codes, tasks["nbytes"], size)
    by_status = {word: counts(names.codes[where(status, word)], size) for word in ("error", "retried", "killed")}
    intervals = interval_sums(
        names.codes,
        size,
        tasks.lists("interval_action"),
        tasks.lists("interval_start_us"),
        tasks.lists("interval_stop_us"),
    )
    recomputed = sums(names.codes, np.where(recomputed_rows(tasks), np.maximum(durations, 0), 0), size)
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
    """Totals of Dask's fine metrics: by unit, the largest of each unit first."""
    table = recording["activities"]
    columns = [table.strings(name) for name in ("context", "prefix", "activity", "unit")]
    codes, labels = combine(columns)
    totals: Iterable[float] = np.bincount(codes, weights=table["value"], minlength=len(labels)) if len(codes) else []
    found = [Activity(c, p, a, u, float(total)) for (c, p, a, u), total in zip(labels, totals, strict=True)]
    return tuple(sorted(found, key=lambda a: (*_rank(a.unit), -a.total, a.context, a.prefix, a.activity)))


def _rank(unit: str) -> tuple[bool, bool, str]:
    """Time first, what has no unit last."""
    return unit != "seconds", unit == "", unit
