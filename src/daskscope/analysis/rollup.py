"""What one batch adds to the sums a server keeps.

A server reads every batch once, when it arrives, and every list and overview from these sums after that. They are additive:
the roll-up of two batches is the sum of theirs, in any order. Whatever a batch claims is bounded here, so that one made to
hurt cannot fill the catalog: too many names become ``(other)``, impossible times and sizes are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskscope.model.table import Array, Strings, Table, object_array
from daskscope.units import DAY, SECOND

#: Width of a step of the timeline.
BUCKET = 10 * SECOND
#: Names of one kind a batch may bring; the recorder's own batches of 20,000 tasks have some hundred.
MOST_NAMES = 2_000
#: Pairs of them: of a computation and a prefix, or of a day and a prefix.
MOST_PAIRS = 5_000
#: Steps of the timeline a batch may touch: two hours, where the recorder closes one every few seconds.
MOST_BUCKETS = 720
MOST_DAYS = 400
MOST_EXCEPTIONS = 1_000
#: Rows of entities a batch may bring: as many as a writer puts into one.
MOST_ENTITIES = 20_000
OTHER = "(other)"
LONGEST = 366 * DAY
#: What any number is cut to, and any sum: exact as a float, and a thousand of them still fit into 64 bits.
LARGEST = 1 << 53
#: Bytes kept of a name. Five of them make a key of the catalog, and PostgreSQL indexes no key above 2,704 bytes.
NAME_NBYTES = 500
#: Characters kept of a text, and of all long texts of a batch: one text that a thousand rows name is small on the wire only.
TEXT_LENGTH, ALL_TEXTS = 100_000, 8_000_000


@dataclass
class Sums:
    """Executions of one prefix, or of all."""

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
        for name in ADDED:
            setattr(self, name, min(getattr(self, name) + getattr(other, name), LARGEST))
        self.first_us = min(self.first_us or other.first_us, other.first_us or self.first_us)
        self.last_us = max(self.last_us, other.last_us)
        self.longest_us = max(self.longest_us, other.longest_us)


ADDED = (
    "tasks", "errors", "retried", "killed", "compute_us", "transfer_us", "disk_us", "deserialize_us", "nbytes",
)  # fmt: skip

#: Columns of the two smaller sums.
DAY_FIELDS = ("tasks", "errors", "compute_us", "transfer_us", "nbytes")
BUCKET_FIELDS = ("tasks", "errors", "compute_us", "transfer_us")


@dataclass
class RollUp:
    """The sums of some batches of one run, and the newest row of each entity in them."""

    prefixes: dict[tuple[str, str], Sums] = field(default_factory=dict)
    days: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    timeline: dict[int, list[int]] = field(default_factory=dict)
    activities: dict[tuple[str, str, str, str, str], float] = field(default_factory=dict)
    #: By table, then by key: the row with the newest ``seen_us``.
    entities: dict[str, dict[tuple[str, ...], dict[str, Any]]] = field(default_factory=dict)
    #: The last sample of each worker: time, memory, CPU.
    memories: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    exceptions: list[dict[str, Any]] = field(default_factory=list)
    #: Failures in rows beyond those kept one by one.
    uncounted: int = 0
    rows: int = 0
    #: Characters of the texts that are kept. On the wire a text is there once, however many rows have it.
    text_length: int = 0

    def total(self) -> Sums:
        total = Sums()
        for sums in self.prefixes.values():
            total.add(sums)
        return total

    def add(self, other: RollUp) -> None:
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
        self.rows += other.rows
        self.text_length += other.text_length


def _add_lists(mine: dict[Any, list[int]], other: dict[Any, list[int]]) -> None:
    for key, values in other.items():
        known = mine.get(key)
        mine[key] = [min(a + b, LARGEST) for a, b in zip(known, values, strict=True)] if known else list(values)


def roll_up(table: Table) -> RollUp:
    """The roll-up of one batch.

    For a table that is not one batch there is ``roll_up_all``: what bounds a batch would cut it.
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
    """The roll-up of all executions of a run, in parts so small that nothing is cut."""
    total = RollUp()
    ordered = tasks.take(np.argsort(tasks["stop_us"], kind="stable"))
    waiting = [(0, ordered.rows)]
    while waiting:
        first, last = waiting.pop()
        part = ordered.take(np.arange(first, last))
        if last - first > MOST_DAYS and not _fits(part):
            middle = (first + last) // 2
            waiting += [(first, middle), (middle, last)]
        else:
            total.add(roll_up(part))
    return total


