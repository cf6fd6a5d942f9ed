"""Roll up a batch into the sums that a server stores.

A server reads every batch once, when it arrives; every list and overview is made from these sums. They are additive: the
roll-up of two batches is the sum of their roll-ups, in any order. A hostile batch cannot fill the catalog: surplus names
become ``(other)``, and invalid times and sizes are cut (``model/untrusted.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskscope.analysis.columns.intervals import task_intervals
from daskscope.model.recording import Array, Strings, Table, object_array
from daskscope.model.untrusted import (
    ALL_TEXTS,
    LARGEST,
    MAX_BUCKETS,
    MAX_DAYS,
    MAX_DURATION,
    MAX_ENTITIES,
    MAX_EXCEPTIONS,
    MAX_NAMES,
    MAX_PAIRS,
    OTHER,
    TEXT_LENGTH,
    clean,
    clean_name,
    clean_text,
)
from daskscope.units import DAY, SECOND

#: Width of a step of the timeline.
BUCKET = 10 * SECOND


@dataclass
class Sums:
    """Sums over the executions of one prefix, or of all."""

    tasks: int = 0
    errors: int = 0
    retried: int = 0
    killed: int = 0
    compute_us: int = 0
    transfer_us: int = 0
    disk_us: int = 0
    deserialize_us: int = 0
    nbytes: int = 0
    first_us: int = 0
    last_us: int = 0
    longest_us: int = 0

    def add(self, other: Sums) -> None:
        """Add other sums to these."""
        for name in ADDED:
            setattr(self, name, min(getattr(self, name) + getattr(other, name), LARGEST))
        self.first_us = min(self.first_us or other.first_us, other.first_us or self.first_us)
        self.last_us = max(self.last_us, other.last_us)
        self.longest_us = max(self.longest_us, other.longest_us)


ADDED = (
    "tasks", "errors", "retried", "killed", "compute_us", "transfer_us", "disk_us", "deserialize_us", "nbytes",
)  # fmt: skip

#: Columns of the sums by day, and by step of the timeline.
DAY_FIELDS = ("tasks", "errors", "compute_us", "transfer_us", "nbytes")
BUCKET_FIELDS = ("tasks", "errors", "compute_us", "transfer_us")


@dataclass
class RollUp:
    """Sums over batches of one run, and the newest row of each entity in them."""

    prefixes: dict[tuple[str, str], Sums] = field(default_factory=dict)
    days: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    timeline: dict[int, list[int]] = field(default_factory=dict)
    activities: dict[tuple[str, str, str, str, str], float] = field(default_factory=dict)
    #: By table and key: the row with the newest ``seen_us``.
    entities: dict[str, dict[tuple[str, ...], dict[str, Any]]] = field(default_factory=dict)
    #: The last sample of each worker: time, memory, CPU.
    memories: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    exceptions: list[dict[str, Any]] = field(default_factory=list)
    #: Failures in rows beyond ``MAX_EXCEPTIONS``.
    uncounted: int = 0
    rows: int = 0
    #: Characters of all texts. On the wire a text is sent once, however many rows share it.
    text_length: int = 0

    def total(self) -> Sums:
        """Return the sums over all prefixes."""
        total = Sums()
        for sums in self.prefixes.values():
            total.add(sums)
        return total

    def add(self, other: RollUp) -> None:
        """Add another roll-up of the same run to this one."""
        self.rows += other.rows
        if other.is_empty:
            return
        for key, sums in other.prefixes.items():
            self.prefixes.setdefault(key, Sums()).add(sums)
        _add_lists(self.days, other.days)
        _add_lists(self.timeline, other.timeline)
        for name, value in other.activities.items():
            self.activities[name] = self.activities.get(name, 0.0) + value
        for table, rows in other.entities.items():
            mine = self.entities.setdefault(table, {})
            for identity, row in rows.items():
                known = mine.get(identity)
                if known is None or row["seen_us"] >= known["seen_us"]:
                    mine[identity] = row
        for worker, sample in other.memories.items():
            self.memories[worker] = max(sample, self.memories.get(worker, sample))
        self.exceptions += other.exceptions
        self.uncounted += other.uncounted
        self.text_length += other.text_length

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing but a number of rows, as in most batches."""
        sums = self.prefixes or self.activities or self.memories or self.entities
        return not (sums or self.days or self.timeline or self.exceptions or self.uncounted or self.text_length)


