"""Summarise a recording: clusters, computations, prefixes, workers, errors, the time it covers and its completeness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np

from daskscope import units
from daskscope.analysis.columns.bins import Bins, Cube, make_cube
from daskscope.analysis.columns.grouping import combine, counts, percentile, rows_by_group, sums, where
from daskscope.analysis.columns.intervals import sum_by_action
from daskscope.analysis.executions import EXECUTED, recomputed_rows
from daskscope.analysis.failures import Failure, failures
from daskscope.analysis.resources import peaks_during
from daskscope.analysis.selection import since
from daskscope.analysis.workers import Worker, workers
from daskscope.model.recording import Recording, Table
from daskscope.model.states import COMPUTATION_STATES, RunState
from daskscope.model.untrusted import parse_object

DISK = ("disk-read", "disk-write")
FINE_METRIC_KEYS = ("context", "span", "prefix", "activity", "unit")
#: Fine metrics that pages and ``show`` leave out, by the labels they have: plain digests such as tick-duration, P2P buffers that
#: wait, and P2P metrics of tasks, which Dask counts in the context ``execute`` too.
INTERNAL_METRICS: tuple[dict[str, str], ...] = (
    {"prefix": "", "activity": "total"},
    {"context": "p2p", "activity": "idle"},
    {"context": "p2p", "prefix": "foreground"},
)


@dataclass(frozen=True)
class Prefix:
    """All executions of one task prefix."""

    prefix: str
    count: int
    total_us: int
    mean_us: int
    p50_us: int
    p95_us: int
    max_us: int
    nbytes: int
    errors: int
    retries: int
    killed: int
    transfer_us: int
    disk_us: int
    #: Microseconds by action of all activities besides computing, under Dask's names.
    intervals_us: Mapping[str, int]
    #: Standard deviation of the durations.
    std_us: int = 0
    p99_us: int = 0
    #: Compute time of results that were lost and recomputed.
    recomputed_us: int = 0
    #: Peak memory of a worker process while it ran the prefix; 0 if it was not sampled.
    peak_memory: int = 0
    #: Position in the order in which the prefixes first ran.
    order: int = 0


@dataclass(frozen=True)
class Activity:
    """The total of one fine metric; any label, any unit."""

    context: str
    prefix: str
    activity: str
    unit: str
    total: float


def prefixes(recording: Recording) -> tuple[Prefix, ...]:
    """Return every prefix that ran, longest compute time first."""
    tasks = recording["tasks"]
    names, status = tasks.strings("prefix"), tasks.strings("status")
    size, executed = len(names.values), where(status, *EXECUTED)
    durations = tasks["stop_us"] - tasks["start_us"]
    nbytes = sums(names.codes, tasks["nbytes"], size)
    by_status = {word: counts(names.codes[where(status, word)], size) for word in ("error", "retried", "killed")}
    intervals = sum_by_action(tasks, names.codes, size)
    again = np.flatnonzero(recomputed_rows(recording))
    recomputed = sums(names.codes[again], np.maximum(durations[again], 0), size)
    memory = np.zeros(size, dtype=np.int64)
    during = peaks_during(recording["samples"], "memory", tasks.strings("worker"), tasks["start_us"], tasks["stop_us"])
    np.maximum.at(memory, names.codes, during)
    first = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(first, names.codes, tasks["start_us"])
    ran = sorted(np.unique(names.codes).tolist(), key=lambda code: (first[code], str(names.values[code])))
    order = {code: position for position, code in enumerate(ran)}
    found = []
    for code, rows in rows_by_group(names.codes):
        ordered = np.sort(durations[rows[executed[rows]]])
        count, total = len(ordered), int(ordered.sum())
        found.append(
            Prefix(
                prefix=names.values[code],
                count=count,
                total_us=total,
                mean_us=round(total / count) if count else 0,
                p50_us=percentile(ordered, 0.5) if count else 0,
                p95_us=percentile(ordered, 0.95) if count else 0,
                max_us=int(ordered[-1]) if count else 0,
                nbytes=int(nbytes[code]),
                errors=int(by_status["error"][code]),
                retries=int(by_status["retried"][code]),
                killed=int(by_status["killed"][code]),
                transfer_us=intervals[code].get("transfer", 0),
                disk_us=sum(intervals[code].get(action, 0) for action in DISK),
                intervals_us=intervals[code],
                std_us=round(float(np.std(ordered))) if count else 0,
                p99_us=percentile(ordered, 0.99) if count else 0,
                recomputed_us=int(recomputed[code]),
                peak_memory=int(memory[code]),
                order=order[code],
            )
        )
    return tuple(sorted(found, key=lambda prefix: (-prefix.total_us, prefix.prefix)))


def activities(recording: Recording) -> tuple[Activity, ...]:
    """Return the totals of Dask's fine metrics, ordered by unit, largest first, without internal metrics."""
    table = without_internal(recording["activities"])
    columns = [table.strings(name) for name in ("context", "prefix", "activity", "unit")]
    codes, labels = combine(columns)
    totals: Iterable[float] = np.bincount(codes, weights=table["value"], minlength=len(labels)) if len(codes) else []
    found = [Activity(c, p, a, u, float(total)) for (c, p, a, u), total in zip(labels, totals, strict=True)]
    return tuple(sorted(found, key=lambda a: (*_rank(a.unit), -a.total, a.context, a.prefix, a.activity)))


