"""The task stream as a trace that Perfetto and Chrome's trace viewer open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from daskscope.model.recording import Recording

#: Samples become counters; these are worth a track.
COUNTERS = ("memory", "managed", "spilled", "cpu_percent")
SCHEDULER = "scheduler"


def write_perfetto(recording: Recording, path: Path) -> Path:
    """Every execution and every interval besides as a slice on its worker's thread, memory and CPU as counters."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit":"ms","traceEvents":[\n')
        for number, event in enumerate(_events(recording)):
            file.write(("," if number else "") + json.dumps(event, allow_nan=False) + "\n")
        file.write("]}\n")
    return path


def _events(recording: Recording) -> Iterator[dict[str, Any]]:
    processes: dict[str, int] = {}
    threads: dict[tuple[str, int], int] = {}
    names = dict(zip(recording["workers"]["worker"].tolist(), recording["workers"]["name"].tolist(), strict=True))
    columns = ("key", "prefix", "worker", "thread", "start_us", "stop_us", "nbytes", "status")
    intervals = ("interval_action", "interval_start_us", "interval_stop_us")
    table = recording["tasks"]
    for *task, actions, starts, stops in zip(*(table[name].tolist() for name in (*columns, *intervals)), strict=True):
        key, prefix, worker, thread, start, stop, nbytes, status = task
        if worker not in processes:
            processes[worker] = len(processes) + 1
            yield _named("process_name", names.get(worker) or worker, processes[worker])
        if (worker, thread) not in threads:
            threads[worker, thread] = number = len(threads) + 1
            yield _named("thread_name", f"thread {thread}", processes[worker], number)
        at = {"pid": processes[worker], "tid": threads[worker, thread]}
        yield _slice(prefix, "compute", start, stop, at, {"key": key, "nbytes": nbytes, "status": status})
        for action, begin, end in zip(actions, starts, stops):
            yield _slice(action, action, begin, end, at, {"key": key})
    yield from _counters(recording, processes)


def _counters(recording: Recording, processes: dict[str, int]) -> Iterator[dict[str, Any]]:
    samples = recording["samples"]
    for worker, time, *values in zip(*(samples[n].tolist() for n in ("worker", "time_us", *COUNTERS)), strict=True):
        if worker not in processes:
            processes[worker] = len(processes) + 1
            yield _named("process_name", worker or SCHEDULER, processes[worker])
        for name, value in zip(COUNTERS, values):
            if isfinite(value):
                yield {"ph": "C", "name": name, "pid": processes[worker], "ts": time, "args": {name: value}}


def _slice(name: str, category: str, start: int, stop: int, at: dict[str, int], args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "name": name, "cat": category, "ts": start, "dur": max(0, stop - start), **at, "args": args}


def _named(kind: str, name: str, process: int, thread: int = 0) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
