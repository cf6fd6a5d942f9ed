"""Read a daskscope report back into a recording.

A report has all tasks, dependencies and stacks, but only the first
rows of other tables, with lists and long texts cut. The completeness of the recording shows it: missing rows are counted
against the original recording.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from daskscope.analysis.columns.bins import LATEST
from daskscope.analysis.columns.grouping import combine
from daskscope.errors import NewerFormat, RecordingError
from daskscope.model.recording import (
    Array,
    Completeness,
    Lists,
    Recording,
    Strings,
    Table,
    Values,
    empty_values,
    object_array,
)
from daskscope.model.tables import TABLES
from daskscope.report.blocks import from_zigzag
from daskscope.report.key_templates import GAP, MAX_NUMBERS
from daskscope.report.read_page import Page, check_int, check_text, find_page, parse_json
from daskscope.report.schema import SCHEMA
from daskscope.report.tables import MAX_ROWS
from daskscope.wire.decode_columns import is_int64

# The ``profiles`` table is read from the flame graph of a report, which has every sample by the bin in which it was taken.
#
# The report's own ``profiles`` table has only the first rows, with stacks cut to 2,000 characters.

KEYS = ("kind", "prefix", "span", "worker")
MAX_NODES = 2**20
MAX_FLAME_ROWS = 2**21
#: Frames of all stacks: rows repeat their stack, so a small page could expand to more than fits into memory.
MAX_FRAMES = 2**24


def samples(page: Page) -> Table:
    """Return the profiles: one row per stack, bin, kind, prefix, span and worker."""
    flame, bins = page.report["flame"], page.report["bins"]
    cube = flame["cube"]
    count = check_int(cube["rows"], MAX_FLAME_ROWS)
    frames = [
        f"{check_text(file)}\t{check_text(function)}\t{check_int(line)}" for file, function, line, _ in flame["frames"]
    ]
    columns = cube["columns"]
    width, at = check_int(bins["width_us"], 2**53), page.numbers(columns["bin"], count, check_int(bins["count"], 2**20))
    starts = check_int(page.report["start_us"], 2**53) + at * width
    made: dict[str, Values] = {
        **{column.name: empty_values(column.kind, count) for column in TABLES["profiles"].columns},
        "start_us": starts,
        "stop_us": starts + width,
        **{name: _coded_texts(page, columns[name], count, cube["keys"][name]) for name in KEYS},
        "stack": _stacks(page, flame, columns["stack"], count, frames),
        "count": page.numbers(columns["count"], count),
    }
    return Table(TABLES["profiles"], made)


def _stacks(page: Page, flame: Any, ends: Any, count: int, frames: list[str]) -> Lists:
    nodes = check_int(flame["nodes"]["length"], MAX_NODES)
    frame = page.numbers(flame["nodes"], nodes, len(frames))
    parents = page.numbers(flame["parents"], nodes, nodes + 1) - 1
    if (parents >= np.arange(nodes)).any():
        raise ValueError("its stacks are not a tree")
    node = page.numbers(ends, count, nodes)
    depths = _depths(parents)[node]
    offsets = np.concatenate(([0], np.cumsum(depths))).astype(np.int64)
    if int(offsets[-1]) > MAX_FRAMES:
        raise ValueError("its stacks are too large")
    flat = np.zeros(int(offsets[-1]), dtype=np.int32)
    # From the innermost frame outwards, all stacks at once, until each reaches its root.
    rows, last = np.arange(count), offsets[1:] - 1
    while len(rows):
        flat[last] = frame[node]
        node = parents[node]
        deeper = node >= 0
        rows, node, last = rows[deeper], node[deeper], last[deeper] - 1
    return Lists(offsets, Strings(flat, object_array(frames)))


def _depths(parents: Array) -> Array:
    """Return the number of frames of the stack that ends at each node; parents come before their children."""
    depths = [0] * (len(parents) + 1)
    for node, parent in enumerate(parents.tolist()):
        # Parent -1 is the last element, which stays 0.
        depths[node] = depths[parent] + 1
    return np.array(depths[:-1], dtype=np.int64)


def _coded_texts(page: Page, block: Any, count: int, texts: Any) -> Strings:
    values = list(map(check_text, texts))
    return Strings(page.numbers(block, count, len(values)).astype(np.int32), object_array(values))


PARTIAL = "read from a report, which rounds durations to three digits"
#: Length of the quoted completeness statement of a report.
MAX_STATEMENT = 500
#: Exceptions that invalid pages cause.
INVALID = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)


def read_report(path: Path) -> Recording:
    """Return the recording in a page."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            page = find_page(data)
            _check_version(path, page.report)
            return _recording(page, str(path))
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}. Give the path of a report.") from None
    except INVALID as error:
        why = f"{error}" if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise RecordingError(
            f"{path} is a damaged or incomplete report ({why[:200]}). Copy it again from its source, or give the original "
            "recording."
        ) from None


