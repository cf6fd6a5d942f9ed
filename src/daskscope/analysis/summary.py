"""Summarise a recording: clusters, computations, prefixes, workers, errors, the time it covers and its completeness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np

from daskscope import units
from daskscope.analysis.failures import Failure, failures
from daskscope.analysis.grouping import where
from daskscope.analysis.limits import parse_object
from daskscope.analysis.prefixes import Activity, Prefix, activities, prefixes
from daskscope.analysis.selection import since
from daskscope.analysis.workers import Worker, workers
from daskscope.model.recording import Recording
from daskscope.model.states import COMPUTATION_STATES, RunState

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
    """Return whether a recording stops before its cluster ends and covers no block of work."""
    clusters = _clusters(recording)
    if not clusters or clusters[-1].end_us:
        return False
    return not where(recording["windows"].strings("kind"), *WINDOW_KINDS).any()


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