def _add_lists(mine: dict[Any, list[int]], other: dict[Any, list[int]]) -> None:
    for key, values in other.items():
        known = mine.get(key)
        mine[key] = [min(a + b, LARGEST) for a, b in zip(known, values, strict=True)] if known else list(values)


def roll_up(table: Table) -> RollUp:
    """Return the roll-up of one batch.

    Use ``roll_up_all`` for larger tables, which the limits of a batch would cut.
    """
    result = RollUp(rows=table.rows)
    if not table.rows:
        return result
    if table.name == "tasks":
        _tasks(table, result)
    elif table.name == "activities":
        _activities(table, result)
    elif table.name == "samples":
        _samples(table, result)
    elif table.name == "exceptions":
        _exceptions(table, result)
    elif table.name in ENTITIES:
        result.entities[table.name] = _entities(table)
        result.text_length = _text_length(result.entities[table.name].values())
    return result


def roll_up_all(tasks: Table) -> RollUp:
    """Return the roll-up of all executions of a run, processed in parts small enough for the limits of a batch."""
    total = RollUp()
    ordered = tasks.take(np.argsort(tasks["stop_us"], kind="stable"))
    pending = [(0, ordered.rows)]
    while pending:
        first, last = pending.pop()
        part = ordered.take(np.arange(first, last))
        if last - first > MAX_DAYS and not _fits(part):
            middle = (first + last) // 2
            pending += [(first, middle), (middle, last)]
        else:
            total.add(roll_up(part))
    return total


