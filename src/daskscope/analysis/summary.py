"""The whole recording on one page: what ran, how it ended, where the time went, what failed, what is not known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np

from daskscope.analysis.completeness import TableCompleteness, completeness, is_complete, statement
from daskscope.analysis.failures import Failure, failures
from daskscope.analysis.grouping import where
from daskscope.analysis.prefixes import Activity, Prefix, activities, prefixes
from daskscope.analysis.workers import Worker, workers
from daskscope.model.recording import Recording

#: Kinds of windows a recording is made for.
MADE_FOR = ("report", "record")


@dataclass(frozen=True)
class Cluster:
    """The scheduler that was recorded."""

    cluster: str
    name: str
    user: str
    address: str
    start_us: int
    recording_us: int
    #: 0 when the recording does not reach the end.
    end_us: int
    #: running, closed, recording ended
    state: str
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Computation:
    """One compute, persist or submit wave."""

    computation: str
    state: str
    start_us: int
    stop_us: int
    wall_us: int
    tasks: int
    errors: int
    #: The line of the user's code that asked for it, empty where code is not recorded.
    code: str
    span_tags: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """Everything ``daskscope show`` says, as numbers."""

    source: str
    cluster: Cluster | None
    #: Further clusters merged into the same recording.
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
    #: One sentence: all rows of every table, or exactly what is not there.
    statement: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data ready for JSON; times are integer microseconds and say so in their names."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def summarise(recording: Recording) -> Summary:
    """Sum up a recording; of a running cluster everything counts up to the last thing seen."""
    clusters = _clusters(recording)
    cluster = clusters[-1] if clusters else None
    start, end = _lifetime(recording, cluster)
    return Summary(
        source=recording.source,
        cluster=cluster,
        other_clusters=max(0, len(clusters) - 1),
        start_us=start,
        end_us=end,
        duration_us=max(0, end - start),
        computations=_computations(recording, end),
        prefixes=prefixes(recording),
        activities=activities(recording),
        workers=workers(recording, end),
        errors=failures(recording),
        complete=is_complete(recording),
        completeness=completeness(recording),
        statement=statement(recording),
    )


def extent(recording: Recording) -> tuple[int, int]:
    """From when to when a recording speaks: of the one window it was made for, else of everything there is."""
    start, end = lifetime(recording)
    windows = recording["windows"]
    named = np.flatnonzero(where(windows.strings("kind"), *MADE_FOR))
    if len(named) != 1:
        return start, end
    begin, stop = (int(windows[name][named[0]]) for name in ("start_us", "stop_us"))
    return begin or start, max(begin or start, stop or end)


def lifetime(recording: Recording) -> tuple[int, int]:
    """From when to when a cluster was recorded, as far as it is in the recording."""
    clusters = _clusters(recording)
    start, end = _lifetime(recording, clusters[-1] if clusters else None)
    return start, max(start, end)


def _lifetime(recording: Recording, cluster: Cluster | None) -> tuple[int, int]:
    first, last = _moments(recording)
    start = (cluster.recording_us or cluster.start_us if cluster else 0) or first
    return start, (cluster.end_us if cluster else 0) or last


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    # JSON has no NaN and no infinities.
    return None if isinstance(value, float) and not isfinite(value) else value


def _moments(recording: Recording) -> tuple[int, int]:
    """The first and the last moment any row speaks of."""
    moments = []
    for table in recording.tables.values():
        times = table[table.definition.time]
        times = times[times > 0]
        if len(times):
            moments += [int(times.min()), int(times.max())]
    return min(moments, default=0), max(moments, default=0)


def _clusters(recording: Recording) -> list[Cluster]:
    names = ("cluster", "name", "user", "address", "start_us", "recording_us", "end_us", "end_reason", "versions")
    rows = zip(*(recording["clusters"][name].tolist() for name in names), strict=True)
    found = [
        Cluster(
            id_, name, user, address, start, began, end, reason or ("closed" if end else "running"), _versions(json_)
        )
        for id_, name, user, address, start, began, end, reason, json_ in rows
    ]
    return sorted(found, key=lambda cluster: cluster.recording_us)


def _versions(text: str) -> dict[str, str]:
    """The packages of a JSON object; a text that is none is no reason to show nothing at all."""
    try:
        versions = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return {str(k): str(v) for k, v in versions.items() if isinstance(v, str)} if isinstance(versions, dict) else {}


def _computations(recording: Recording, end: int) -> tuple[Computation, ...]:
    spans = recording["spans"]
    tags = dict(zip(spans["span"].tolist(), map(tuple, spans["tags"].tolist()), strict=True))
    names = ("computation", "state", "start_us", "stop_us", "tasks", "erred", "code", "code_line", "span")
    rows = zip(*(recording["computations"][name].tolist() for name in names), strict=True)
    found = [
        Computation(
            computation=id_,
            state=state,
            start_us=start,
            stop_us=stop,
            wall_us=max(0, (stop or end) - start) if start else 0,
            tasks=tasks,
            errors=erred,
            code=_call(code, line),
            span_tags=tags.get(span, ()),
        )
        for id_, state, start, stop, tasks, erred, code, line, span in rows
    ]
    return tuple(sorted(found, key=lambda computation: (computation.start_us, computation.computation)))


def _call(code: str, line: int) -> str:
    """The line of the call, or the first with something on it."""
    lines = code.splitlines()
    if 0 <= line < len(lines) and lines[line].strip():
        return lines[line].strip()
    return next((text.strip() for text in lines if text.strip()), "")