def _check_version(path: Path, report: dict[str, Any]) -> None:
    if check_int(report["schema"]) > SCHEMA:
        raise NewerFormat(
            f"{path} was written by a newer daskscope (report format {report['schema']}, this one reads {SCHEMA}). "
            "Upgrade with: pip install --upgrade daskscope"
        )


def _recording(page: Page, source: str) -> Recording:
    records = {check_text(record["name"]): record for record in page.report["tables"]}
    elsewhere = ("tasks", "edges", "profiles")
    # In the order of TABLES, without unknown tables of later versions.
    tables = {name: _table(page, records[name]) for name in TABLES if name in records and name not in elsewhere}
    tasks, rows = executions(page, tables.get("groups", Table.empty("groups")))
    tables |= {"tasks": tasks, "edges": dependencies(page, tasks, rows), "profiles": samples(page)}
    tables = {name: tables[name] for name in TABLES if name in tables and tables[name].rows}
    of = {name: check_int(record["of"]) for name, record in records.items()} | {
        "tasks": check_int(page.report["stream"]["of"]),
        "edges": check_int(page.report["edges"]["of"]),
        # All samples are in the flame graph.
        "profiles": 0,
    }
    completeness = {}
    for name in TABLES:
        held = tables[name].rows if name in tables else 0
        lost = check_int(records[name]["dropped"]) if name in records else 0
        if held or lost:
            completeness[name] = Completeness(held, missing=max(0, of.get(name, 0) - held) + lost)
    return Recording(source, tables, completeness, partial=_partial(page.report))


def _partial(report: dict[str, Any]) -> str:
    if report["complete"] is True:
        return PARTIAL
    return f"{PARTIAL}; the report says: {check_text(report['statement'])[:MAX_STATEMENT].rstrip('.')}"


def _table(page: Page, record: Any) -> Table:
    definition, rows = TABLES[record["name"]], check_int(record["rows"], MAX_ROWS)
    names = [check_text(column["name"]) for column in record["columns"]]
    lines = dict(zip(names, page.lines(record["data"], len(names)), strict=True))
    columns: dict[str, Values] = {}
    for column in definition.columns:
        if column.name in lines:
            columns[column.name] = _values(column.kind, parse_json(lines[column.name].encode()), rows)
        else:
            columns[column.name] = empty_values(column.kind, rows)
    return Table(definition, columns)


def _values(kind: str, cells: Any, rows: int) -> Values:
    """Return a column from the JSON cells that ``report/tables.py`` wrote."""
    if type(cells) is not list or len(cells) != rows:
        raise ValueError("a table has the wrong number of rows")
    if kind == "str":
        return Strings.of(list(map(check_text, cells)))
    if kind == "str[]":
        items = [_items(check_text(cell)) for cell in cells]
        offsets = np.concatenate(([0], np.cumsum([len(item) for item in items]))).astype(np.int64)
        return Lists(offsets, Strings.of([one for item in items for one in item]))
    if kind == "float":
        return np.array([_float(cell) for cell in cells], dtype=np.float64)
    if kind in ("int", "time"):
        return np.array([_int(cell) for cell in cells], dtype=np.int64)
    return empty_values(kind, rows)


def _items(joined: str) -> list[str]:
    """Split a list that was written as one text, except at commas inside the parentheses of tuple keys."""
    items: list[str] = []
    open_, start = 0, 0
    for at, character in enumerate(joined):
        if character == "(":
            open_ += 1
        elif character == ")":
            open_ = max(0, open_ - 1)
        elif character == "," and not open_ and joined[at + 1 : at + 2] == " ":
            items.append(joined[start:at])
            start = at + 2
    return [*items, joined[start:]] if joined else []


def _int(value: Any) -> int:
    if not is_int64(value):
        raise ValueError("a table has an invalid whole number")
    return int(value)


def _float(value: Any) -> float:
    if value is None:
        return float("nan")
    if type(value) not in (int, float):
        raise ValueError("a table has an invalid number")
    return float(value)


# Read executions and dependencies from the task stream of a report: the inverse of ``report/stream.py``.
#
# Starts are exact to a tick, durations and sizes to three digits; keys are exact. Sources of transfers and labels are not in a
# stream.

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
    guessed = (
        page.numbers(columns["guessed"], count)[order] > 0 if "guessed" in columns else np.zeros(count, dtype=bool)
    )
    made: dict[str, Values] = {
        **{column.name: empty_values(column.kind, count) for column in TABLES["tasks"].columns},
        "id": np.arange(count),
        "key": Strings.from_texts(keys),
        "group": group,
        "prefix": prefix,
        "span": _spans(computation, group, groups),
        "computation": computation,
        "worker": _coded(np.array([worker for worker, _ in lanes], dtype=np.int64)[ran_on], workers),
        "thread": np.where(guessed, 0, np.array([thread for _, thread in lanes], dtype=np.int64)[ran_on]),
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
