"""CPU time of worker processes that neither their tasks nor Dask used: threads of libraries, and threads that tasks started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.executions import cancelled_until_us
from daskscope.analysis.grouping import steps, sums, where
from daskscope.model.recording import Recording
from daskscope.model.table import Array, Strings

#: Where the agent could not measure the CPU time of event loops and helpers, this much of a core counts as theirs.
OWN_CPU_SHARE = 0.25
#: Less than this share of a core is noise: the kernel counts the CPU time of a process in steps of 10 ms.
NOISE_SHARE = 0.02


@dataclass(frozen=True)
class Processes:
    """Worker processes; workers of a cluster without processes share one."""

    #: For each worker its process.
    of_worker: Array
    #: For each process the CPU time of threads that belong neither to Dask nor to a task.
    library_us: Array


def processes(recording: Recording, workers: Sequence[str], prefixes: Strings, cpu_share: Array) -> Processes:
    """Return the processes of workers; ``cpu_share`` is the share of CPU time in the compute time of each prefix.

    It is computed for each process: spare CPU time of one worker says nothing about what tasks of another waited for.
    """
    of_worker, size = _of_workers(recording, workers)
    table = recording["processes"]
    names = {address: code for code, address in enumerate(workers)}
    reader = _codes(table.strings("worker"), names)
    known = np.flatnonzero(reader >= 0)

    def measured(column: str) -> Array:
        """Return a total for each process. Workers that share a process all read the same values."""
        by_worker = sums(reader[known], table[column][known], len(workers)).astype(np.float64)
        totals = np.zeros(size)
        np.maximum.at(totals, of_worker, by_worker)
        return totals

    wall, own = measured("wall_us"), measured("own_cpu_us")
    allowed = np.where(own > 0, own + NOISE_SHARE * wall, OWN_CPU_SHARE * wall)
    beside = measured("cpu_us") - _of_tasks(recording, of_worker, names, size, prefixes, cpu_share)
    return Processes(of_worker, np.maximum(beside - allowed, 0.0))


def _of_workers(recording: Recording, workers: Sequence[str]) -> tuple[Array, int]:
    """Return the process of each worker, and the number of processes."""
    table = recording["workers"]
    places = {
        str(address): (str(host), int(pid)) if pid else (str(address), 0)
        for address, host, pid in table.records("worker", "host", "pid")
    }
    keys = [places.get(address, (address, 0)) for address in workers]
    codes = {key: code for code, key in enumerate(dict.fromkeys(keys))}
    return np.array([codes[key] for key in keys], dtype=np.int64), max(1, len(codes))


def _of_tasks(
    recording: Recording, of_worker: Array, names: dict[str, int], size: int, prefixes: Strings, cpu_share: Array
) -> Array:
    """Return the CPU time of the executions of each process. Dask does not measure that of failed ones: all of it may be CPU."""
    tasks = recording["tasks"]
    owner = _codes(tasks.strings("worker"), names)
    stops, ok = cancelled_until_us(recording), where(tasks.strings("status"), "ok")
    result = np.zeros(size)
    for some in steps(tasks.rows):
        rows = np.flatnonzero(owner[some] >= 0)
        lengths = np.maximum(stops[some] - tasks["start_us"][some], 0)
        share = np.where(ok[some], cpu_share[prefixes.codes[some]], 1.0)
        np.add.at(result, of_worker[owner[some][rows]], (lengths * share)[rows])
    return result


def _codes(texts: Strings, names: dict[str, int]) -> Array:
    result: Array = np.array([names.get(str(text), -1) for text in texts.values] or [-1], dtype=np.int32)[texts.codes]
    return result
