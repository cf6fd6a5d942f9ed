"""Workers: why each left and what it did until then, and which worker was connected when, with how many threads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskscope.analysis.columns.grouping import counts, renumber, steps, sums, where
from daskscope.analysis.columns.intervals import task_intervals
from daskscope.analysis.executions import EXECUTED, recomputed_pairs
from daskscope.model.recording import Array, Recording, Strings, Table

#: Verdicts of workers that left unexpectedly, and a suggestion for each.
LOST = {
    "memory kill": "Use smaller chunks, or workers with more memory or fewer threads.",
    "vanished": "Check the logs of its host. The worker was killed, it crashed, or the host went down.",
    "lost connection": "Look for tasks that hold the GIL for a long time, and for network problems.",
}
_DIGITS = re.compile(r"0*(\d+)")
#: Higher thread counts are invalid, and would overflow when multiplied by microseconds.
MAX_THREADS = 10_000

_COLUMNS = (
    "worker",
    "server_id",
    "name",
    "host",
    "nthreads",
    "memory_limit",
    "start_us",
    "end_us",
    "verdict",
    "evidence",
    "processing",
    "processing_count",
    "lost_count",
)


@dataclass(frozen=True)
class Worker:
    """One worker process from joining to leaving."""

    worker: str
    server_id: str
    name: str
    threads: int
    memory_limit: int
    start_us: int
    #: 0 if it was still connected.
    end_us: int
    life_us: int
    verdict: str
    evidence: str
    #: Runs of tasks, also those that were killed.
    tasks: int
    busy_us: int
    peak_memory: int
    processing: tuple[str, ...]
    processing_count: int
    lost_count: int
    host: str = ""
    #: When it was first measured; 0 if it was not.
    peak_us: int = 0
    #: Peak of the bytes spilled to disk.
    spilled: int = 0
    #: Compute time and number of results that were lost with it and recomputed.
    recomputed_us: int = 0
    recomputed: int = 0


@dataclass(frozen=True)
class Lifetimes:
    """Worker lifetimes inside a window; an address that was reused has several."""

    #: Distinct addresses.
    workers: list[str]
    #: For each lifetime its address, as a position in ``workers``.
    worker: Array
    threads: Array
    start_us: Array
    stop_us: Array
    #: Worker lifetime of each execution.
    of_tasks: Array

    def clip(self, starts: Array, stops: Array, lifetime: Array) -> tuple[Array, Array]:
        """Return intervals cut to the lifetime of each."""
        return np.maximum(starts, self.start_us[lifetime]), np.minimum(stops, self.stop_us[lifetime])


def workers(recording: Recording, end_us: int) -> tuple[Worker, ...]:
    """Return every worker by name, 2 before 10; one that is still connected counts until ``end_us``."""
    table, tasks, samples = recording["workers"], recording["tasks"], recording["samples"]
    owners = worker_rows(tasks.strings("worker"), tasks["stop_us"], table)
    # A killed run has no measured duration.
    task_counts = counts(owners[owners >= 0], table.rows)
    owners[~where(tasks.strings("status"), *EXECUTED)] = -1
    busy = _busy_us(tasks, owners, table.rows)
    again, lost_with = _lost_with(recording)
    recomputed = counts(lost_with, table.rows)
    recomputed_us = sums(lost_with, np.maximum(tasks["stop_us"] - tasks["start_us"], 0)[again], table.rows)
    sampled = worker_rows(samples.strings("worker"), samples["time_us"], table)
    memory, spilled = (_peaks(sampled, samples[name], table.rows) for name in ("memory", "spilled"))
    # Samples are seconds apart; the agent reads the kernel's high-water mark.
    processes = recording["processes"]
    read = worker_rows(processes.strings("worker"), processes["time_us"], table)
    memory = np.maximum(memory, _peaks(read, processes["peak_memory"], table.rows))
    peak_us = np.minimum(
        _first_times(sampled, samples["memory"], samples["time_us"], memory),
        _first_times(read, processes["peak_memory"], processes["time_us"], memory),
    )
    found = []
    for i, values in enumerate(table.records(*_COLUMNS)):
        row: dict[str, Any] = dict(zip(_COLUMNS, values, strict=True))
        threads, start, end = row.pop("nthreads"), row["start_us"], row["end_us"]
        life = max(0, (end or end_us) - start) if start else 0
        found.append(
            Worker(
                threads=threads,
                life_us=life,
                tasks=int(task_counts[i]),
                busy_us=int(busy[i]),
                peak_memory=int(memory[i]),
                peak_us=int(peak_us[i]) if memory[i] else 0,
                processing=tuple(row.pop("processing")),
                spilled=int(spilled[i]),
                recomputed_us=int(recomputed_us[i]),
                recomputed=int(recomputed[i]),
                **row,
            )
        )
    return tuple(sorted(found, key=lambda worker: (_natural(worker.name or worker.worker), worker.start_us)))


def _natural(name: str) -> list[str]:
    """Return a sort key by which worker-2 comes before worker-10: numbers compare by their length first."""
    parts = _DIGITS.split(name)
    return [part if i % 2 == 0 else f"{len(part):06}{part}" for i, part in enumerate(parts)]


def lifetimes(recording: Recording, start_us: int, stop_us: int) -> Lifetimes:
    """Return all worker lifetimes, cut to the window; a worker that has not left counts until its end.

    A worker known only from its executions counts from the start of the first to the end of the last, with as many threads
    as they ran on.
    """
    table, tasks = recording["workers"], recording["tasks"]
    of_tasks = worker_rows(tasks.strings("worker"), tasks["stop_us"], table)
    unknown = of_tasks < 0
    strays, addresses = renumber(tasks.strings("worker").codes[unknown], len(tasks.strings("worker").values))
    of_tasks[unknown] = strays + table.rows
    size = table.rows + len(addresses)
    texts = [*table["worker"].tolist(), *tasks.strings("worker").values[addresses].tolist()]
    names = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    end = np.where(table["end_us"] == 0, stop_us, table["end_us"])
    first, last = _active_times(tasks, of_tasks, size)
    threads = np.concatenate((table["nthreads"], np.zeros(len(addresses), dtype=np.int64)))
    if not (threads > 0).all():
        threads = np.where(threads > 0, threads, _threads_seen(tasks, of_tasks, size))
    starts = np.clip(np.concatenate((table["start_us"], first[table.rows :])), start_us, stop_us)
    stops = np.clip(np.concatenate((end, last[table.rows :])), start_us, stop_us)
    return Lifetimes(
        workers=list(names),
        worker=np.array([names[text] for text in texts], dtype=np.int32),
        threads=np.minimum(threads, MAX_THREADS),
        start_us=starts,
        stop_us=np.maximum(starts, stops),
        of_tasks=of_tasks,
    )


def worker_rows(addresses: Strings, times: Array, table: Table) -> Array:
    """Return for each address and time the row of ``workers``; -1 for an unknown worker.

    A worker that restarts may reuse an address; then the time decides.
    """
    by_address: dict[str, list[tuple[int, int]]] = {}
    for row, (address, start) in enumerate(zip(table["worker"], table["start_us"].tolist(), strict=True)):
        by_address.setdefault(address, []).append((start, row))
    first = [min(by_address[a])[1] if a in by_address else -1 for a in addresses.values]
    found: Array = np.array(first, dtype=np.int32)[addresses.codes]
    for code, address in enumerate(addresses.values):
        several = sorted(by_address.get(address, []))
        if len(several) > 1:
            mine = np.flatnonzero(addresses.codes == code)
            positions = np.searchsorted([start for start, _ in several], times[mine], side="right")
            found[mine] = np.array([row for _, row in several])[np.maximum(positions - 1, 0)]
    return found


def _busy_us(tasks: Table, owners: Array, size: int) -> Array:
    """Return for each worker the time of its executions; -1 is no owner."""
    busy = np.zeros(size, dtype=np.int64)
    for some in steps(tasks.rows):
        known = owners[some] >= 0
        busy += sums(owners[some][known], (tasks["stop_us"][some] - tasks["start_us"][some])[known], size)
    return busy


def _lost_with(recording: Recording) -> tuple[Array, Array]:
    """Return the executions whose result was lost with a worker, and the row of that worker.

    Dask moves results: it fetches them to where they are needed, and drops other copies. So the worker that had a result last is
    not always the one that computed it. If that one was still there, it is the last worker that left before the next execution and
    took results with it that were nowhere else.
    """
    table, tasks = recording["workers"], recording["tasks"]
    again, later = recomputed_pairs(recording)
    made_us, needed_us = tasks["stop_us"][again], tasks["start_us"][later]
    is_restarted = where(table.strings("verdict"), "restarted")
    has_left = np.flatnonzero((table["end_us"] > 0) & (table["lost_count"] > 0) & ~is_restarted)
    has_left = has_left[np.argsort(table["end_us"][has_left], kind="stable")]
    ends = table["end_us"][has_left]
    last = np.searchsorted(ends, needed_us, side="right") - 1
    found = np.where(last >= 0, has_left[last] if len(has_left) else -1, -1)
    found[(last < 0) | (table["end_us"][found] < made_us if table.rows else True)] = -1
    own = worker_rows(tasks.strings("worker").take(again), made_us, table)
    ended = np.where(own >= 0, table["end_us"][own] if table.rows else 0, 0)
    found = np.where((ended >= made_us) & (ended <= needed_us) & (ended > 0), own, found)
    return again[found >= 0], found[found >= 0]


def _peaks(groups: Array, values: Array, size: int) -> Array:
    peaks = np.zeros(size, dtype=np.int64)
    known = groups >= 0
    np.maximum.at(peaks, groups[known], values[known])
    return peaks


def _first_times(groups: Array, values: Array, times: Array, wanted: Array) -> Array:
    """Return the first time at which each group has its wanted value; the largest time if it never has."""
    found = np.full(len(wanted), np.iinfo(np.int64).max)
    rows = np.flatnonzero(groups >= 0)
    rows = rows[values[rows] == wanted[groups[rows]]]
    np.minimum.at(found, groups[rows], times[rows])
    return found


def _active_times(tasks: Table, of_tasks: Array, size: int) -> tuple[Array, Array]:
    """Return the first start and the last stop of executions in each lifetime."""
    owners, _, starts, stops = task_intervals(tasks)
    first = np.full(size, np.iinfo(np.int64).max)
    last = np.zeros(size, dtype=np.int64)
    for groups, begin, end in ((of_tasks, tasks["start_us"], tasks["stop_us"]), (of_tasks[owners], starts, stops)):
        for some in steps(len(groups)):
            known = begin[some] > 0
            np.minimum.at(first, groups[some][known], begin[some][known])
            np.maximum.at(last, groups[some], end[some])
    return first, last


def _threads_seen(tasks: Table, of_tasks: Array, size: int) -> Array:
    """Return how many threads the executions of each lifetime ran on; one if threads were not recorded."""
    distinct, codes = np.unique(tasks["thread"], return_inverse=True)
    pairs = np.unique(of_tasks.astype(np.int64) * max(1, len(distinct)) + codes)
    known = pairs[distinct[pairs % max(1, len(distinct))] != 0]
    ran = counts(of_tasks, size) > 0
    return np.where(ran, np.maximum(1, counts(known // max(1, len(distinct)), size)), 0)
