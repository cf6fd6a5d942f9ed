"""Export recordings to the formats of other tools: tables (Parquet, CSV, JSON), traces (Perfetto) and profiles (speedscope,
collapsed stacks).

In tables, times become timestamps in UTC. An unknown time (0) becomes null, as other tools expect.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.profiles import Profile, collapsed, profile, sampled_seconds, tree
from daskscope.analysis.summary import extent
from daskscope.errors import MissingExtra
from daskscope.model.recording import Array, Lists, Recording, Strings, Table
from daskscope.model.untrusted import encodable

#: Rows converted to Python objects at a time.
CHUNK = 50_000


def write_parquet(recording: Recording, directory: Path, tables: Iterable[str]) -> list[Path]:
    """Write each table as a Parquet file, which DuckDB, pandas and Dask can read."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "Writing Parquet") from None

    def write(table: Table, path: Path) -> None:
        columns = {name: _arrow(pyarrow, table, name) for name in table}
        pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="zstd", row_group_size=200_000)

    return _write_files(recording, directory, tables, ".parquet", write)


def write_csv(recording: Recording, directory: Path, tables: Iterable[str]) -> list[Path]:
    """Write each table as a CSV file; lists become JSON arrays."""

    def write(table: Table, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8", errors="replace") as file:
            writer = csv.writer(file)
            writer.writerow(table)
            for row in _rows(table):
                writer.writerow([json.dumps(cell) if isinstance(cell, list) else escape_formula(cell) for cell in row])

    return _write_files(recording, directory, tables, ".csv", write)


def write_json(recording: Recording, directory: Path, tables: Iterable[str]) -> list[Path]:
    """Write each table as a JSON Lines file, one object per row."""

    def write(table: Table, path: Path) -> None:
        names = list(table)
        with path.open("w", encoding="utf-8", errors="replace") as file:
            for row in _rows(table):
                file.write(json.dumps(dict(zip(names, row)), ensure_ascii=False, allow_nan=False) + "\n")

    return _write_files(recording, directory, tables, ".jsonl", write)


def _write_files(
    recording: Recording, directory: Path, tables: Iterable[str], suffix: str, write: Callable[[Table, Path], None]
) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in tables:
        path = directory / f"{name}{suffix}"
        write(recording[name], path)
        paths.append(path)
    return paths


def _arrow(pyarrow: Any, table: Table, name: str) -> Any:
    values, kind = table.columns[name], table.kind(name)
    if isinstance(values, Strings):
        return pyarrow.array(map(encodable, values.to_numpy().tolist()), type=pyarrow.string())
    if isinstance(values, Lists):
        if kind != "str[]":
            return pyarrow.array(values.to_numpy(), type=pyarrow.list_(pyarrow.int64()))
        texts = [list(map(encodable, row)) for row in values.to_numpy()]
        return pyarrow.array(texts, type=pyarrow.list_(pyarrow.string()))
    if kind == "time":
        return pyarrow.array(values, mask=values == 0).cast(pyarrow.timestamp("us", tz="UTC"))
    return pyarrow.array(values)


def _rows(table: Table) -> Iterable[list[Any]]:
    for first in range(0, table.rows, CHUNK):
        part = table.take(np.arange(first, min(first + CHUNK, table.rows)))
        columns = [[_plain(value, table.kind(name)) for value in part[name].tolist()] for name in part]
        yield from map(list, zip(*columns, strict=True))


def _plain(value: Any, kind: str) -> Any:
    if kind == "time":
        return str(np.datetime64(value, "us")) + "Z" if value else None
    return value if not isinstance(value, float) or math.isfinite(value) else None


def escape_formula(cell: Any) -> Any:
    """Prefix a quote to a text that a spreadsheet would run as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


#: Sampled measures with a counter track.
COUNTERS = ("memory", "managed", "spilled", "cpu_percent")
SCHEDULER = "scheduler"


def write_perfetto(recording: Recording, path: Path) -> Path:
    """Write executions and their other activities as slices by worker and thread, and memory and CPU as counters."""
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
    for *task, actions, starts, stops in recording["tasks"].records(*columns, *intervals):
        key, prefix, worker, thread, start, stop, nbytes, status = task
        if worker not in processes:
            processes[worker] = len(processes) + 1
            yield _name("process_name", names.get(worker) or worker, processes[worker])
        if (worker, thread) not in threads:
            threads[worker, thread] = number = len(threads) + 1
            yield _name("thread_name", f"thread {thread}", processes[worker], number)
        at = {"pid": processes[worker], "tid": threads[worker, thread]}
        yield _slice(prefix, "compute", start, stop, at, {"key": key, "nbytes": nbytes, "status": status})
        for action, begin, end in zip(actions, starts, stops):
            yield _slice(action, action, begin, end, at, {"key": key})
    yield from _counters(recording, processes)


def _counters(recording: Recording, processes: dict[str, int]) -> Iterator[dict[str, Any]]:
    for worker, time, *values in recording["samples"].records("worker", "time_us", *COUNTERS):
        if worker not in processes:
            processes[worker] = len(processes) + 1
            yield _name("process_name", worker or SCHEDULER, processes[worker])
        for name, value in zip(COUNTERS, values):
            if isfinite(value):
                yield {"ph": "C", "name": name, "pid": processes[worker], "ts": time, "args": {name: value}}


def _slice(name: str, category: str, start: int, stop: int, at: dict[str, int], args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "name": name, "cat": category, "ts": start, "dur": max(0, stop - start), **at, "args": args}


def _name(kind: str, name: str, process: int, thread: int = 0) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


SPEEDSCOPE_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write_speedscope(recording: Recording, path: Path) -> Path:
    """Write one profile per kind (compute, event loops), weighted by seconds if they are known."""
    merged = _profile(recording)
    profiles = [_sampled(merged, kind) for kind in merged.cube.keys["kind"]]
    frames = [{"name": name, "file": file, "line": max(1, line)} for file, name, line in merged.frames]
    # Without samples the file must still open.
    empty = {"type": "sampled", "name": "no samples", "unit": "none", "startValue": 0, "endValue": 0}
    document = {
        "$schema": SPEEDSCOPE_SCHEMA,
        "name": Path(recording.source).name,
        "exporter": "daskscope",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles or [{**empty, "samples": [], "weights": []}],
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def write_collapsed(recording: Recording, path: Path) -> Path:
    """Write a line per stack: frames from the outermost, and the number of compute samples."""
    merged = _profile(recording)
    counts, _ = tree(merged, kind="compute")
    path.write_text("".join(f"{line}\n" for line in collapsed(merged, counts)), encoding="utf-8", errors="replace")
    return path


def _profile(recording: Recording) -> Profile:
    first, last = extent(recording)
    return profile(recording, Bins.over(first, last + 1, max_count=1))


def _sampled(merged: Profile, kind: str) -> dict[str, Any]:
    seconds = sampled_seconds(merged) if kind == "compute" else None
    values = tree(merged, kind=kind)[0] if seconds is None else seconds
    ends = np.flatnonzero(values)
    weights = values[ends]
    return {
        "type": "sampled",
        "name": kind,
        "unit": "none" if seconds is None else "seconds",
        "startValue": 0,
        "endValue": float(weights.sum()),
        "samples": [_stack(merged, int(node)) for node in ends],
        "weights": weights.tolist(),
    }


def _stack(merged: Profile, node: int) -> list[int]:
    frames = []
    parents: Array = merged.parents
    while node >= 0:
        frames.append(int(merged.nodes[node]))
        node = int(parents[node])
    return frames[::-1]
