"""Read executions and dependencies from the task stream of a report: the inverse of ``report/stream.py``.

Starts are exact to a tick, durations and sizes to three digits; keys are exact. Sources of transfers and labels are not in a
stream.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskscope.analysis.columns.bins import LATEST
from daskscope.analysis.columns.grouping import combine
from daskscope.model.table import Array, Lists, Strings, Table, Values, empty_values, object_array
from daskscope.model.tables import TABLES
from daskscope.report.blocks import from_zigzag
from daskscope.report.keys import GAP, MAX_NUMBERS
from daskscope.report.page import Page, check_int, check_text
from daskscope.wire.decode_columns import is_int64

#: More than any report has (``MAX_TASKS`` of the stream, and a few intervals each); reading takes at most 600 MB.
MAX_TASKS = 2**21
MAX_BARS = 2**23
MAX_EDGES = 2**22


@dataclass(frozen=True)
class _Bars:
    starts: Array
    stops: Array
    actions: Array
    lanes: Array


def executions(page: Page, groups: Table) -> tuple[Table, Array]:
    """Return the tasks in the order in which they stopped, and the row of each task of the stream.

    ``groups`` is the table with the span of each task group.
    """
    stream = page.report["stream"]
    columns, count = stream["columns"], check_int(stream["tasks"], MAX_TASKS)
    bars = _bars(page, stream)
    done = bars.actions == 0
    if int(done.sum()) != count:
        raise ValueError("its stream has the wrong number of tasks")
    order = np.argsort(bars.stops[done], kind="stable")
    rows = np.empty(count, dtype=np.int64)
    rows[order] = np.arange(count)

    def coded(name: str, texts: Sequence[str]) -> Strings:
        return _coded(page.numbers(columns[name], count, len(texts))[order], texts)

    tick, starts = check_int(stream["tick_us"], LATEST), bars.starts[done][order]
    wait, queue = (page.numbers(columns[name], count, LATEST)[order] for name in ("wait", "queue"))
    # A wait of 0 ticks was not measured or is shorter than a tick; a task with time in the queue was measured.
    assigned = np.where((wait > 0) | (queue > 0), np.maximum(starts - wait * tick, 0), 0)
    prefix = coded("prefix", _texts(page, "prefixes", "prefix"))
    computation = coded("computation", ["", *_texts(page, "computations", "computation")])
    keys = _keys(page, stream, count)[order]
    group = Strings.of(list(map(_group, keys.tolist(), prefix.to_numpy().tolist())))
    workers = _texts(page, "workers", "worker") or [""]
    lanes = [(check_int(lane["worker"], len(workers) - 1), _thread(lane["thread"])) for lane in stream["lanes"]]
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
        "type": coded("type", list(map(check_text, stream["types"]))),
        "status": coded("status", list(map(check_text, stream["statuses"]))),
        **_intervals(page, stream, bars, done, rows),
    }
    return Table(TABLES["tasks"], made), rows


def dependencies(page: Page, tasks: Table, rows: Array) -> Table:
    """Return the edges between tasks of the stream."""
    edges = page.report["edges"]
    count = check_int(edges["rows"], MAX_EDGES)
    dependents = np.cumsum(page.numbers(edges["tasks"], count, MAX_TASKS))
    inputs = dependents - from_zigzag(page.numbers(edges["dependencies"], count, 2 * MAX_TASKS))
    if count and not (inputs.min() >= 0 and max(inputs.max(), dependents.max()) < len(rows)):
        raise ValueError("its edges refer to missing tasks")
    needed = rows[dependents]
    made = {"task": needed, "dependency": rows[inputs], "seen_us": tasks["stop_us"][needed]}
    return Table(TABLES["edges"], made)


def _bars(page: Page, stream: Any) -> _Bars:
    count, start, tick = (
        check_int(stream["bars"], MAX_BARS),
        check_int(page.report["start_us"], LATEST),
        check_int(stream["tick_us"]),
    )
    if not 0 < tick <= LATEST:
        raise ValueError("its ticks have an invalid length")
    counts = np.array([check_int(lane["count"], count) for lane in stream["lanes"]], dtype=np.int64)
    firsts = np.cumsum(counts) - counts
    if int(counts.sum()) != count or firsts.tolist() != [lane["first"] for lane in stream["lanes"]]:
        raise ValueError("its lanes have the wrong number of bars")
    lanes = np.repeat(np.arange(len(counts)), counts)
    durations = page.numbers(stream["columns"]["duration"], count, LATEST)
    gaps = from_zigzag(page.numbers(stream["columns"]["gap"], count, LATEST))
    # Like the writer, count each gap from the rounded end of the previous bar.
    lengths = np.floor(durations / tick + 0.5).astype(np.int64)
    ends = np.cumsum(gaps + lengths)
    before = np.concatenate(([0], ends))[firsts]
    begins = ends - lengths - before[lanes]
    if count and not (begins.min() >= 0 and begins.max() <= LATEST // tick):
        raise ValueError("its bars have invalid times")
    starts = start + begins * tick
    actions = page.numbers(stream["columns"]["action"], count, len(stream["actions"]))
    return _Bars(starts, starts + durations, actions, lanes)


def _intervals(page: Page, stream: Any, bars: _Bars, done: Array, rows: Array) -> dict[str, Values]:
    """Return the activities besides computing; ``rows`` has the row of each task."""
    others = np.flatnonzero(~done)
    ahead = from_zigzag(page.numbers(stream["columns"]["owner"], len(others), 2 * MAX_TASKS))
    owners = np.cumsum(done)[others] + ahead
    if len(owners) and not (owners.min() >= 0 and owners.max() < len(rows)):
        raise ValueError("its bars belong to missing tasks")
    order = np.argsort(rows[owners], kind="stable")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(rows[owners], minlength=len(rows))))).astype(np.int64)
    mine = others[order]
    return {
        "interval_action": Lists(offsets, _coded(bars.actions[mine], list(map(check_text, stream["actions"])))),
        "interval_start_us": Lists(offsets, bars.starts[mine]),
        "interval_stop_us": Lists(offsets, bars.stops[mine]),
        "interval_source": Lists(offsets, _coded(np.zeros(len(mine), dtype=np.int64), [""])),
    }


def _keys(page: Page, stream: Any, count: int) -> Array:
    """Return keys in the order of the stream: lines, or templates with their numbers filled in."""
    columns, templates = stream["columns"], list(map(check_text, stream["templates"]))
    if not templates:
        return object_array(list(map(_one_key, page.lines(columns["key"], count))))
    numbers = [page.numbers(columns[f"number{i}"], count) for i in range(MAX_NUMBERS) if f"number{i}" in columns]
    which = page.numbers(columns["template"] if "template" in columns else columns["prefix"], count, len(templates))
    keys = np.empty(count, dtype=object)
    order = np.argsort(which, kind="stable")
    edges = np.searchsorted(which[order], np.arange(len(templates) + 1)).tolist()
    for template, first, stop in zip(templates, edges[:-1], edges[1:], strict=True):
        if first < stop:
            mine, gaps = order[first:stop], template.count(GAP)
            if gaps > len(numbers):
                raise ValueError("numbers of its keys are missing")
            made = template.replace("%", "%%").replace(GAP, "%d")
            parts = zip(*(column[mine].tolist() for column in numbers[:gaps]), strict=True)
            keys[mine] = [made % part for part in parts] if gaps else template
    return keys


def _one_key(line: str) -> str:
    """Return the key of a line; a key with line breaks is written as JSON."""
    if line.startswith('"') and "\\" in line:
        try:
            key = json.loads(line)
        except ValueError:
            return line
        return key if isinstance(key, str) and ("\n" in key or "\r" in key) else line
    return line


def _group(key: str, prefix: str) -> str:
    """Return the group of a key: the first element of a tuple, else the prefix."""
    return key.split(",", 1)[0].strip("()\"'") if key.startswith("(") else prefix


def _spans(computation: Strings, group: Strings, groups: Table) -> Strings:
    known = {(c, g): span for c, g, span in groups.records("computation", "group", "span")}
    codes, labels = combine([computation, group])
    return _coded(codes, [known.get((c, g), "") for c, g in labels])


def _coded(codes: Array, texts: Sequence[str]) -> Strings:
    """Return a string column from positions in a list of texts, which may have duplicates."""
    index: dict[str, int] = {}
    position = np.array([index.setdefault(text, len(index)) for text in texts], dtype=np.int32)
    return Strings(position[codes], object_array(list(index)))


def _texts(page: Page, records: str, name: str) -> list[str]:
    return [check_text(record[name]) for record in page.report[records]]


def _thread(value: Any) -> int:
    if not is_int64(value):
        raise ValueError("it has an invalid thread")
    return int(value)
