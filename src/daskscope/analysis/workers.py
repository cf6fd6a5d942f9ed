"""What became of each worker, and what it did until then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.grouping import counts, sums, where
from daskscope.analysis.lives import life_of
from daskscope.analysis.prefixes import EXECUTED
from daskscope.analysis.recomputed import recomputed_rows
from daskscope.model.recording import Recording
from daskscope.model.table import Array

#: Verdicts of workers that did not leave by themselves, and what can be done about it.
LOST = {
    "memory kill": "Use smaller chunks, or workers with more memory or fewer threads.",
    "vanished": "Look into the logs of its host: it was killed from outside, it crashed, or the host is gone.",
    "lost connection": "Look for a task that holds the interpreter lock for long, and for trouble in the network.",
}


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
    host: str = ""
    #: The part of the time of its threads in which they computed.
    utilisation: float = 0.0
    #: The most it had spilled to disk.
    spilled: int = 0
    #: Executions whose results were lost with it, so that they ran again.
    recomputed_us: int = 0


def workers(recording: Recording, end_us: int) -> tuple[Worker, ...]:
    """Every worker in the order of joining; one that is still connected lives until ``end_us``."""
    table, tasks, samples = recording["workers"], recording["tasks"], recording["samples"]
    executed = np.flatnonzero(where(tasks.strings("status"), *EXECUTED))
    starts, stops = tasks["start_us"][executed], tasks["stop_us"][executed]
    lives = life_of(tasks.strings("worker").take(executed), stops, table)
    known, durations = lives >= 0, stops - starts
    task_counts = counts(lives[known], table.rows)
    busy = sums(lives[known], durations[known], table.rows)
    sampled = life_of(samples.strings("worker"), samples["time_us"], table)
    memory, spilled = (_peaks(sampled, samples[name], table.rows) for name in ("memory", "spilled"))
    again = known & recomputed_rows(tasks)[executed]
    recomputed = sums(lives[again], np.maximum(durations[again], 0), table.rows)
    rows = zip(*(table[name].tolist() for name in _COLUMNS), strict=True)
    found = []
    for i, (
        address,
        server_id,
        name,
        host,
        threads,
        limit,
        start,
        end,
        verdict,
        evidence,
        keys,
        count,
        lost,
    ) in enumerate(rows):
        life = max(0, (end or end_us) - start) if start else 0
        found.append(
            Worker(
                worker=address,
                server_id=server_id,
                name=name,
                threads=threads,
                memory_limit=limit,
                start_us=start,
                end_us=end,
                life_us=life,
                verdict=verdict,
                evidence=evidence,
                tasks=int(task_counts[i]),
                busy_us=int(busy[i]),
                peak_memory=int(memory[i]),
                processing=tuple(keys),
                processing_count=count,
                lost_count=lost,
                host=host,
                utilisation=min(1.0, max(0, int(busy[i])) / (threads * life)) if threads > 0 and life else 0.0,
                spilled=int(spilled[i]),
                recomputed_us=int(recomputed[i]) if end else 0,
            )
        )
    return tuple(sorted(found, key=lambda worker: (worker.start_us, worker.worker)))


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


def _peaks(groups: Array, values: Array, size: int) -> Array:
    peaks = np.zeros(size, dtype=np.int64)
    known = groups >= 0
    np.maximum.at(peaks, groups[known], values[known])
    return peaks