def without_internal(table: Table) -> Table:
    """Return fine metrics that measure work, each once."""
    internal = np.zeros(table.rows, dtype=bool)
    for labels in INTERNAL_METRICS:
        internal |= np.logical_and.reduce([where(table.strings(name), text) for name, text in labels.items()])
    return table.take(~internal)


def _rank(unit: str) -> tuple[bool, bool, str]:
    """Sort seconds first and metrics without a unit last."""
    return unit != "seconds", unit == "", unit


def fine_metrics(recording: Recording, bins: Bins) -> Cube:
    """Return Dask's fine metrics in the bin in which they were reported; the totals equal the recorded totals."""
    table = recording["activities"]
    columns = [table.strings(name) for name in FINE_METRIC_KEYS]
    keys = {name: list(map(str, column.values)) for name, column in zip(FINE_METRIC_KEYS, columns, strict=True)}
    values = np.where(np.isfinite(table["value"]), table["value"], 0.0)
    return make_cube(
        keys, [column.codes for column in columns], bins.of(table["time_us"]), bins.count, {"value": values}
    )


#: Kind of the event that a recorder writes if the cluster was recorded before.
GAP = "recording-gap"
#: Kinds of windows that define what a recording covers.
WINDOW_KINDS = ("report", "record")
#: Exceptions that end a block because a user stopped it.
INTERRUPTS = ("KeyboardInterrupt", "asyncio.exceptions.CancelledError")


@dataclass(frozen=True)
class Cluster:
    """The scheduler that was recorded."""

    cluster: str
    name: str
    user: str
    address: str
    start_us: int
    recording_us: int
    #: 0 if the recording stops before the cluster ends.
    end_us: int
    #: closed, recording ended; empty while it runs
    end_reason: str
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Computation:
    """One ``compute()``, ``persist()`` or ``submit()`` call."""

    computation: str
    state: RunState
    start_us: int
    stop_us: int
    wall_us: int
    tasks: int
    errors: int
    #: The line of the user's code with the call; empty if code is not recorded.
    code: str
    span_tags: tuple[str, ...]


@dataclass(frozen=True)
class TableCompleteness:
    """Rows of one table: read, dropped inside the cluster, and written but not in the file."""

    table: str
    rows: int
    dropped: int
    missing: int

    def share(self, rows: int) -> str:
        """Return a number of rows as a part of all, in words."""
        total = self.rows + self.dropped + self.missing
        return f"{units.count(rows)} of {units.counted(total, 'row')} of {self.table}"


