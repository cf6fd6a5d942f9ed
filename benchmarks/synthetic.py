"""Generate recordings of any size that resemble a mixed array and dataframe run: 15 prefixes, one transfer per three tasks."""

from __future__ import annotations

import numpy as np

from daskscope.model.recording import (
    Array,
    Completeness,
    Lists,
    Recording,
    Strings,
    Table,
    Values,
    empty_values,
    object_array,
)
from daskscope.model.tables import TABLES

START_US = 1_700_000_000_000_000
PREFIXES = 15
TRANSFERS = 0.35


def lanes_for(tasks: int) -> int:
    """Return the threads of a cluster for a number of tasks: 400 for 100,000, 800 for a million, 2,000 for five million."""
    return 400 if tasks <= 100_000 else 800 if tasks <= 1_000_000 else 2_000


def recording(tasks: int, seed: int = 0) -> Recording:
    """Return a recording of ``tasks`` executions on workers with two threads."""
    rng = np.random.default_rng(seed)
    lanes = lanes_for(tasks)
    lane = rng.integers(0, lanes, tasks)
    order = np.argsort(lane, kind="stable")
    lane = lane[order]
    prefix = np.minimum(rng.geometric(0.2, tasks) - 1, PREFIXES - 1)
    durations = (rng.lognormal(10, 1, tasks) * (1 + prefix)).astype(np.int64)
    gaps = rng.exponential(3_000, tasks).astype(np.int64) + 50
    moved = rng.random(tasks) < TRANSFERS
    transfer = np.where(moved, rng.lognormal(9, 0.8, tasks).astype(np.int64), 0)
    ends = np.cumsum(gaps + transfer + durations)
    first = np.concatenate([[0], np.flatnonzero(np.diff(lane)) + 1])
    # Each lane starts at the beginning of the run.
    ends -= np.repeat(np.concatenate([[0], ends[first[1:] - 1]]), np.diff(np.append(first, tasks)))
    stop = START_US + ends
    start = stop - durations
    columns: dict[str, Values] = {
        **_empty("tasks", tasks),
        "id": np.arange(tasks),
        "key": Strings.of([f"('prefix-{p}-0a1b2c3d', {i // 100}, {i % 100})" for i, p in enumerate(prefix.tolist())]),
        "group": _coded(prefix, [f"prefix-{p}-0a1b2c3d" for p in range(PREFIXES)]),
        "prefix": _coded(prefix, [f"prefix-{p}" for p in range(PREFIXES)]),
        "worker": _coded(lane // 2, [f"tcp://10.0.{w // 200}.{w % 200}:40000" for w in range(lanes // 2)]),
        "thread": 140_000_000_000 + lane % 2,
        "assigned_us": start - 128 * rng.integers(0, 200, tasks),
        "start_us": start,
        "stop_us": stop,
        "nbytes": (rng.lognormal(12, 2, tasks)).astype(np.int64),
        "type": _coded(prefix % 3, ["numpy.ndarray", "pandas.core.frame.DataFrame", "float"]),
        "status": _coded(np.zeros(tasks, dtype=np.int64), ["ok"]),
        **_transfers(moved, start, transfer),
    }
    by_time = np.argsort(stop, kind="stable")
    table = Table(TABLES["tasks"], columns).take(by_time)
    tables = {"tasks": table, "workers": _workers(lanes // 2, int(stop.max())), "clusters": _cluster(int(stop.max()))}
    return Recording("synthetic", tables, {name: Completeness(table.rows) for name, table in tables.items()})


def _transfers(moved: Array, start: Array, transfer: Array) -> dict[str, Values]:
    offsets = np.concatenate([[0], np.cumsum(moved)]).astype(np.int64)
    count = int(offsets[-1])
    constant = np.zeros(count, dtype=np.int64)
    return {
        "interval_action": Lists(offsets, _coded(constant, ["transfer"])),
        "interval_start_us": Lists(offsets, (start - transfer)[moved]),
        "interval_stop_us": Lists(offsets, (start - 20)[moved]),
        "interval_source": Lists(offsets, _coded(constant, [""])),
    }


def _workers(count: int, stop: int) -> Table:
    numbers = np.arange(count)
    addresses = [f"tcp://10.0.{w // 200}.{w % 200}:40000" for w in range(count)]
    columns: dict[str, Values] = {
        **_empty("workers", count),
        "worker": _coded(numbers, addresses),
        "server_id": _coded(numbers, addresses),
        "name": _coded(numbers, [f"w-{w}" for w in range(count)]),
        "seen_us": np.full(count, stop),
        "nthreads": np.full(count, 2),
        "start_us": np.full(count, START_US),
    }
    return Table(TABLES["workers"], columns)


def _cluster(stop: int) -> Table:
    columns = {**_empty("clusters", 1), "cluster": Strings.of(["synthetic"]), "seen_us": np.array([stop])}
    return Table(TABLES["clusters"], {**columns, "recording_us": np.array([START_US]), "end_us": np.array([stop])})


def _empty(table: str, rows: int) -> dict[str, Values]:
    return {column.name: empty_values(column.kind, rows) for column in TABLES[table].columns}


def _coded(codes: Array, values: list[str]) -> Strings:
    return Strings(codes.astype(np.int32), object_array(values))