def _fits(part: Table) -> bool:
    computations, prefixes = part.strings("computation"), part.strings("prefix")
    pairs = _dense(computations.codes.astype(np.int64) * len(prefixes.values) + prefixes.codes)[1]
    # There are no more names than pairs of them, and no more days than steps of ten seconds.
    return part.rows <= 20_000 and len(pairs) <= MOST_NAMES and len(_dense(part["stop_us"] // BUCKET)[1]) <= MOST_DAYS


# ---------------------------------------------------------------- tasks


def _tasks(table: Table, result: RollUp) -> None:
    start, stop = table["start_us"], table["stop_us"]
    compute = np.where(start > 0, durations(start, stop), 0)
    computations, prefixes = _few(table.strings("computation")), _few(table.strings("prefix"))
    width = len(prefixes.values)
    groups, names = _dense(computations.codes.astype(np.int64) * width + prefixes.codes)
    if len(names) > MOST_PAIRS:
        computations = Strings(np.zeros(table.rows, dtype=np.int64), object_array([OTHER]))
        groups, names = _dense(prefixes.codes)
    status = _statuses(table.strings("status"))
    flat = _flat(table)
    spent = _intervals(flat, groups, len(names))
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
    transfer = _per_row(flat, "transfer", table.rows)
    failed = (status == 1).astype(np.int64)
    day, last = int(stop.min()) // DAY, int(stop.max()) // DAY
    if day == last:
        # Nearly every batch: what its prefixes sum to is what the day has of them.
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
    """Lengths of intervals, whatever they claim: none is negative or longer than a year."""
    # As floats: the difference of two hostile 64-bit integers need not be one.
    lengths: Array = np.clip(stop.astype(np.float64) - start, 0, LONGEST)
    return lengths


_ACTIONS = {"transfer": "transfer_us", "disk-read": "disk_us", "disk-write": "disk_us", "deserialize": "deserialize_us"}


Intervals = tuple[Array, Strings, Array]


def _flat(table: Table) -> Intervals | None:
    """The intervals of all rows: the row of each, its action, its length; None where their columns disagree."""
    actions, starts = table.lists("interval_action"), table.lists("interval_start_us")
    stops = table.lists("interval_stop_us")
    same = np.array_equal(actions.offsets, starts.offsets) and np.array_equal(actions.offsets, stops.offsets)
    if not same or not len(actions.flat) or not isinstance(actions.flat, Strings):
        return None
    assert isinstance(starts.flat, np.ndarray) and isinstance(stops.flat, np.ndarray)
    rows = np.repeat(np.arange(table.rows), actions.lengths)
    return rows, actions.flat, durations(starts.flat, stops.flat)


def _intervals(flat: Intervals | None, groups: Array, count: int) -> dict[str, Array]:
    sums = {name: np.zeros(count, dtype=np.int64) for name in ("transfer_us", "disk_us", "deserialize_us")}
    if flat is not None:
        rows, actions, lengths = flat
        for code, action in enumerate(actions.values):
            if action in _ACTIONS:
                mine = actions.codes == code
                sums[_ACTIONS[action]] += _sum(groups[rows[mine]], lengths[mine], count)
    return sums


def _per_row(flat: Intervals | None, action: str, count: int) -> Array:
    if flat is None:
        return np.zeros(count)
    rows, actions, lengths = flat
    mine = np.isin(actions.codes, [code for code, value in enumerate(actions.values) if value == action])
    return np.bincount(rows[mine], weights=lengths[mine], minlength=count)


def _by_day(result: RollUp, stop: Array, prefixes: Strings, values: tuple[Array, ...]) -> None:
    width = len(prefixes.values)
    numbers, names = _dense(stop // DAY)
    if len(names) > MOST_DAYS:
        return
    groups, combined = _dense(numbers * width + prefixes.codes)
    if len(combined) > MOST_PAIRS:
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
    if len(names) > MOST_BUCKETS:
        return
    columns = [_sum(groups, column, len(names)).tolist() for column in values]
    for position, name in enumerate(names.tolist()):
        if name > 0:
            result.timeline[name * BUCKET] = [column[position] for column in columns]


# ---------------------------------------------------------------- the other tables


def _activities(table: Table, result: RollUp) -> None:
    names = [_few(table.strings(column)) for column in ("span", "context", "prefix", "activity", "unit")]
    combined = np.zeros(table.rows, dtype=np.int64)
    for strings in names:
        # Numbered anew after each column, so that the product of five dictionaries cannot overflow.
        combined, _ = _dense(combined * len(strings.values) + strings.codes)
    first = np.unique(combined, return_index=True)[1]
    values = np.where(np.isfinite(table["value"]), np.clip(table["value"], -LARGEST, LARGEST), 0.0)
    sums = np.bincount(combined, weights=values)
    for row, value in zip(first.tolist(), sums.tolist(), strict=True):
        span, context, prefix, activity, unit = (str(strings.values[strings.codes[row]]) for strings in names)
        key = (span, context, prefix, activity, unit)
        if len(result.activities) >= MOST_NAMES:
            key = ("", context if context in ("execute", "gather-dep", "get-data") else OTHER, OTHER, OTHER, unit)
        result.activities[key] = result.activities.get(key, 0.0) + value


def _samples(table: Table, result: RollUp) -> None:
    workers = _few(table.strings("worker"))
    times, memory, cpu = table["time_us"], table["memory"], table["cpu_percent"]
    last = np.zeros(len(workers.values), dtype=np.int64)
    order = np.argsort(times, kind="stable")
    last[workers.codes[order]] = order
    for code in np.unique(workers.codes).tolist():
        row = int(last[code])
        share = float(cpu[row]) if np.isfinite(cpu[row]) else 0.0
        time = int(np.clip(times[row], 0, LARGEST))
        result.memories[str(workers.values[code])] = (time, int(np.clip(memory[row], 0, LARGEST)), share)


def _exceptions(table: Table, result: RollUp) -> None:
    blamed = table.strings("blamed_key")
    # A task that failed because another one did raised nothing: its failure is the other's.
    raised = np.flatnonzero(np.isin(blamed.codes, np.flatnonzero(blamed.values == "")))
    table = table.take(raised)
    kept = min(table.rows, MOST_EXCEPTIONS)
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

#: Columns of the entities a catalog keeps.
ENTITIES = {
    "clusters": (
        "cluster", "name", "user", "host", "address", "seen_us", "start_us", "recording_us", "end_us", "end_reason",
        "clock_offset_us", "versions", "platform", "config", "prices", "idle_since_us", "idle_timeout_s", "tasks_queued",
        "tasks_processing", "tasks_unrunnable", "unrunnable_needs", "workers", "threads", "dropped",
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
    ),
}  # fmt: skip


#: Columns that hold a text; every other one that is no number holds a name.
TEXTS = frozenset({
    "message", "traceback", "cause_message", "code", "evidence", "versions", "platform", "config", "prices", "dropped",
    "unrunnable_needs",
})  # fmt: skip
#: Columns in which a number below zero says something.
SIGNED = frozenset({"clock_offset_us", "held_nbytes"})


def _entities(table: Table) -> dict[tuple[str, ...], dict[str, Any]]:
    """The newest row of each key; of two that are as new the later one."""
    key = table.definition.key
    newest: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in _rows(table, ENTITIES[table.name], min(table.rows, MOST_ENTITIES)):
        identity = tuple(row[name] for name in key)
        known = newest.get(identity)
        if known is None or row["seen_us"] >= known["seen_us"]:
            newest[identity] = row
    return newest


def _rows(table: Table, names: tuple[str, ...], count: int) -> Iterator[dict[str, Any]]:
    columns = [table[name][:count].tolist() for name in names]
    room = ALL_TEXTS
    for values in zip(*columns, strict=True):
        row: dict[str, Any] = {}
        for name, value in zip(names, values, strict=True):
            if name in TEXTS:
                row[name] = clean_text(value, min(TEXT_LENGTH, room))
                room -= len(row[name])
            else:
                row[name] = clean(value, signed=name in SIGNED)
        yield row


def clean(value: Any, *, signed: bool = False) -> Any:
    """A value any database takes, and can add up: names without NUL and lone surrogates, numbers that are numbers."""
    if isinstance(value, str):
        return clean_name(value)
    if isinstance(value, float):
        return min(max(value, -float(LARGEST)), float(LARGEST)) if np.isfinite(value) else 0.0
    return min(max(value, -LARGEST if signed else 0), LARGEST)


def clean_name(text: str) -> str:
    text = clean_text(text, NAME_NBYTES)
    if len(text) * 4 <= NAME_NBYTES or text.isascii():
        return text
    return text.encode()[:NAME_NBYTES].decode(errors="ignore")


def clean_text(text: str, length: int) -> str:
    text = text[:length]
    if text.isascii():
        return text.replace("\0", "�") if "\0" in text else text
    return text.encode("utf-8", "replace").decode().replace("\0", "�")


def _few(strings: Strings) -> Strings:
    """A column with cleaned names, those beyond the first ``MOST_NAMES`` in use all called ``(other)``."""
    codes, names = _dense(strings.codes)
    values = [clean_name(str(value)) for value in strings.values[names][:MOST_NAMES]]
    if len(names) > MOST_NAMES:
        codes = np.minimum(codes, MOST_NAMES)
        values.append(OTHER)
    # Two names that cleaning made the same are one.
    index = {value: number for number, value in enumerate(dict.fromkeys(values))}
    if len(index) < len(values):
        codes = np.array([index[value] for value in values])[codes]
    return Strings(codes, object_array(list(index)))


def _dense(codes: Array) -> tuple[Array, Array]:
    """Codes renumbered without gaps, and the old code of each new one; no sort where the range is small."""
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
        # Nothing failed, nothing was moved: most columns of most batches.
        return np.zeros(count, dtype=np.int64)
    sums: Array = np.minimum(np.bincount(groups, weights=values, minlength=count), LARGEST).astype(np.int64)
    return sums


def _least(groups: Array, values: Array, count: int) -> Array:
    """The earliest time of each group; one that is not known (0) is not the earliest."""
    known = values > 0
    result = np.full(count, LARGEST, dtype=np.int64)
    np.minimum.at(result, groups[known], np.minimum(values[known], LARGEST))
    return np.where(result == LARGEST, 0, result)


def _greatest(groups: Array, values: Array, count: int) -> Array:
    result = np.zeros(count, dtype=np.int64)
    np.maximum.at(result, groups, np.clip(values, 0, LARGEST).astype(np.int64))
    return result
