"""Increments: what some new rows add to the pictures of a page that follows a live run.

An increment stands for itself. Its names are numbered within it, so that any server can make the next one, and no server has to
remember what a page knows. The page adds increments up, and forgets what leaves its window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.columns.grouping import where
from daskscope.analysis.columns.intervals import spread, task_intervals
from daskscope.analysis.profiles import owner, profile
from daskscope.analysis.resources import SCHEDULER
from daskscope.analysis.summary import DISK
from daskscope.model.recording import Array, Recording, Strings, Table
from daskscope.model.untrusted import MAX_NAMES, OTHER, clean, clean_name, clean_text

SECOND = 1_000_000
#: Bars and sums by second cover this time at most.
WINDOW_S = 600
#: Rows up to this long in the future are accepted: the clock of the server may be behind.
AHEAD_S = 60
MAX_BARS = 50_000
#: Samples in an increment. If there are more, each worker has one per step of several seconds.
MAX_SAMPLES = 20_000
MAX_ERRORS = 50
MAX_MESSAGE = 500
#: Stacks in an increment; the most frequent ones are kept.
MAX_NODES = 20_000
#: What a bar shows, and what thread time is summed up by. A failed execution is ``failed``.
CATEGORIES = ("compute", "transfer", "disk", "serialize", "failed")
COMPUTE, TRANSFER, DISK_TIME, SERIALIZE, FAILED = range(len(CATEGORIES))
#: Tables that increments are made from.
TABLES = ("workers", "tasks", "samples", "profiles", "exceptions")

Columns = Mapping[str, Array]

#: The columns of each part, with their types.
PARTS: dict[str, dict[str, str]] = {
    # Microseconds since the origin, in order of the start.
    "bars": {"start": "<f8", "length": "<f8", "lane": "<u2", "prefix": "<u2", "category": "u1"},
    # Thread time by second, prefix and category. An execution counts in the second in which it ends.
    "busy": {"second": "<u4", "prefix": "<u2", "category": "u1", "us": "<f8", "count": "<u4"},
    "samples": {
        "second": "<u4",
        "worker": "<u2",
        "memory": "<f8",
        "managed": "<f8",
        "spilled": "<f8",
        "paused": "u1",
    },
    # Samples of stacks that end at a node.
    "stacks": {"second": "<u4", "node": "<u4", "count": "<u4"},
    # A node is a frame called from its parent (its number plus one; 0 for roots).
    "nodes": {"parent": "<u4", "frame": "<u4"},
}


@dataclass(frozen=True)
class Increment:
    """What some rows add. Seconds and bars count from ``origin_us``."""

    origin_us: int
    names: Mapping[str, Sequence[Any]]
    #: Rows of workers that joined, changed or left.
    workers: Sequence[Mapping[str, Any]]
    errors: Sequence[Mapping[str, Any]]
    parts: Mapping[str, Columns]
    #: The key of each bar; empty for activities besides computing.
    keys: Sequence[str]
    #: Executions without a bar, because there were too many.
    left_out: int


def make_increment(
    recording: Recording, origin_us: int, first_us: int, now_us: int, computation: str = ""
) -> Increment:
    """Return the sums that the rows of a recording add to the time from ``first_us`` until now on the scheduler's clock.

    Rows of other times are left out. If ``computation`` is given, only its tasks count.
    """
    origin_us = origin_us // SECOND * SECOND
    first_us = max(origin_us, min(first_us, now_us) // SECOND * SECOND, now_us - WINDOW_S * SECOND)
    bins = Bins(first_us, SECOND, max(1, (now_us - first_us) // SECOND + AHEAD_S))
    tasks = _within(recording["tasks"], bins)
    if computation:
        tasks = tasks.take(where(tasks.strings("computation"), computation))
    offset = (first_us - origin_us) // SECOND
    prefixes, prefix = _by_first_start(*named(tasks.strings("prefix")), tasks["start_us"])
    lanes, bars, keys, left_out = _bars(tasks, prefix, bins)
    bars["start"] = bars["start"] + (first_us - origin_us)
    workers, samples = _samples(_within(recording["samples"], bins), bins)
    frames, nodes, stacks = _stacks(recording, bins)
    parts: dict[str, Columns] = {
        "bars": bars,
        "busy": _busy(tasks, prefix, bins),
        "samples": samples,
        "stacks": stacks,
        "nodes": nodes,
    }
    for name, columns in parts.items():
        if "second" in columns:
            parts[name] = {**columns, "second": columns["second"] + offset}
    return Increment(
        origin_us,
        {"prefixes": prefixes, "lanes": lanes, "workers": workers, "frames": frames},
        _workers(recording["workers"]),
        _errors(_within(recording["exceptions"], bins)),
        {name: typed(name, columns) for name, columns in parts.items()},
        keys,
        left_out,
    )


def _by_first_start(names: list[str], codes: Array, starts: Array) -> tuple[list[str], Array]:
    """Return names in the order in which they first occur, and the number of each row's name. Colours follow it."""
    first = np.full(len(names), np.iinfo(np.int64).max)
    np.minimum.at(first, codes, starts)
    order = sorted(range(len(names)), key=lambda number: (first[number], names[number]))
    return [names[number] for number in order], np.argsort(np.asarray(order, dtype=np.int64))[codes]


