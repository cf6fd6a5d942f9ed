"""A part of a recording: a stretch of time, a computation, a span, a prefix, a worker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from daskscope.analysis.grouping import where
from daskscope.model.recording import Completeness, Recording
from daskscope.model.table import Array, Lists, Strings, Table, Values

#: The end of time, for what has not ended.
NEVER = np.iinfo(np.int64).max
#: Columns that hold where a row's stretch of time begins and ends, in the order in which they are looked for.
STRETCHES = (("start_us", "stop_us"), ("start_us", "end_us"), ("connect_us", "disconnect_us"))
#: Columns that hold a worker.
WORKERS = ("worker", "source", "destination")


@dataclass(frozen=True)
class Selection:
    """What to keep; None keeps everything. A span stands for itself and the spans inside it."""

    start_us: int | None = None
    stop_us: int | None = None
    computation: str | None = None
    span: str | None = None
    prefix: str | None = None
    worker: str | None = None


def select(recording: Recording, selection: Selection) -> Recording:
    """The recording with only the rows selected; tables that say nothing about a criterion are not touched by it.

    Rows that last belong to a stretch of time when they overlap it. Clusters are always kept: they describe the whole. A
    worker that left after the stretch had not left yet.
    """
    if selection == Selection():
        return recording
    spans = spans_within(recording["spans"], selection.span) if selection.span is not None else None
    tables = {}
    for name, table in recording.tables.items():
        kept = np.ones(table.rows, dtype=bool)
        if name != "clusters":
            kept &= _in_time(table, selection.start_us, selection.stop_us)
            kept &= _named(table, selection, spans)
        tables[name] = table if kept.all() else table.take(kept)
    if "workers" in tables and selection.stop_us is not None:
        tables["workers"] = _still_there(tables["workers"], selection.stop_us)
    if "tasks" in tables and "edges" in tables:
        edges = tables["edges"]
        tables["edges"] = edges.take(np.isin(edges["task"], tables["tasks"]["id"]))
    completeness = {
        name: Completeness(tables[name].rows, part.dropped, part.missing) if name in tables else part
        for name, part in recording.completeness.items()
    }
    return replace(recording, tables=tables, completeness=completeness)


def spans_within(spans: Table, span: str) -> tuple[str, ...]:
    """A span and all spans inside it."""
    inside: dict[str, list[str]] = {}
    for name, parent in zip(spans["span"].tolist(), spans["parent"].tolist(), strict=True):
        inside.setdefault(parent, []).append(name)
    found = dict.fromkeys((span,))
    waiting = [span]
    while waiting:
        fresh = [name for name in inside.get(waiting.pop(), ()) if name not in found]
        found.update(dict.fromkeys(fresh))
        waiting += fresh
    return tuple(found)


def _in_time(table: Table, start_us: int | None, stop_us: int | None) -> Array:
    kept = np.ones(table.rows, dtype=bool)
    if table.name == "edges" or (start_us is None and stop_us is None):
        return kept
    first, last = _stretch(table)
    if stop_us is not None:
        kept &= first < stop_us
    if start_us is not None:
        # What takes no time belongs to the moment at which it happened.
        kept &= (last > start_us) | (first >= start_us)
    return kept


#: What is known of a worker once it has left.
_END = ("end_us", "verdict", "evidence", "processing", "processing_count", "lost_count")


def _still_there(workers: Table, stop_us: int) -> Table:
    later: Array = workers["end_us"] > stop_us
    if not later.any():
        return workers
    blanked = {name: _blanked(workers.columns[name], later) for name in _END}
    return Table(workers.definition, {**workers.columns, **blanked})


def _blanked(values: Values, rows: Array) -> Values:
    """A column as if nothing were known in some rows."""
    if isinstance(values, Strings):
        return Strings.from_texts(np.where(rows, "", values.to_numpy()).astype(object))
    if isinstance(values, Lists):
        offsets = np.concatenate(([0], np.cumsum(np.where(rows, 0, values.lengths)))).astype(np.int64)
        return Lists(offsets, values.take(np.flatnonzero(~rows)).flat)
    return np.where(rows, np.zeros(1, dtype=values.dtype), values)


def _stretch(table: Table) -> tuple[Array, Array]:
    for begin, end in STRETCHES:
        if begin in table and end in table:
            last = table[end]
            return table[begin], np.where(last == 0, NEVER, last)
    moments = table[table.definition.time]
    return moments, moments


def _named(table: Table, selection: Selection, spans: tuple[str, ...] | None) -> Array:
    kept = np.ones(table.rows, dtype=bool)
    if selection.computation is not None:
        kept &= _holds(table, ("computation",), (selection.computation,))
    if spans is not None:
        kept &= _holds(table, ("span",), spans)
    if selection.prefix is not None:
        kept &= _holds(table, ("prefix",), (selection.prefix,))
    if selection.worker is not None:
        kept &= _holds(table, WORKERS, (selection.worker,))
    return kept


def _holds(table: Table, columns: Iterable[str], texts: tuple[str, ...]) -> Array:
    """Which rows have one of the texts in one of the columns; all of them where the table has no such column."""
    held = [where(table.strings(column), *texts) for column in columns if _is_text(table, column)]
    result: Array = np.logical_or.reduce(held) if held else np.ones(table.rows, dtype=bool)
    return result


def _is_text(table: Table, column: str) -> bool:
    # Tables of which only some columns are meant: profiles.source says which sampler, not which worker.
    if table.name == "profiles" and column == "source":
        return False
    return any(c.name == column and c.kind == "str" for c in table.definition.columns)
