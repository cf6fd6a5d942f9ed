"""Workers: why each left and what it did until then, and which worker was connected when, with how many threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskscope.analysis.executions import EXECUTED, recomputed_rows
from daskscope.analysis.grouping import counts, renumber, sums, where
from daskscope.analysis.intervals import task_intervals
from daskscope.model.recording import Recording
from daskscope.model.table import Array, Strings, Table

#: Verdicts of workers that left unexpectedly, and a suggestion for each.
LOST = {
    "memory kill": "Use smaller chunks, or workers with more memory or fewer threads.",
    "vanished": "Check the logs of its host. The worker was killed, it crashed, or the host went down.",
    "lost connection": "Look for tasks that hold the GIL for a long time, and for network problems.",
}
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
    tasks: int
    busy_us: int
    peak_memory: int
    processing: tuple[str, ...]
    processing_count: int
    lost_count: int
    host: str = ""
    #: Share of its thread time spent computing.
    utilisation: float = 0.0
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
    """Return every worker in the order of joining; one that is still connected counts until ``end_us``."""
    table, tasks, samples = recording["workers"], recording["tasks"], recording["samples"]
    executed = np.flatnonzero(where(tasks.strings("status"), *EXECUTED))
    starts, stops = tasks["start_us"][executed], tasks["stop_us"][executed]
    owners = worker_rows(tasks.strings("worker").take(executed), stops, table)
    known, durations = owners >= 0, stops - starts
    task_counts = counts(owners[known], table.rows)
    busy = sums(owners[known], durations[known], table.rows)
    sampled = worker_rows(samples.strings("worker"), samples["time_us"], table)
    memory, spilled = (_peaks(sampled, samples[name], table.rows) for name in ("memory", "spilled"))
    again = known & recomputed_rows(recording)[executed]
    recomputed_us = sums(owners[again], np.maximum(durations[again], 0), table.rows)
    recomputed = counts(owners[again], table.rows)
    # Samples are seconds apart; the agent reads the kernel's high-water mark.
    processes = recording["processes"]
    read = worker_rows(processes.strings("worker"), processes["time_us"], table)
    memory = np.maximum(memory, _peaks(read, processes["peak_memory"], table.rows))
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
                processing=tuple(row.pop("processing")),
                utilisation=min(1.0, max(0, int(busy[i])) / (threads * life)) if threads > 0 and life else 0.0,
                spilled=int(spilled[i]),
                recomputed_us=int(recomputed_us[i]) if end else 0,
                recomputed=int(recomputed[i]) if end else 0,
                **row,
            )
        )
    return tuple(sorted(found, key=lambda worker: (worker.start_us, worker.worker)))


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
    threads = np.where(threads > 0, threads, _threads_seen(tasks, of_tasks, size))
    starts = np.clip(np.concatenate((table["start_us"], first[table.rows :])), start_us, stop_us)
    stops = np.clip(np.concatenate((end, last[table.rows :])), start_us, stop_us)
    return Lifetimes(
        workers=list(names),
        worker=np.array([names[text] for text in texts], dtype=np.int64),
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
    found: Array = np.array(first, dtype=np.int64)[addresses.codes]
    for code, address in enumerate(addresses.values):
        several = sorted(by_address.get(address, []))
        if len(several) > 1:
            mine = np.flatnonzero(addresses.codes == code)
            positions = np.searchsorted([start for start, _ in several], times[mine], side="right")
            found[mine] = np.array([row for _, row in several])[np.maximum(positions - 1, 0)]
    return found


def _peaks(groups: Array, values: Array, size: int) -> Array:
    peaks = np.zeros(size, dtype=np.int64)
    known = groups >= 0
    np.maximum.at(peaks, groups[known], values[known])
    return peaks


def _active_times(tasks: Table, of_tasks: Array, size: int) -> tuple[Array, Array]:
    """Return the first start and the last stop of executions in each lifetime."""
    owners, _, starts, stops = task_intervals(tasks)
    groups = np.concatenate((of_tasks, of_tasks[owners]))
    begin, end = np.concatenate((tasks["start_us"], starts)), np.concatenate((tasks["stop_us"], stops))
    first = np.full(size, np.iinfo(np.int64).max)
    last = np.zeros(size, dtype=np.int64)
    known = begin > 0
    np.minimum.at(first, groups[known], begin[known])
    np.maximum.at(last, groups, end)
    return first, last


def _threads_seen(tasks: Table, of_tasks: Array, size: int) -> Array:
    """Return how many threads the executions of each lifetime ran on; one if threads were not recorded."""
    distinct, codes = np.unique(tasks["thread"], return_inverse=True)
    pairs = np.unique(of_tasks * max(1, len(distinct)) + codes)
    known = pairs[distinct[pairs % max(1, len(distinct))] != 0]
    ran = counts(of_tasks, size) > 0
    return np.where(ran, np.maximum(1, counts(known // max(1, len(distinct)), size)), 0)