def _within(table: Table, bins: Bins) -> Table:
    times = table[table.definition.time]
    kept = (times >= bins.start_us) & (times < bins.stop_us)
    return table if kept.all() else table.take(kept)


def named(column: Strings) -> tuple[list[str], Array]:
    """Return the names that occur in a column, and the number of each row's name. Names beyond a limit become one."""
    used, codes = np.unique(column.codes, return_inverse=True)
    names = [clean_name(str(column.values[code])) for code in used[: MAX_NAMES - 1].tolist()]
    if len(used) >= MAX_NAMES:
        names.append(OTHER)
    return names, np.minimum(codes.reshape(-1), max(0, len(names) - 1))


def _bars(tasks: Table, prefix: Array, bins: Bins) -> tuple[list[tuple[str, int]], dict[str, Array], list[str], int]:
    """Return the threads, the bars of the latest executions and their other activities, their keys, and how many are left out."""
    left_out = max(0, tasks.rows - MAX_BARS)
    if left_out:
        latest = np.sort(np.argpartition(tasks["stop_us"], left_out)[left_out:])
        tasks, prefix = tasks.take(latest), prefix[latest]
    owners, actions, starts, stops = task_intervals(tasks)
    rows = np.concatenate([np.arange(tasks.rows), owners])
    start = bins.clip(np.concatenate([tasks["start_us"], starts]))
    stop = bins.clip(np.concatenate([tasks["stop_us"], stops]))
    order = np.argsort(start, kind="stable")
    lanes, lane = _lanes(tasks)
    in_order = rows[order]
    columns = {
        "start": start[order],
        "length": np.maximum(stop - start, 0)[order],
        "lane": lane[in_order],
        "prefix": prefix[in_order],
        "category": np.concatenate([_outcomes(tasks), _categories(actions)])[order],
    }
    texts = tasks.strings("key").to_numpy()
    keys = [
        clean_name(str(texts[row])).replace("\n", " ") if is_execution else ""
        for row, is_execution in zip(in_order.tolist(), (order < tasks.rows).tolist(), strict=True)
    ]
    return lanes, columns, keys, left_out


def _lanes(tasks: Table) -> tuple[list[tuple[str, int]], Array]:
    """Return the threads of workers, and the number of each execution's thread."""
    workers = tasks.strings("worker")
    pairs = np.stack([workers.codes.astype(np.int64), tasks["thread"]], axis=1)
    distinct, numbers = np.unique(pairs, axis=0, return_inverse=True)
    lanes = [(clean_name(str(workers.values[worker])), clean(thread)) for worker, thread in distinct.tolist()]
    return lanes, numbers.reshape(-1)


def _outcomes(tasks: Table) -> Array:
    result: Array = np.where(where(tasks.strings("status"), "ok"), COMPUTE, FAILED)
    return result


def _categories(actions: Strings) -> Array:
    known = {"transfer": TRANSFER, **dict.fromkeys(DISK, DISK_TIME)}
    codes = np.array([known.get(str(name), SERIALIZE) for name in actions.values], dtype=np.int64)
    result: Array = codes[actions.codes] if len(codes) else np.zeros(len(actions), dtype=np.int64)
    return result


