"""What became of each worker, and what it did until then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.grouping import counts, sums, where
from daskscope.analysis.prefixes import EXECUTED
from daskscope.model.recording import Recording
from daskscope.model.table import Array, Strings, Table


@dataclass(frozen=True)
class Worker:
    """One worker process from joining to leaving."""

    worker: str
    server_id: str
    name: str
    threads: int
    memory_limit: int
    start_us: int
    #: 0 while it was connected.
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


def workers(recording: Recording, end_us: int) -> tuple[Worker, ...]:
    """Every worker in the order of joining; one that is still connected lives until ``end_us``."""
    table, tasks, samples = recording["workers"], recording["tasks"], recording["samples"]
    executed = where(tasks.strings("status"), *EXECUTED)
    ran = tasks.take(executed)
    lives = _lives(ran.strings("worker"), ran["stop_us"], table)
    known, durations = lives >= 0, ran["stop_us"] - ran["start_us"]
    task_counts = counts(lives[known], table.rows)
    busy = sums(lives[known], durations[known], table.rows)
    memory = _peaks(_lives(samples.strings("worker"), samples["time_us"], table), samples["memory"], table.rows)
    rows = zip(*(table[name].tolist() for name in _COLUMNS), strict=True)
    found = []
    for i, (address, server_id, name, threads, limit, start, end, verdict, evidence, keys, count, lost) in enumerate(
        rows
    ):
        found.append(
            Worker(
                worker=address,
                server_id=server_id,
                name=name,
                threads=threads,
                memory_limit=limit,
                start_us=start,
                end_us=end,
                life_us=max(0, (end or end_us) - start) if start else 0,
                verdict=verdict,
                evidence=evidence,
                tasks=int(task_counts[i]),
                busy_us=int(busy[i]),
                peak_memory=int(memory[i]),
                processing=tuple(keys),
                processing_count=count,
                lost_count=lost,
            )
        )
    return tuple(sorted(found, key=lambda worker: (worker.start_us, worker.worker)))


_COLUMNS = (
    "worker",
    "server_id",
    "name",
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


def _lives(addresses: Strings, times: Array, table: Table) -> Array:
    """For each row the worker it belongs to, as a row of ``workers``; -1 where there is none.

    An address is used again when a worker restarts; then the time decides.
    """
    by_address: dict[str, list[tuple[int, int]]] = {}
    for row, (address, start) in enumerate(zip(table["worker"], table["start_us"].tolist(), strict=True)):
        by_address.setdefault(address, []).append((start, row))
    first = [min(by_address[a])[1] if a in by_address else -1 for a in addresses.values]
    lives = np.array(first, dtype=np.int64)[addresses.codes]
    for code, address in enumerate(addresses.values):
        several = sorted(by_address.get(address, []))
        if len(several) > 1:
            mine = np.flatnonzero(addresses.codes == code)
            turns = np.searchsorted([start for start, _ in several], times[mine], side="right")
            lives[mine] = np.array([row for _, row in several])[np.maximum(turns - 1, 0)]
    return lives


def _peaks(groups: Array, values: Array, size: int) -> Array:
    peaks = np.zeros(size, dtype=np.int64)
    known = groups >= 0
    np.maximum.at(peaks, groups[known], values[known])
    return peaks