@dataclass(frozen=True)
class Summary:
    """Everything ``daskscope show`` prints, as numbers."""

    source: str
    cluster: Cluster | None
    #: Number of further clusters in the same recording.
    other_clusters: int
    start_us: int
    end_us: int
    duration_us: int
    computations: tuple[Computation, ...]
    prefixes: tuple[Prefix, ...]
    activities: tuple[Activity, ...]
    workers: tuple[Worker, ...]
    errors: tuple[Failure, ...]
    complete: bool
    completeness: tuple[TableCompleteness, ...]
    #: One sentence: complete, or exactly which rows are missing.
    statement: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data ready for JSON; times are integer microseconds, with names ending in ``_us``."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def summarise(recording: Recording) -> Summary:
    """Summarise what a recording covers; a running cluster counts up to its last recorded event."""
    start, end = extent(recording)
    clusters, inside = _clusters(recording), inside_block(recording)
    cluster = clusters[-1] if clusters else None
    return Summary(
        source=recording.source,
        cluster=cluster,
        other_clusters=max(0, len(clusters) - 1),
        start_us=start,
        end_us=end,
        duration_us=max(0, end - start),
        computations=_computations(inside, end),
        prefixes=prefixes(inside),
        activities=activities(inside),
        workers=workers(inside, end),
        errors=failures(inside),
        complete=is_complete(recording),
        completeness=completeness(recording),
        statement=statement(recording),
    )


def extent(recording: Recording) -> tuple[int, int]:
    """Return the time a recording covers: its only window, else the lifetime of its cluster."""
    start, end = lifetime(recording)
    block = find_block(recording)
    if block is None:
        return start, end
    begin = block.start_us or start
    return begin, max(begin, block.stop_us or end)


@dataclass(frozen=True)
class Block:
    """The block of work that was recorded."""

    start_us: int
    #: 0 while it runs.
    stop_us: int
    is_interrupted: bool


def find_block(recording: Recording) -> Block | None:
    """Return the only block of a recording; None if it has none or several."""
    windows = recording["windows"]
    named = np.flatnonzero(where(windows.strings("kind"), *WINDOW_KINDS))
    if len(named) != 1:
        return None
    start, stop = (int(windows[name][named[0]]) for name in ("start_us", "stop_us"))
    return Block(start, stop, str(windows["error"][named[0]]).startswith(INTERRUPTS))


def inside_block(recording: Recording) -> Recording:
    """Return the recording without what ended before its only block began: the cluster may have been recorded before."""
    block = find_block(recording)
    return since(recording, block.start_us) if block is not None else recording


def computation_states(recording: Recording, stop_us: int) -> list[RunState]:
    """Return the state of each computation. One that still ran when its block or its cluster ended did not finish."""
    clusters, block = _clusters(recording), find_block(recording)
    is_over = bool(clusters and clusters[-1].end_us)
    at_end: RunState = "unfinished" if is_over else "running"
    if block is not None and 0 < block.stop_us <= stop_us:
        at_end = "interrupted" if block.is_interrupted else "unfinished"
    states = recording["computations"]["state"].tolist()
    return [at_end if state == "running" else COMPUTATION_STATES.get(state, "finished") for state in states]


def is_open(recording: Recording) -> bool:
    """Return whether a recording stops before its cluster ends, and covers no block of work that ended."""
    clusters = _clusters(recording)
    if not clusters or clusters[-1].end_us:
        return False
    windows = recording["windows"]
    return not (where(windows.strings("kind"), *WINDOW_KINDS) & (windows["stop_us"] > 0)).any()


def lifetime(recording: Recording) -> tuple[int, int]:
    """Return when the recording of a cluster starts and ends."""
    clusters = _clusters(recording)
    start, end = _lifetime(recording, clusters[-1] if clusters else None)
    return start, max(start, end)


def _lifetime(recording: Recording, cluster: Cluster | None) -> tuple[int, int]:
    first, last = _time_range(recording)
    start = (cluster.recording_us or cluster.start_us if cluster else 0) or first
    return start, (cluster.end_us if cluster else 0) or last


def completeness(recording: Recording) -> tuple[TableCompleteness, ...]:
    """Return the completeness of every table."""
    return tuple(
        TableCompleteness(name, part.rows, part.dropped, part.missing) for name, part in recording.completeness.items()
    )


def recording_gaps(recording: Recording) -> tuple[tuple[int, int], ...]:
    """Return the times between two recordings of the same cluster, as start and stop."""
    events = recording["events"]
    rows = np.flatnonzero(where(events.strings("kind"), GAP) & where(events.strings("topic"), "daskscope"))
    found = [parse_object(str(text)) for text in events["detail"][rows].tolist()]
    times = [(gap.get("start_us"), gap.get("stop_us")) for gap in found]
    begin, end = extent(recording)
    return tuple(
        sorted(
            (start, stop)
            for start, stop in times
            if type(start) is int and type(stop) is int and begin <= start < stop <= end
        )
    )


