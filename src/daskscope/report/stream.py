"""Encode the task stream of a report: every execution and its other activities, as bars on one lane per thread.

Bars are sorted by lane and start. Each is the gap since the previous bar and a duration: 4 to 5 bytes. Above ``MAX_TASKS`` the
report has all failures, the longest executions, an even sample of the rest, and the total number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.columns.grouping import renumber, steps
from daskscope.analysis.columns.intervals import task_intervals
from daskscope.analysis.executions import find_ids, recomputed_rows
from daskscope.model.recording import Array, Recording, Strings, Table
from daskscope.report.blocks import Blocks, from_mini, mini, zigzag
from daskscope.report.key_templates import encode_key_templates
from daskscope.report.schema import Block, Edges, Lane, Stream

#: A report of this size has about 18 MB and opens within 3 s.
MAX_TASKS = 1_500_000
MAX_EDGES = 3_000_000
#: Executions of one worker whose thread is not known; more than these keep a lane of their own.
MAX_PLACED = 200
#: Resolution of the time axis: 1,000 times the resolution of a screen. Each further bit costs 12 kB per 100,000 tasks.
MAX_TICKS = 2**22


@dataclass(frozen=True)
class Placed:
    """The stream, and the number in the stream of each row of ``tasks``; -1 if it was left out."""

    stream: Stream
    numbers: Array


def stream(
    recording: Recording, start_us: int, stop_us: int, prefixes: list[str], workers: list[str], blocks: Blocks
) -> Placed:
    """Encode the executions of a recording between two times; prefixes and workers are coded by their position."""
    tasks = recording["tasks"]
    kept = sample(tasks, MAX_TASKS)
    tick = max(1, -(-(stop_us - start_us) // MAX_TICKS))
    lanes, lane_of_row = _lanes(tasks, kept, workers, _thread_counts(recording["workers"]))
    bars = _bars(tasks, kept, lane_of_row)
    # Of two bars that begin together, an activity besides computing comes first.
    order = np.lexsort((bars.actions == 0, bars.starts))
    # Numpy radix-sorts 16-bit integers: 20 times faster than wider ones.
    narrow = bars.lanes.astype(np.int16) if len(lanes) < 2**15 else bars.lanes
    order = order[np.argsort(narrow[order], kind="stable")]
    names, count = bars.names, len(order)
    begin, end, durations = _ticks(bars, order, start_us, stop_us, tick)
    lane, action, row = bars.lanes[order], bars.actions[order], bars.rows[order]
    del bars, order, narrow, lane_of_row
    executions = action == 0
    numbers = np.full(tasks.rows, -1, dtype=np.int32)
    numbers[row[executions]] = np.arange(int(executions.sum()))
    in_order = row[executions]
    before = np.cumsum(executions)[~executions]
    columns = {
        "gap": blocks.codes("stream.gap", zigzag(begin - _ends_before(lane, end))),
        "duration": blocks.column("stream.duration", durations, "mini"),
        "action": blocks.codes("stream.action", action),
        "owner": blocks.codes("stream.owner", zigzag(numbers[row[~executions]] - before)),
    }
    # The bars of five million tasks take 100 MB.
    del row, action, before, begin, durations, end
    # The page draws work whose result was lost later like failed work. Readers of the file do not trust a guessed thread.
    marks = {"lost": recomputed_rows(recording)[in_order], "guessed": tasks["thread"][in_order] == 0}
    columns |= {
        name: blocks.codes(f"stream.{name}", mark.astype(np.uint8)) for name, mark in marks.items() if mark.any()
    }
    columns |= _task_columns(tasks, in_order, tick, prefixes, _positions(recording), blocks)
    prefix = _recode(tasks.strings("prefix"), _rank(prefixes), in_order)
    templates, key_columns = encode_key_templates(*tasks.strings("key").packed(in_order), prefix, blocks)
    return Placed(
        {
            "tick_us": int(tick),
            "lanes": _lane_records(lanes, lane, executions),
            "actions": ["compute", *names],
            "statuses": _texts(tasks.strings("status")),
            "types": _texts(tasks.strings("type")),
            "bars": count,
            "tasks": len(in_order),
            "of": tasks.rows,
            "templates": templates,
            "columns": {**columns, **key_columns},
        },
        numbers,
    )


def edges(recording: Recording, numbers: Array, blocks: Blocks) -> Edges:
    """Return the dependencies between tasks of the stream."""
    table = recording["edges"]
    tasks, dependencies = _positions_of(table, recording["tasks"]["id"], numbers)
    known = np.flatnonzero((tasks >= 0) & (dependencies >= 0))
    known = known[np.argsort(tasks[known], kind="stable")][:MAX_EDGES]
    tasks, dependencies = tasks[known], dependencies[known]
    return {
        "tasks": blocks.codes("edges.tasks", np.diff(tasks, prepend=0)),
        "dependencies": blocks.codes("edges.dependencies", zigzag(tasks - dependencies)),
        "rows": len(known),
        "of": table.rows,
    }


def sample(tasks: Table, limit: int) -> Array:
    """Return all rows, or ``limit`` of them: failures, the longest executions, and an even sample of the rest."""
    if tasks.rows <= limit:
        return np.arange(tasks.rows)
    # The most important first.
    order = (tasks["start_us"] - tasks["stop_us"]).astype(np.float64)
    order[tasks.strings("status").codes != _code(tasks.strings("status"), "ok")] = -np.inf
    kept = np.zeros(tasks.rows, dtype=bool)
    kept[np.argpartition(order, limit // 2)[: limit // 2]] = True
    del order
    rest = np.flatnonzero(~kept)
    kept[rest[np.linspace(0, len(rest) - 1, limit - limit // 2).astype(np.int64)]] = True
    return np.flatnonzero(kept)


@dataclass(frozen=True)
class _Bars:
    rows: Array
    lanes: Array
    starts: Array
    stops: Array
    actions: Array
    names: list[str]


def _bars(tasks: Table, kept: Array, lane_of_row: Array) -> _Bars:
    """Return the executions, followed by their other activities."""
    owners, names, starts, stops = task_intervals(tasks, kept)
    rows = np.concatenate([kept, owners])
    return _Bars(
        rows,
        lane_of_row[rows],
        np.concatenate([tasks["start_us"][kept], starts]),
        np.concatenate([tasks["stop_us"][kept], stops]),
        np.concatenate([np.zeros(len(kept), dtype=np.int32), names.codes.astype(np.int32) + 1]),
        _texts(names),
    )


def _ticks(bars: _Bars, order: Array, start_us: int, stop_us: int, tick: int) -> tuple[Array, Array, Array]:
    """Return the beginning and the end of bars in ticks, in order, and their durations as ``mini``.

    The reader knows only the rounded duration, so the end is rounded, too.
    """
    begin, end = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
    durations = np.empty(len(order), dtype=np.uint16)
    for some in steps(len(order)):
        starts = np.clip(bars.starts[order[some]], start_us, stop_us)
        begin[some] = (starts - start_us) // tick
        durations[some] = mini(np.maximum(np.clip(bars.stops[order[some]], start_us, stop_us) - starts, 0))
        end[some] = begin[some] + np.floor(from_mini(durations[some]) / tick + 0.5).astype(np.int64)
    return begin, end, durations


def _lanes(tasks: Table, kept: Array, workers: list[str], counts: dict[str, int]) -> tuple[Array, Array]:
    """Return distinct (worker, thread) pairs in the order of the workers, and the lane of every row."""
    codes = _recode(tasks.strings("worker"), _rank(workers), kept)
    thread = tasks["thread"][kept].copy()
    for worker in np.unique(codes[thread == 0]):
        rows = np.flatnonzero(codes == worker)
        count = counts.get(workers[worker], 1) if workers else 1
        thread[rows] = _placed(thread[rows], tasks["start_us"][kept[rows]], tasks["stop_us"][kept[rows]], count)
    threads = np.unique(thread)
    width = max(1, len(threads))
    # Numbers sort ten times faster than pairs.
    inverse, pairs = renumber(codes * width + np.searchsorted(threads, thread), max(1, len(workers)) * width)
    lanes = np.stack([pairs // width, threads[pairs % width]], axis=1)
    lane_of_row = np.zeros(tasks.rows, dtype=np.int32)
    lane_of_row[kept] = inverse
    return lanes, lane_of_row


def _placed(thread: Array, start: Array, stop: Array, count: int) -> Array:
    """Return the threads of the executions of a worker with ``count`` threads; unknown ones (0) go where nothing else ran.

    A killed execution leaves no thread behind. In a lane of its own, its worker would have one thread too many.
    """
    unknown = np.flatnonzero(thread == 0)
    if len(unknown) > MAX_PLACED:
        return thread
    known = np.unique(thread[thread != 0]).tolist()
    # Threads that nothing else names get negative numbers.
    more = max(0, min(count - len(known), len(unknown)))
    lanes = known + list(range(-1, -1 - more, -1)) or [0]
    placed = thread.copy()
    for row in unknown[np.argsort(start[unknown], kind="stable")]:
        before = (placed != 0) & (start < stop[row])
        last = [int(stop[before & (placed == number)].max(initial=0)) for number in lanes]
        placed[row] = lanes[int(np.argmin(last))]
    return placed


def _thread_counts(workers: Table) -> dict[str, int]:
    return dict(zip(workers["worker"].tolist(), workers["nthreads"].tolist(), strict=True))


def _lane_records(lanes: Array, lane: Array, executions: Array) -> list[Lane]:
    bars = np.bincount(lane, minlength=len(lanes))
    tasks = np.bincount(lane[executions], minlength=len(lanes))
    firsts = np.cumsum(bars) - bars
    return [
        {"worker": int(worker), "thread": int(thread), "first": int(first), "count": int(count), "tasks": int(n)}
        for (worker, thread), first, count, n in zip(lanes, firsts, bars, tasks, strict=True)
    ]


def _ends_before(lane: Array, end: Array) -> Array:
    """Return the end of the previous bar in the same lane; 0 for the first."""
    before = np.concatenate([[0], end[:-1]]) if len(end) else end
    first = np.concatenate([[True], lane[1:] != lane[:-1]]) if len(end) else np.zeros(0, dtype=bool)
    result: Array = np.where(first, 0, before)
    return result


def _task_columns(
    tasks: Table, rows: Array, tick: int, prefixes: list[str], computations: dict[str, int], blocks: Blocks
) -> dict[str, Block]:
    start, assigned, queued = (tasks[name][rows] for name in ("start_us", "assigned_us", "queued_us"))
    known = assigned > 0
    waits = np.where(known, np.clip(start - assigned, 0, None), 0) // tick
    queues = np.where(known & (queued > 0), np.clip(assigned - queued, 0, None), 0) // tick
    return {
        "prefix": blocks.codes("stream.prefix", _recode(tasks.strings("prefix"), _rank(prefixes), rows)),
        "status": blocks.codes("stream.status", tasks.strings("status").codes[rows]),
        "type": blocks.codes("stream.type", tasks.strings("type").codes[rows]),
        "computation": blocks.codes("stream.computation", _recode(tasks.strings("computation"), computations, rows)),
        "nbytes": blocks.mini("stream.nbytes", tasks["nbytes"][rows]),
        "wait": blocks.codes("stream.wait", waits),
        "queue": blocks.codes("stream.queue", queues),
    }


def _positions(recording: Recording) -> dict[str, int]:
    """Return the position of each computation in the report plus one; the report orders them by start."""
    table = recording["computations"]
    order = sorted(zip(table["start_us"].tolist(), table["computation"].tolist(), strict=True))
    return {computation: position + 1 for position, (_, computation) in enumerate(order)}


def _rank(names: list[str]) -> dict[str, int]:
    """Return the first position of each name; the address of a worker may be reused."""
    return {name: position for position, name in reversed(list(enumerate(names)))}


def _recode(column: Strings, positions: dict[str, int], rows: Array) -> Array:
    """Return the position of the text of each of the given rows."""
    by_code = np.array([positions.get(str(value), 0) for value in column.values], dtype=np.int64)
    result: Array = by_code[column.codes[rows]] if len(by_code) else np.zeros(len(rows), dtype=np.int64)
    return result


def _positions_of(edges: Table, ids: Array, numbers: Array) -> tuple[Array, Array]:
    """Return the numbers in the stream of dependents and dependencies; -1 if missing."""
    if not edges.rows:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    find = find_ids(ids)

    def position(wanted: Array) -> Array:
        if not len(ids):
            return np.full(len(wanted), -1, dtype=np.int64)
        rows, known = find(wanted)
        return np.where(known, numbers[rows], -1)

    return position(edges["task"]), position(edges["dependency"])


def _texts(column: Strings) -> list[str]:
    return [str(value) for value in column.values]


def _code(column: Strings, value: str) -> int:
    return next((code for code, text in enumerate(column.values) if text == value), -1)