def _busy(tasks: Table, prefix: Array, bins: Bins) -> Columns:
    owners, actions, starts, stops = task_intervals(tasks)
    kinds, outcome = len(CATEGORIES), _outcomes(tasks)
    groups = np.concatenate([prefix * kinds + outcome, prefix[owners] * kinds + _categories(actions)])
    starts, stops = np.concatenate([tasks["start_us"], starts]), np.concatenate([tasks["stop_us"], stops])
    found = spread(starts, stops, bins, groups)
    columns = {
        "second": np.concatenate([found.bin, bins.of(tasks["stop_us"])]),
        "prefix": np.concatenate([found.group // kinds, prefix]),
        "category": np.concatenate([found.group % kinds, outcome]),
        "us": np.concatenate([found.us, np.zeros(tasks.rows, dtype=np.int64)]),
        "count": np.concatenate([np.zeros(len(found.us), dtype=np.int64), np.ones(tasks.rows, dtype=np.int64)]),
    }
    return summed(columns, ("second", "prefix", "category"))


def _samples(samples: Table, bins: Bins) -> tuple[list[str], Columns]:
    """Return the workers, and their last sample in each second, or in each step if there are many."""
    samples = samples.take(~where(samples.strings("worker"), SCHEDULER))
    if not samples.rows:
        return [], empty("samples")
    workers, worker = named(samples.strings("worker"))
    step = max(1, -(-samples.rows // MAX_SAMPLES))
    second = bins.of(samples["time_us"])
    order = np.lexsort((samples["time_us"], second // step, worker))
    place = np.stack([worker, second // step], axis=1)[order]
    last = order[np.append((np.diff(place, axis=0) != 0).any(axis=1), True)] if len(order) else order
    last = last[np.argsort(second[last], kind="stable")]
    names = ("memory", "managed", "spilled")
    return workers, {
        "second": second[last],
        "worker": worker[last],
        "paused": where(samples.strings("status"), "paused")[last],
        **{name: np.clip(samples[name][last], 0, 2**53) for name in names},
    }


def _stacks(recording: Recording, bins: Bins) -> tuple[list[tuple[str, str, int, str]], Columns, Columns]:
    """Return frames, nodes and samples of the stacks of tasks."""
    table = _within(recording["profiles"], bins)
    rows = np.flatnonzero(where(table.strings("kind"), "compute"))
    if len(rows) > MAX_NODES:
        rows = np.sort(rows[np.argsort(-table["count"][rows], kind="stable")[:MAX_NODES]])
    if not len(rows):
        return [], empty("nodes"), empty("stacks")
    found = profile(Recording(recording.source, {"profiles": table.take(rows)}), bins)
    used, frame = np.unique(found.nodes, return_inverse=True)
    frames = [(*found.frames[code], owner(found.frames[code][0])) for code in used.tolist()]
    shown = [
        (clean_text(file[-300:], 300), clean_name(function), line, whose) for file, function, line, whose in frames
    ]
    cube = found.cube
    cells = {"second": cube.bin, "node": cube.codes["stack"], "count": cube.measures["count"]}
    return shown, {"parent": found.parents + 1, "frame": frame.reshape(-1)}, summed(cells, ("second", "node"))


def _workers(table: Table) -> list[dict[str, Any]]:
    names = ("worker", "name", "nthreads", "memory_limit", "start_us", "end_us", "verdict")
    return [
        {
            "worker": clean_name(worker),
            "name": clean_name(name),
            "threads": clean(threads),
            "memory_limit": clean(limit),
            "start_us": clean(start_us),
            "stop_us": clean(end_us),
            "verdict": clean_name(verdict),
        }
        for worker, name, threads, limit, start_us, end_us, verdict in table.records(*names)
    ]


def _errors(table: Table) -> list[dict[str, Any]]:
    """Return the error groups with their number of failures, the latest last. Failures of dependents are left out."""
    names = ("fingerprint", "cause_type", "cause_message", "prefix", "key", "time_us", "count", "blamed_key")
    groups: dict[str, dict[str, Any]] = {}
    for fingerprint, type_, message, prefix, key, time_us, count, blamed in table.records(*names):
        if blamed:
            continue
        known = groups.pop(fingerprint, None)
        groups[fingerprint] = {
            "fingerprint": clean_name(fingerprint),
            "type": clean_name(type_),
            "message": clean_text(message, MAX_MESSAGE),
            "prefix": clean_name(prefix),
            "key": clean_name(key),
            "count": max(1, clean(count)) + (known["count"] if known else 0),
            "time_us": clean(time_us),
        }
    return list(groups.values())[-MAX_ERRORS:]


def empty(part: str) -> dict[str, Array]:
    return {name: np.zeros(0, dtype=dtype) for name, dtype in PARTS[part].items()}


def typed(part: str, columns: Columns) -> Columns:
    """Return the columns of a part in their types; numbers that do not fit are cut."""
    result = {}
    for name, dtype in PARTS[part].items():
        values = columns[name]
        if np.dtype(dtype).kind == "u":
            values = np.clip(values, 0, np.iinfo(dtype).max)
        result[name] = np.ascontiguousarray(values, dtype=dtype)
    return result


def summed(columns: Columns, keys: Sequence[str]) -> Columns:
    """Return one row per combination of the key columns, with the sums of the others."""
    pairs = np.stack([np.asarray(columns[name], dtype=np.int64) for name in keys], axis=1)
    distinct, inverse = np.unique(pairs, axis=0, return_inverse=True)
    found: dict[str, Array] = {name: distinct[:, place] for place, name in enumerate(keys)}
    for name in columns:
        if name not in keys:
            found[name] = np.bincount(inverse.reshape(-1), weights=columns[name], minlength=len(distinct))
    return found
