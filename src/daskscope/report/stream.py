"""The task stream of a report: every execution and what it did besides, as bars on the lanes of threads.

Sorted by lane and start, a bar is the gap since the one before and a length: 4 to 5 bytes. Above ``MOST_TASKS`` the report
keeps all failures, the longest executions, and an even sample of the rest, and says how many there were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from daskscope.model.recording import Recording
from daskscope.model.table import Array, Strings, Table
from daskscope.report.blocks import Blocks, from_mini, mini, zigzag
from daskscope.report.keys import keys
from daskscope.report.schema import Block, Edges, Lane, Stream

#: A report of as many tasks has about 18 MB and is shown within 3 s.
MOST_TASKS = 1_500_000
MOST_EDGES = 3_000_000
#: The axis is cut into at most as many ticks: a screen has a thousandth of them, and every bit is 12 kB of 100,000 tasks.
MOST_TICKS = 2**22


@dataclass(frozen=True)
class Placed:
    """The stream and where each row of the tasks table went: its number in the stream, -1 where it was left out."""

    stream: Stream
    numbers: Array


def stream(
    recording: Recording, start_us: int, stop_us: int, prefixes: list[str], workers: list[str], blocks: Blocks
) -> Placed:
    """Lay out the executions of a recording between two moments; prefixes and workers are coded by their position."""
    tasks = recording["tasks"]
    kept = sample(tasks, MOST_TASKS)
    tick = max(1, -(-(stop_us - start_us) // MOST_TICKS))
    lanes, lane_of_row = _lanes(tasks, kept, workers)
    bars = _bars(tasks, kept, lane_of_row)
    # A bar that begins when another ends comes after it; of two that begin together the movement of data comes first.
    order = np.lexsort((bars.actions == 0, bars.starts))
    # Numpy sorts integers of 16 bits by radix: 20 times faster than wider ones.
    narrow = bars.lanes.astype(np.int16) if len(lanes) < 2**15 else bars.lanes
    order = order[np.argsort(narrow[order], kind="stable")]
    lane, action, row = bars.lanes[order], bars.actions[order], bars.rows[order]
    starts = np.clip(bars.starts[order], start_us, stop_us)
    begin = (starts - start_us) // tick
    durations = from_mini(mini(np.maximum(np.clip(bars.stops[order], start_us, stop_us) - starts, 0)))
    # The reader knows no more than the rounded duration; gaps are counted from where it thinks a bar ends.
    end = begin + np.floor(durations / tick + 0.5).astype(np.int64)
    executions = action == 0
    numbers = np.full(tasks.rows, -1, dtype=np.int64)
    numbers[row[executions]] = np.arange(int(executions.sum()))
    in_order = row[executions]
    before = np.cumsum(executions)[~executions]
    columns = {
        "gap": blocks.codes("stream.gap", zigzag(begin - _ends_before(lane, end))),
        "duration": blocks.mini("stream.duration", durations),
        "action": blocks.codes("stream.action", action),
        "owner": blocks.codes("stream.owner", zigzag(numbers[row[~executions]] - before)),
        **_task_columns(tasks, in_order, tick, prefixes, _positions(recording), blocks),
    }
    prefix = _recode(tasks.strings("prefix"), _rank(prefixes))[in_order]
    templates, key_columns = keys(tasks.strings("key").to_numpy()[in_order], prefix, blocks)
    return Placed(
        {
            "tick_us": int(tick),
            "lanes": _lane_records(lanes, lane, executions),
            "actions": ["compute", *bars.names],
            "statuses": _texts(tasks.strings("status")),
            "types": _texts(tasks.strings("type")),
            "bars": len(order),
            "tasks": len(in_order),
            "of": tasks.rows,
            "templates": templates,
            "columns": {**columns, **key_columns},
        },
        numbers,
    )


def edges(recording: Recording, numbers: Array, blocks: Blocks) -> Edges:
    """The dependencies between tasks of the stream."""
    table, ids = recording["edges"], recording["tasks"]["id"]
    position = _lookup(ids, numbers)
    tasks, dependencies = position(table["task"]), position(table["dependency"])
    known = np.flatnonzero((tasks >= 0) & (dependencies >= 0))
    known = known[np.argsort(tasks[known], kind="stable")][:MOST_EDGES]
    tasks, dependencies = tasks[known], dependencies[known]
    return {
        "tasks": blocks.codes("edges.tasks", np.diff(tasks, prepend=0)),
        "dependencies": blocks.codes("edges.dependencies", zigzag(tasks - dependencies)),
        "rows": len(known),
        "of": table.rows,
    }


def sample(tasks: Table, most: int) -> Array:
    """The rows that are shown: all where there are few, else failures, the longest, and an even part of the rest."""
    rows = np.arange(tasks.rows)
    if tasks.rows <= most:
        return rows
    importance = (tasks["stop_us"] - tasks["start_us"]).astype(np.float64)
    importance[tasks.strings("status").codes != _code(tasks.strings("status"), "ok")] = np.inf
    longest = np.argpartition(-importance, most // 2)[: most // 2]
    rest = np.setdiff1d(rows, longest, assume_unique=True)
    even = rest[np.linspace(0, len(rest) - 1, most - most // 2).astype(np.int64)]
    result: Array = np.sort(np.concatenate([longest, even]))
    return result


@dataclass(frozen=True)
class _Bars:
    rows: Array
    lanes: Array
    starts: Array
    stops: Array
    actions: Array
    names: list[str]


def _bars(tasks: Table, kept: Array, lane_of_row: Array) -> _Bars:
    """The executions, then their intervals of other kinds."""
    actions, begun, ended = (tasks.lists(f"interval_{name}").take(kept) for name in ("action", "start_us", "stop_us"))
    names = actions.flat
    assert isinstance(names, Strings)
    starts, stops, lengths = np.asarray(begun.flat), np.asarray(ended.flat), actions.lengths
    if not (np.array_equal(lengths, begun.lengths) and np.array_equal(lengths, ended.lengths)):
        # No recorder writes columns that disagree, and nobody could tell which interval is whose.
        starts, stops, lengths = starts[:0], stops[:0], np.zeros_like(lengths)
    owners = np.repeat(kept, lengths)
    codes = names.codes[: len(starts)].astype(np.int64)
    rows = np.concatenate([kept, owners])
    return _Bars(
        rows,
        lane_of_row[rows],
        np.concatenate([tasks["start_us"][kept], starts]),
        np.concatenate([tasks["stop_us"][kept], stops]),
        np.concatenate([np.zeros(len(kept), dtype=np.int64), codes + 1]),
        _texts(names),
    )


def _lanes(tasks: Table, kept: Array, workers: list[str]) -> tuple[Array, Array]:
    """Distinct (worker, thread) pairs in the order of the workers, and the lane of every row."""
    codes = _recode(tasks.strings("worker"), _rank(workers))
    threads, thread_codes = np.unique(tasks["thread"], return_inverse=True)
    # Numbers sort ten times faster than pairs.
    pairs, inverse = np.unique(codes[kept] * max(1, len(threads)) + thread_codes[kept], return_inverse=True)
    lanes = np.stack([pairs // max(1, len(threads)), threads[pairs % max(1, len(threads))]], axis=1)
    lane_of_row = np.zeros(tasks.rows, dtype=np.int64)
    lane_of_row[kept] = inverse
    return lanes, lane_of_row


def _lane_records(lanes: Array, lane: Array, executions: Array) -> list[Lane]:
    bars = np.bincount(lane, minlength=len(lanes))
    tasks = np.bincount(lane[executions], minlength=len(lanes))
    firsts = np.cumsum(bars) - bars
    return [
        {"worker": int(worker), "thread": int(thread), "first": int(first), "count": int(count), "tasks": int(n)}
        for (worker, thread), first, count, n in zip(lanes, firsts, bars, tasks, strict=True)
    ]


def _ends_before(lane: Array, end: Array) -> Array:
    """The end of the bar before in the same lane; 0 for the first."""
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
        "prefix": blocks.codes("stream.prefix", _recode(tasks.strings("prefix"), _rank(prefixes))[rows]),
        "status": blocks.codes("stream.status", tasks.strings("status").codes[rows]),
        "type": blocks.codes("stream.type", tasks.strings("type").codes[rows]),
        "computation": blocks.codes("stream.computation", _recode(tasks.strings("computation"), computations)[rows]),
        "nbytes": blocks.mini("stream.nbytes", tasks["nbytes"][rows]),
        "wait": blocks.codes("stream.wait", waits),
        "queue": blocks.codes("stream.queue", queues),
    }


def _positions(recording: Recording) -> dict[str, int]:
    """Computations by one more than their position in the report, which has them in the order of their start."""
    table = recording["computations"]
    order = sorted(zip(table["start_us"].tolist(), table["computation"].tolist(), strict=True))
    return {computation: position + 1 for position, (_, computation) in enumerate(order)}


def _rank(names: list[str]) -> dict[str, int]:
    """The first position of each name; the address of a worker may be used again."""
    return {name: position for position, name in reversed(list(enumerate(names)))}


def _recode(column: Strings, positions: dict[str, int]) -> Array:
    by_code = np.array([positions.get(str(value), 0) for value in column.values], dtype=np.int64)
    result: Array = by_code[column.codes] if len(by_code) else np.zeros(len(column), dtype=np.int64)
    return result


def _lookup(ids: Array, numbers: Array) -> Callable[[Array], Array]:
    """The number in the stream of an execution's id; -1 for what is not there."""
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]

    def position(wanted: Array) -> Array:
        if not len(ordered):
            return np.full(len(wanted), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
        result: Array = np.where(ordered[at] == wanted, numbers[order[at]], -1)
        return result

    return position


def _texts(column: Strings) -> list[str]:
    return [str(value) for value in column.values]


def _code(column: Strings, value: str) -> int:
    return next((code for code, text in enumerate(column.values) if text == value), -1)