def _fits(part: Table) -> bool:
    computations, prefixes = part.strings("computation"), part.strings("prefix")
    pairs = _dense(computations.codes.astype(np.int64) * len(prefixes.values) + prefixes.codes)[1]
    # There are at least as many pairs as names, and at least as many steps of ten seconds as days.
    return part.rows <= 20_000 and len(pairs) <= MAX_NAMES and len(_dense(part["stop_us"] // BUCKET)[1]) <= MAX_DAYS


# ---------------------------------------------------------------- tasks


def _tasks(table: Table, result: RollUp) -> None:
    start, stop = table["start_us"], table["stop_us"]
    compute = np.where(start > 0, durations(start, stop), 0)
    computations, prefixes = _clean_names(table.strings("computation")), _clean_names(table.strings("prefix"))
    width = len(prefixes.values)
    groups, names = _dense(computations.codes.astype(np.int64) * width + prefixes.codes)
    if len(names) > MAX_PAIRS:
        computations = Strings(np.zeros(table.rows, dtype=np.int64), object_array([OTHER]))
        groups, names = _dense(prefixes.codes)
    status = _statuses(table.strings("status"))
    intervals = _intervals(table)
    spent = _sum_intervals(intervals, groups, len(names))
    nbytes = np.clip(table["nbytes"], 0, LARGEST)
    columns = {
        "tasks": np.bincount(groups, minlength=len(names)),
        "errors": _sum(groups, status == 1, len(names)),
        "retried": _sum(groups, status == 2, len(names)),
        "killed": _sum(groups, status == 3, len(names)),
        "compute_us": _sum(groups, compute, len(names)),
        "nbytes": _sum(groups, nbytes, len(names)),
        **spent,
        "first_us": _least(groups, start, len(names)),
        "last_us": _greatest(groups, stop, len(names)),
        "longest_us": _greatest(groups, compute, len(names)),
    }
    for position, name in enumerate(names.tolist()):
        key = (str(computations.values[name // width]), str(prefixes.values[name % width]))
        result.prefixes[key] = Sums(**{column: int(values[position]) for column, values in columns.items()})
    transfer = _sum_by_row(intervals, "transfer", table.rows)
    failed = (status == 1).astype(np.int64)
    day, last = int(stop.min()) // DAY, int(stop.max()) // DAY
    if day == last:
        # Nearly every batch: all of it belongs to one day.
        sums = [_sum(names % width, columns[name], width) for name in DAY_FIELDS]
        _add_days(result, prefixes, np.full(width, day), np.arange(width), sums)
    else:
        _by_day(result, stop, prefixes, (np.ones(len(stop)), failed, compute, transfer, nbytes))
    _by_bucket(result, stop, (np.ones(len(stop)), failed, compute, transfer))


def _statuses(strings: Strings) -> Array:
    known = {"error": 1, "retried": 2, "killed": 3}
    codes = np.fromiter((known.get(value, 0) for value in strings.values), dtype=np.int8, count=len(strings.values))
    result: Array = codes[strings.codes]
    return result


def durations(start: Array, stop: Array) -> Array:
    """Return the lengths of intervals, bounded to between zero and a year."""
    # As floats: the difference of two hostile 64-bit integers may overflow.
    lengths: Array = np.clip(stop.astype(np.float64) - start, 0, MAX_DURATION)
    return lengths


_ACTIONS = {"transfer": "transfer_us", "disk-read": "disk_us", "disk-write": "disk_us", "deserialize": "deserialize_us"}

Intervals = tuple[Array, Strings, Array]


def _intervals(table: Table) -> Intervals:
    """Return the row, action and length of every interval."""
    rows, actions, starts, stops = task_intervals(table)
    return rows, actions, durations(starts, stops)


def _sum_intervals(intervals: Intervals, groups: Array, count: int) -> dict[str, Array]:
    sums = {name: np.zeros(count, dtype=np.int64) for name in ("transfer_us", "disk_us", "deserialize_us")}
    rows, actions, lengths = intervals
    for code, action in enumerate(actions.values):
        if action in _ACTIONS:
            mine = actions.codes == code
            sums[_ACTIONS[action]] += _sum(groups[rows[mine]], lengths[mine], count)
    return sums


def _sum_by_row(intervals: Intervals, action: str, count: int) -> Array:
    rows, actions, lengths = intervals
    mine = np.array([value == action for value in actions.values], dtype=bool)[actions.codes]
    return np.bincount(rows[mine], weights=lengths[mine], minlength=count)


def _by_day(result: RollUp, stop: Array, prefixes: Strings, values: tuple[Array, ...]) -> None:
    width = len(prefixes.values)
    numbers, names = _dense(stop // DAY)
    if len(names) > MAX_DAYS:
        return
    groups, combined = _dense(numbers * width + prefixes.codes)
    if len(combined) > MAX_PAIRS:
        prefixes, width = Strings(np.zeros(len(stop), dtype=np.int64), object_array([OTHER])), 1
        groups, combined = numbers, np.arange(len(names))
    sums = [_sum(groups, column, len(combined)) for column in values]
    _add_days(result, prefixes, names[combined // width], combined % width, sums)


def _add_days(result: RollUp, prefixes: Strings, days: Array, codes: Array, sums: list[Array]) -> None:
    columns = [column.tolist() for column in sums]
    for position, (day, code) in enumerate(zip(days.tolist(), codes.tolist())):
        if 0 < day < 1 << 20:
            result.days[day, str(prefixes.values[code])] = [column[position] for column in columns]


def _by_bucket(result: RollUp, stop: Array, values: tuple[Array, ...]) -> None:
    groups, names = _dense(stop // BUCKET)
    if len(names) > MAX_BUCKETS:
        return
    columns = [_sum(groups, column, len(names)).tolist() for column in values]
    for position, name in enumerate(names.tolist()):
        if name > 0:
            result.timeline[name * BUCKET] = [column[position] for column in columns]


# ---------------------------------------------------------------- the other tables


def _activities(table: Table, result: RollUp) -> None:
    names = [_clean_names(table.strings(column)) for column in ("span", "context", "prefix", "activity", "unit")]
    combined, size = np.zeros(table.rows, dtype=np.int64), 1
    for strings in names:
        size *= len(strings.values)
        if size > LARGEST:
            combined, used = _dense(combined)
            size = len(used) * len(strings.values)
        combined = combined * len(strings.values) + strings.codes
    _, first, combined = np.unique(combined, return_index=True, return_inverse=True)
    values = np.where(np.isfinite(table["value"]), np.clip(table["value"], -LARGEST, LARGEST), 0.0)
    sums = np.bincount(combined, weights=values)
    for row, value in zip(first.tolist(), sums.tolist(), strict=True):
        span, context, prefix, activity, unit = (str(strings.values[strings.codes[row]]) for strings in names)
        key = (span, context, prefix, activity, unit)
        if len(result.activities) >= MAX_NAMES:
            key = ("", context if context in ("execute", "gather-dep", "get-data") else OTHER, OTHER, OTHER, unit)
        result.activities[key] = result.activities.get(key, 0.0) + value


def _samples(table: Table, result: RollUp) -> None:
    workers = _clean_names(table.strings("worker"))
    times, memory, cpu = table["time_us"], table["memory"], table["cpu_percent"]
    last = np.zeros(len(workers.values), dtype=np.int64)
    order = np.argsort(times, kind="stable")
    last[workers.codes[order]] = order
    rows = last[np.unique(workers.codes)]
    names = workers.values[workers.codes[rows]].tolist()
    # Plain numbers: a call of numpy per worker takes ten times as long.
    for name, time, nbytes, share in zip(
        names, times[rows].tolist(), memory[rows].tolist(), cpu[rows].tolist(), strict=True
    ):
        result.memories[str(name)] = (
            min(max(time, 0), LARGEST),
            min(max(nbytes, 0), LARGEST),
            share if math.isfinite(share) else 0.0,
        )


def _exceptions(table: Table, result: RollUp) -> None:
    blamed = table.strings("blamed_key")
    # Skip tasks that failed only because a dependency did: they raised nothing themselves.
    raised = np.flatnonzero(np.isin(blamed.codes, np.flatnonzero(blamed.values == "")))
    table = table.take(raised)
    kept = min(table.rows, MAX_EXCEPTIONS)
    result.exceptions = list(_rows(table, EXCEPTION_FIELDS, kept))
    result.uncounted = int(np.clip(table["count"][kept:], 1, 1 << 20).sum()) if table.rows > kept else 0
    for row in result.exceptions:
        row["count"] = min(max(row["count"], 1), 1 << 20)
    result.text_length = _text_length(result.exceptions)


def _text_length(rows: Iterable[Mapping[str, Any]]) -> int:
    return sum(len(row[name]) for row in rows for name in TEXTS & row.keys())


EXCEPTION_FIELDS = (
    "time_us", "key", "prefix", "span", "computation", "worker", "type", "message", "traceback", "cause_type", "cause_message",
    "fingerprint", "will_retry", "count",
)  # fmt: skip

#: Columns of the entities in the catalog.
ENTITIES = {
    "clusters": (
        "cluster", "name", "user", "host", "address", "seen_us", "start_us", "recording_us", "end_us", "end_reason",
        "clock_offset_us", "versions", "platform", "config", "prices", "idle_since_us", "idle_timeout_s", "tasks_queued",
        "tasks_processing", "tasks_unrunnable", "unrunnable_needs", "workers", "threads", "dropped", "tasks_executing",
        "workers_paused", "stalled_since_us", "longest_running",
    ),
    "workers": (
        "server_id", "worker", "name", "host", "seen_us", "nthreads", "memory_limit", "start_us", "end_us", "verdict",
        "evidence", "processing_count", "lost_count",
    ),
    "clients": (
        "client", "seen_us", "connect_us", "last_seen_us", "disconnect_us", "held_keys", "held_nbytes",
    ),
    "computations": (
        "computation", "seen_us", "start_us", "stop_us", "state", "client", "span", "code", "code_line", "code_file",
        "submissions", "groups", "tasks", "memory", "erred", "released", "forgotten", "unfinished",
        "prefix_states",
    ),
}  # fmt: skip


#: The columns that are rolled up, by table; of all other tables, only the number of rows counts.
ROLLED_UP: dict[str, tuple[str, ...]] = {
    **ENTITIES,
    "tasks": (
        "start_us", "stop_us", "computation", "prefix", "status", "nbytes", "interval_action", "interval_start_us",
        "interval_stop_us",
    ),
    "activities": ("span", "context", "prefix", "activity", "unit", "value"),
    "samples": ("worker", "time_us", "memory", "cpu_percent"),
    "exceptions": (*EXCEPTION_FIELDS, "blamed_key"),
}  # fmt: skip

#: Columns that hold a text; other strings are names.
TEXTS = frozenset({
    "message", "traceback", "cause_message", "code", "evidence", "versions", "platform", "config", "prices", "dropped",
    "unrunnable_needs", "longest_running", "prefix_states",
})  # fmt: skip
#: Columns in which negative numbers are valid.
SIGNED = frozenset({"clock_offset_us", "held_nbytes"})


def _entities(table: Table) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the newest row of each key; with equal ``seen_us``, the later row."""
    key = table.definition.key
    newest: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in _rows(table, ENTITIES[table.name], min(table.rows, MAX_ENTITIES)):
        identity = tuple(row[name] for name in key)
        known = newest.get(identity)
        if known is None or row["seen_us"] >= known["seen_us"]:
            newest[identity] = row
    return newest


def _rows(table: Table, names: tuple[str, ...], count: int) -> Iterator[dict[str, Any]]:
    columns = [table[name][:count].tolist() for name in names]
    room_left = ALL_TEXTS
    for values in zip(*columns, strict=True):
        row: dict[str, Any] = {}
        for name, value in zip(names, values, strict=True):
            if name in TEXTS:
                row[name] = clean_text(value, min(TEXT_LENGTH, room_left))
                room_left -= len(row[name])
            else:
                row[name] = clean(value, signed=name in SIGNED)
        yield row


def _clean_names(strings: Strings) -> Strings:
    """Return a column with cleaned names, those beyond the first ``MAX_NAMES`` replaced by ``(other)``."""
    codes, names = _used(strings)
    values = [clean_name(str(value)) for value in strings.values[names][:MAX_NAMES]]
    if len(names) > MAX_NAMES:
        codes = np.minimum(codes, MAX_NAMES)
        values.append(OTHER)
    # Cleaning may have made two names equal.
    index = {value: number for number, value in enumerate(dict.fromkeys(values))}
    if len(index) < len(values):
        codes = np.array([index[value] for value in values])[codes]
    return Strings(codes, object_array(list(index)))


def _used(strings: Strings) -> tuple[Array, Array]:
    """Return the codes of a column renumbered without gaps, and the old code of each new one."""
    if len(strings.values) == 1:
        return strings.codes, np.zeros(1, dtype=np.int64)
    counts = np.bincount(strings.codes, minlength=len(strings.values))
    names = counts.nonzero()[0]
    if len(names) == len(counts):
        # Nearly every column: a recorder sends the values that its rows have.
        return strings.codes, names
    return ((counts > 0).cumsum() - 1)[strings.codes], names


def _dense(codes: Array) -> tuple[Array, Array]:
    """Return codes renumbered without gaps, and the old code of each new one; no sort if the range is small."""
    low, high = int(codes.min()), int(codes.max())
    if high - low > 1 << 20:
        names, inverse = np.unique(codes, return_inverse=True)
        return inverse.reshape(-1), names
    used = np.zeros(high - low + 1, dtype=bool)
    used[codes - low] = True
    number = np.cumsum(used) - 1
    return number[codes - low], np.flatnonzero(used) + low


def _sum(groups: Array, values: Array, count: int) -> Array:
    if not values.any():
        # Most columns of most batches: nothing failed, nothing was transferred.
        return np.zeros(count, dtype=np.int64)
    sums: Array = np.minimum(np.bincount(groups, weights=values, minlength=count), LARGEST).astype(np.int64)
    return sums


def _least(groups: Array, values: Array, count: int) -> Array:
    """Return the earliest known time of each group; 0 means unknown."""
    known = values > 0
    result = np.full(count, LARGEST, dtype=np.int64)
    np.minimum.at(result, groups[known], np.minimum(values[known], LARGEST))
    return np.where(result == LARGEST, 0, result)


def _greatest(groups: Array, values: Array, count: int) -> Array:
    result = np.zeros(count, dtype=np.int64)
    np.maximum.at(result, groups, np.clip(values, 0, LARGEST).astype(np.int64))
    return result