def describe_gap(start_us: int, stop_us: int) -> str:
    """Return a gap in words."""
    length = units.duration(stop_us - start_us)
    return f"nothing was recorded from {units.moment(start_us)} to {units.moment(stop_us)} ({length})"


def is_complete(recording: Recording) -> bool:
    """Return whether the recording has every row that was meant for it."""
    if recording.damage or recording.missing_batches or recording.partial or recording_gaps(recording):
        return False
    return not any(part.dropped or part.missing for part in completeness(recording))


def statement(recording: Recording) -> str:
    """Return one sentence: complete, or exactly which rows are missing and why."""
    parts = completeness(recording)
    rows = sum(part.rows for part in parts)
    gaps = [recording.partial] if recording.partial else []
    gaps += [describe_gap(*gap) for gap in recording_gaps(recording)]
    gaps += [f"{part.share(part.dropped)} dropped inside the cluster" for part in parts if part.dropped]
    gaps += [f"{part.share(part.missing)} not in the file" for part in parts if part.missing]
    if recording.missing_batches:
        batches = units.counted(recording.missing_batches, "batch", "batches")
        tables = "other tables" if any(part.missing for part in parts) else "any table"
        gaps.append(f"{batches} not in the file, possibly with rows of {tables}")
    if recording.damage:
        ignored = units.counted(recording.damaged_bytes, "byte")
        verb = "was" if recording.damaged_bytes == 1 else "were"
        place = " after the last whole batch" if recording.damage.endswith("cut off") else ""
        gaps.append(f"{recording.damage}: {ignored}{place} {verb} ignored")
    if gaps:
        return f"Incomplete, {units.counted(rows, 'row')} read: {'; '.join(gaps)}."
    return f"Complete: {units.counted(rows, 'row')}, none dropped or missing." if rows else "The recording has no rows."


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    # JSON has neither NaN nor infinities.
    return None if isinstance(value, float) and not isfinite(value) else value


def _time_range(recording: Recording) -> tuple[int, int]:
    """Return the earliest and the latest time in any row."""
    moments = []
    for table in recording.tables.values():
        times = table[table.definition.time]
        times = times[times > 0]
        if len(times):
            moments += [int(times.min()), int(times.max())]
    return min(moments, default=0), max(moments, default=0)


def _clusters(recording: Recording) -> list[Cluster]:
    names = ("cluster", "name", "user", "address", "start_us", "recording_us", "end_us", "end_reason", "versions")
    rows = recording["clusters"].records(*names)
    found = [
        Cluster(id_, name, user, address, start, began, end, reason or ("closed" if end else ""), _versions(json_))
        for id_, name, user, address, start, began, end, reason, json_ in rows
    ]
    return sorted(found, key=lambda cluster: cluster.recording_us)


def _versions(text: str) -> dict[str, str]:
    return {name: version for name, version in parse_object(text).items() if isinstance(version, str)}


def _computations(recording: Recording, end: int) -> tuple[Computation, ...]:
    spans = recording["spans"]
    tags = dict(zip(spans["span"].tolist(), map(tuple, spans["tags"].tolist()), strict=True))
    names = ("computation", "start_us", "stop_us", "tasks", "erred", "code", "code_line", "span")
    rows, states = recording["computations"].records(*names), computation_states(recording, end)
    found = [
        Computation(
            computation=id_,
            state=state,
            start_us=start,
            stop_us=stop,
            wall_us=max(0, (stop or end) - start) if start else 0,
            tasks=tasks,
            errors=erred,
            code=call_line(code, line),
            span_tags=tags.get(span, ()),
        )
        for state, (id_, start, stop, tasks, erred, code, line, span) in zip(states, rows, strict=True)
    ]
    return tuple(sorted(found, key=lambda computation: (computation.start_us, computation.computation)))


def call_line(code: str, line: int) -> str:
    """Return the line of the call, else the first line that is not blank."""
    lines = code.splitlines()
    if 0 <= line < len(lines) and lines[line].strip():
        return lines[line].strip()
    return next((text.strip() for text in lines if text.strip()), "")
