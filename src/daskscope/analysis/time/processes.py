"""Worker processes: the CPU time of threads that belong neither to Dask nor to a task, and the limits of waiting that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.columns.grouping import steps, sums, where
from daskscope.analysis.executions import cancelled_until_us
from daskscope.model.recording import Array, Recording, Strings, Table

#: Where the agent could not measure the CPU time of event loops and helpers, this much of a core counts as theirs.
OWN_CPU_SHARE = 0.25
#: Less than this share of a core is noise: the kernel counts the CPU time of a process in steps of 10 ms.
NOISE_SHARE = 0.02


@dataclass(frozen=True)
class Processes:
    """Worker processes; workers of a cluster without processes share one."""

    #: For each worker its process.
    of_worker: Array
    #: For each process the CPU time of threads that belong neither to Dask nor to a task, and the cores it may use.
    library_us: Array
    cores: Array
    #: For each process the longest that its threads can have waited for the GIL: while a thread has it, all others wait.
    max_gil_us: Array


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
    threads = {str(address): int(count) for address, count in recording["workers"].records("worker", "nthreads")}
    others = sums(of_worker, np.array([threads.get(one, 0) for one in workers], dtype=np.int64), size) - 1
    used = measured("cpu_us")
    # A thread that has the GIL uses a core or queues for one. Where CPU time was not measured, there is no limit.
    held = used + _queued_us(recording["profiles"], names, of_worker, size) + NOISE_SHARE * wall
    max_gil = np.where(used > 0, held * np.maximum(others, 0), np.inf)
    cores = np.ones(size)
    np.maximum.at(cores, of_worker[reader[known]], table["cores"][known])
    return Processes(of_worker, np.maximum(beside - allowed, 0.0), cores, max_gil)


def _queued_us(profiles: Table, names: dict[str, int], of_worker: Array, size: int) -> Array:
    """Return the sampled time in which threads of each process queued for a core."""
    owner = _codes(profiles.strings("worker"), names)
    rows = np.flatnonzero(owner >= 0)
    return sums(of_worker[owner[rows]], np.maximum(profiles["runqueue_us"][rows], 0), size)


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
    """Return the CPU time of the executions of each process. Failed ones count in full: Dask does not measure their CPU time."""
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
