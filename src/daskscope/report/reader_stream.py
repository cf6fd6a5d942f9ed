"""Executions and their dependencies from the task stream of a report: what ``report/stream.py`` laid out, the other way round.

Starts come back to a tick, durations and sizes to three digits, keys exactly. Which worker a transfer came from, and labels, are
not in a stream.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskscope.analysis.grouping import combine
from daskscope.model.table import Array, Lists, Strings, Table, Values, empty_values, object_array
from daskscope.model.tables import TABLES
from daskscope.report.blocks import from_zigzag
from daskscope.report.keys import GAP, MOST_NUMBERS
from daskscope.report.page import Page, size, text
from daskscope.wire.decode_columns import is_int64

#: More than any report has (``MOST_TASKS`` of the stream, and a few intervals each): at most 600 MB while it is read.
MOST_TASKS = 2**21
MOST_BARS = 2**23
MOST_EDGES = 2**22
#: The year 2255, as everywhere.
LATEST = 2**53


@dataclass(frozen=True)
class _Bars:
    starts: Array
    stops: Array
    actions: Array
    lanes: Array


def executions(page: Page, groups: Table) -> tuple[Table, Array]:
    """The tasks in the order in which they stopped, and the row of each number of the stream; ``groups`` tells their spans."""
    stream = page.report["stream"]
    columns, count = stream["columns"], size(stream["tasks"], MOST_TASKS)
    bars = _bars(page, stream)
    done = bars.actions == 0
    if int(done.sum()) != count:
        raise ValueError("its stream has another number of tasks than it claims")
    order = np.argsort(bars.stops[done], kind="stable")
    rows = np.empty(count, dtype=np.int64)
    rows[order] = np.arange(count)

    def coded(name: str, texts: Sequence[str]) -> Strings:
        return _coded(page.numbers(columns[name], count, len(texts))[order], texts)

    tick, starts = size(stream["tick_us"], LATEST), bars.starts[done][order]
    wait, queue = (page.numbers(columns[name], count, LATEST)[order] for name in ("wait", "queue"))
    # A wait of no ticks is one nobody measured, or one shorter than a tick; only time in the queue tells them apart.
    assigned = np.where((wait > 0) | (queue > 0), np.maximum(starts - wait * tick, 0), 0)
    prefix = coded("prefix", _texts(page, "prefixes", "prefix"))
    computation = coded("computation", ["", *_texts(page, "computations", "computation")])
    keys = _keys(page, stream, count)[order]
    group = Strings.of(list(map(_group, keys.tolist(), prefix.to_numpy().tolist())))
    workers = _texts(page, "workers", "worker") or [""]
    lanes = [(size(lane["worker"], len(workers) - 1), _thread(lane["thread"])) for lane in stream["lanes"]]
    ran_on = bars.lanes[done][order]
    made: dict[str, Values] = {
        **{column.name: empty_values(column.kind, count) for column in TABLES["tasks"].columns},
        "id": np.arange(count),
        "key": Strings.from_texts(keys),
        "group": group,
        "prefix": prefix,
        "span": _spans(computation, group, groups),
        "computation": computation,
        "worker": _coded(np.array([worker for worker, _ in lanes], dtype=np.int64)[ran_on], workers),
        "thread": np.array([thread for _, thread in lanes], dtype=np.int64)[ran_on],
        "queued_us": np.where(queue > 0, np.maximum(assigned - queue * tick, 0), 0),
        "assigned_us": assigned,
        "start_us": starts,
        "stop_us": bars.stops[done][order],
        "nbytes": page.numbers(columns["nbytes"], count)[order],
        "type": coded("type", list(map(text, stream["types"]))),
        "status": coded("status", list(map(text, stream["statuses"]))),
        **_intervals(page, stream, bars, done, rows),
    }
    return Table(TABLES["tasks"], made), rows


def dependencies(page: Page, tasks: Table, rows: Array) -> Table:
    """The edges between tasks of the stream."""
    edges = page.report["edges"]
    count = size(edges["rows"], MOST_EDGES)
    dependents = np.cumsum(page.numbers(edges["tasks"], count, MOST_TASKS))
    inputs = dependents - from_zigzag(page.numbers(edges["dependencies"], count, 2 * MOST_TASKS))
    if count and not (inputs.min() >= 0 and max(inputs.max(), dependents.max()) < len(rows)):
        raise ValueError("its edges name tasks that are not there")
    needed = rows[dependents]
    made = {"task": needed, "dependency": rows[inputs], "seen_us": tasks["stop_us"][needed]}
    return Table(TABLES["edges"], made)


def _bars(page: Page, stream: Any) -> _Bars:
    count, start, tick = size(stream["bars"], MOST_BARS), size(page.report["start_us"], LATEST), size(stream["tick_us"])
    if not 0 < tick <= LATEST:
        raise ValueError("its ticks have no length")
    counts = np.array([size(lane["count"], count) for lane in stream["lanes"]], dtype=np.int64)
    firsts = np.cumsum(counts) - counts
    if int(counts.sum()) != count or firsts.tolist() != [lane["first"] for lane in stream["lanes"]]:
        raise ValueError("its lanes do not have the bars it claims")
    lanes = np.repeat(np.arange(len(counts)), counts)
    durations = page.numbers(stream["columns"]["duration"], count, LATEST)
    gaps = from_zigzag(page.numbers(stream["columns"]["gap"], count, LATEST))
    # As the writer counted: each gap from where a reader of the rounded duration thinks that the bar before ends.
    lengths = np.floor(durations / tick + 0.5).astype(np.int64)
    ends = np.cumsum(gaps + lengths)
    before = np.concatenate(([0], ends))[firsts]
    begins = ends - lengths - before[lanes]
    if count and not (begins.min() >= 0 and begins.max() <= LATEST // tick):
        raise ValueError("its bars are at impossible times")
    starts = start + begins * tick
    actions = page.numbers(stream["columns"]["action"], count, len(stream["actions"]))
    return _Bars(starts, starts + durations, actions, lanes)


def _intervals(page: Page, stream: Any, bars: _Bars, done: Array, rows: Array) -> dict[str, Values]:
    """What executions did besides computing; ``rows`` has the row of each task."""
    others = np.flatnonzero(~done)
    ahead = from_zigzag(page.numbers(stream["columns"]["owner"], len(others), 2 * MOST_TASKS))
    owners = np.cumsum(done)[others] + ahead
    if len(owners) and not (owners.min() >= 0 and owners.max() < len(rows)):
        raise ValueError("its bars belong to tasks that are not there")
    order = np.argsort(rows[owners], kind="stable")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(rows[owners], minlength=len(rows))))).astype(np.int64)
    mine = others[order]
    return {
        "interval_action": Lists(offsets, _coded(bars.actions[mine], list(map(text, stream["actions"])))),
        "interval_start_us": Lists(offsets, bars.starts[mine]),
        "interval_stop_us": Lists(offsets, bars.stops[mine]),
        "interval_source": Lists(offsets, _coded(np.zeros(len(mine), dtype=np.int64), [""])),
    }


def _keys(page: Page, stream: Any, count: int) -> Array:
    """Keys in the order of the stream: lines, or templates with their numbers put in."""
    columns, templates = stream["columns"], list(map(text, stream["templates"]))
    if not templates:
        return object_array(list(map(_one_key, page.lines(columns["key"], count))))
    numbers = [page.numbers(columns[f"number{i}"], count) for i in range(MOST_NUMBERS) if f"number{i}" in columns]
    which = page.numbers(columns["template"] if "template" in columns else columns["prefix"], count, len(templates))
    keys = np.empty(count, dtype=object)
    order = np.argsort(which, kind="stable")
    edges = np.searchsorted(which[order], np.arange(len(templates) + 1)).tolist()
    for template, first, stop in zip(templates, edges[:-1], edges[1:], strict=True):
        if first < stop:
            mine, gaps = order[first:stop], template.count(GAP)
            if gaps > len(numbers):
                raise ValueError("its keys lack their numbers")
            made = template.replace("%", "%%").replace(GAP, "%d")
            parts = zip(*(column[mine].tolist() for column in numbers[:gaps]), strict=True)
            keys[mine] = [made % part for part in parts] if gaps else template
    return keys


def _one_key(line: str) -> str:
    """A line, or what it says as JSON: only keys with line breaks are written so."""
    if line.startswith('"') and "\\" in line:
        try:
            key = json.loads(line)
        except ValueError:
            return line
        return key if isinstance(key, str) and ("\n" in key or "\r" in key) else line
    return line


def _group(key: str, prefix: str) -> str:
    """As Dask names groups: tuples by their first part, others by what they have in common with their prefix."""
    return key.split(",", 1)[0].strip("()\"'") if key.startswith("(") else prefix


def _spans(computation: Strings, group: Strings, groups: Table) -> Strings:
    names = ("computation", "group", "span")
    known = {(c, g): span for c, g, span in zip(*(groups[name].tolist() for name in names), strict=True)}
    codes, labels = combine([computation, group])
    return _coded(codes, [known.get((c, g), "") for c, g in labels])


def _coded(codes: Array, texts: Sequence[str]) -> Strings:
    """Positions in a list in which a text may stand twice."""
    index: dict[str, int] = {}
    place = np.array([index.setdefault(text, len(index)) for text in texts], dtype=np.int32)
    return Strings(place[codes], object_array(list(index)))


def _texts(page: Page, records: str, name: str) -> list[str]:
    return [text(record[name]) for record in page.report[records]]


def _thread(value: Any) -> int:
    if not is_int64(value):
        raise ValueError("it has a thread without a number")
    return int(value)
