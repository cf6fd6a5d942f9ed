"""Select part of a recording: a stretch of time, a computation, a span, a prefix or a worker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from daskscope.analysis.columns.grouping import where
from daskscope.model.recording import Array, Completeness, Lists, Recording, Strings, Table, Values

#: End time of rows that have not ended.
NEVER = np.iinfo(np.int64).max
#: Pairs of columns with the start and the end of a row; the first pair that a table has is used.
TIME_COLUMNS = (("start_us", "stop_us"), ("start_us", "end_us"), ("connect_us", "disconnect_us"))
#: Columns that hold a worker.
WORKER_COLUMNS = ("worker", "source", "destination")


@dataclass(frozen=True)
class Selection:
    """Criteria of the rows to keep; None matches everything. A span includes the spans inside it."""

    start_us: int | None = None
    stop_us: int | None = None
    computation: str | None = None
    span: str | None = None
    prefix: str | None = None
    worker: str | None = None


def select(recording: Recording, selection: Selection) -> Recording:
    """Return the recording with only the selected rows; a table without the column of a criterion ignores it.

    Rows with a duration are kept if they overlap the stretch of time. Clusters are always kept. A worker that left after the
    stretch counts as connected.
    """
    if selection == Selection():
        return recording
    spans = spans_within(recording["spans"], selection.span) if selection.span is not None else None
    tables = {}
    for name, table in recording.tables.items():
        kept = np.ones(table.rows, dtype=bool)
        if name != "clusters":
            kept &= _in_time(table, selection.start_us, selection.stop_us)
            kept &= _matches(table, selection, spans)
        tables[name] = table if kept.all() else table.take(kept)
    if "workers" in tables and selection.stop_us is not None:
        tables["workers"] = _reconnect(tables["workers"], selection.stop_us)
    if "tasks" in tables and "edges" in tables:
        edges = tables["edges"]
        tables["edges"] = edges.take(np.isin(edges["task"], tables["tasks"]["id"]))
    completeness = {
        name: Completeness(tables[name].rows, part.dropped, part.missing) if name in tables else part
        for name, part in recording.completeness.items()
    }
    return replace(recording, tables=tables, completeness=completeness)


def since(recording: Recording, start_us: int) -> Recording:
    """Return the rows of a window that began at ``start_us``; its file has no rows after its end.

    Clocks of workers are some milliseconds off. An execution belongs to the window if the scheduler assigned it after the
    window began, even if its worker reports an earlier stop. The last samples before the window are its state at the start.
    """
    tasks, samples = recording["tasks"], recording["samples"]
    selected = select(recording, Selection(start_us=start_us))
    kept = (tasks["assigned_us"] >= start_us) | (tasks["stop_us"] > start_us)
    times = samples["time_us"]
    recent = times >= times[times < start_us].max(initial=0)
    own = {
        "tasks": tasks if kept.all() else tasks.take(kept),
        "samples": samples if recent.all() else samples.take(recent),
    }
    return replace(selected, tables={**selected.tables, **own})


def spans_within(spans: Table, span: str) -> tuple[str, ...]:
    """Return a span and all spans inside it."""
    inside: dict[str, list[str]] = {}
    for name, parent in zip(spans["span"].tolist(), spans["parent"].tolist(), strict=True):
        inside.setdefault(parent, []).append(name)
    found = dict.fromkeys((span,))
    pending = [span]
    while pending:
        fresh = [name for name in inside.get(pending.pop(), ()) if name not in found]
        found.update(dict.fromkeys(fresh))
        pending += fresh
    return tuple(found)


def _in_time(table: Table, start_us: int | None, stop_us: int | None) -> Array:
    kept = np.ones(table.rows, dtype=bool)
    if table.name == "edges" or (start_us is None and stop_us is None):
        return kept
    first, last = _time_range(table)
    if stop_us is not None:
        kept &= first < stop_us
    if start_us is not None:
        # A row without duration belongs to its start.
        kept &= (last > start_us) | (first >= start_us)
    return kept


#: Columns that are filled in when a worker leaves.
_END = ("end_us", "verdict", "evidence", "processing", "processing_count", "lost_count")


def _reconnect(workers: Table, stop_us: int) -> Table:
    """Clear the end of workers that left after ``stop_us``."""
    later: Array = workers["end_us"] > stop_us
    if not later.any():
        return workers
    blanked = {name: _blanked(workers.columns[name], later) for name in _END}
    return Table(workers.definition, {**workers.columns, **blanked})


def _blanked(values: Values, rows: Array) -> Values:
    """Return a column with the given rows set to their empty value."""
    if isinstance(values, Strings):
        return Strings.from_texts(np.where(rows, "", values.to_numpy()).astype(object))
    if isinstance(values, Lists):
        offsets = np.concatenate(([0], np.cumsum(np.where(rows, 0, values.lengths)))).astype(np.int64)
        return Lists(offsets, values.take(np.flatnonzero(~rows)).flat)
    return np.where(rows, np.zeros(1, dtype=values.dtype), values)


def _time_range(table: Table) -> tuple[Array, Array]:
    for begin, end in TIME_COLUMNS:
        if begin in table and end in table:
            last = table[end]
            return table[begin], np.where(last == 0, NEVER, last)
    moments = table[table.definition.time]
    # A reading of a process covers the time since the previous one, also for work between the two.
    return (moments - table["wall_us"] if table.name == "processes" else moments), moments


def _matches(table: Table, selection: Selection, spans: tuple[str, ...] | None) -> Array:
    kept = np.ones(table.rows, dtype=bool)
    if selection.computation is not None:
        kept &= _holds(table, ("computation",), (selection.computation,))
    if spans is not None:
        kept &= _holds(table, ("span",), spans)
    if selection.prefix is not None:
        kept &= _holds(table, ("prefix",), (selection.prefix,))
    if selection.worker is not None:
        kept &= _holds(table, WORKER_COLUMNS, (selection.worker,))
    return kept


def _holds(table: Table, columns: Iterable[str], texts: tuple[str, ...]) -> Array:
    """Return a mask of the rows with one of the texts in one of the columns; all rows if the table has none of them."""
    held = [where(table.strings(column), *texts) for column in columns if _is_text(table, column)]
    result: Array = np.logical_or.reduce(held) if held else np.ones(table.rows, dtype=bool)
    return result


def _is_text(table: Table, column: str) -> bool:
    # profiles.source names a sampler, not a worker.
    if table.name == "profiles" and column == "source":
        return False
    return any(c.name == column and c.kind == "str" for c in table.definition.columns)
