"""Executions as columns of the ``tasks`` and ``edges`` tables; runs in the writer thread.

What a message says is taken by list comprehensions, column by column (25 to 30 ns a value). A message that lacks something or
holds nonsense must not cost the rows around it: then every row is looked at by itself, and what cannot be used is empty.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from operator import sub
from typing import Any

from ..wire.encode import Coded, CodedIntegers, Const, Delta, Gap, Ragged, Runs, Via, microseconds
from .executions import Chunk, Row

#: Waiting times are kept in steps of 128 µs: the clocks of scheduler and worker agree no better than that, and the digits
#: below are noise that costs a byte a task.
COARSE = -128

ALL = slice(None)

Intervals = list[tuple[int, str, float, float, str]]


def task_columns(chunk: Chunk, *, keys: bool = True) -> dict[str, Any]:
    """The chunk as columns of the ``tasks`` table. Durations are rounded as Dask rounds them, so that sums agree exactly."""
    try:
        said = _said(chunk.executions)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        chunk.executions[:] = map(_usable, chunk.executions)
        said = _said(chunk.executions)
    names, groups, _, assigned_ns, queued_ns, _ = zip(*chunk.executions)
    distinct = list(dict.fromkeys(groups))
    numbers = {group: number for number, group in enumerate(distinct)}
    group = Coded(list(map(numbers.__getitem__, groups)), [group.name for group in distinct])
    waits, queues = _waits(said, assigned_ns, queued_ns)
    return {
        "id": range(chunk.first_id, chunk.first_id + chunk.rows),
        "key": names if keys else group,
        "group": group,
        "prefix": Via("group", [group.prefix.name for group in distinct]),
        "span": Via("group", [group.span_id or "" for group in distinct]),
        "computation": Runs(chunk.computation_starts, chunk.computation_ids),
        **said,
        "queued_us": Gap("assigned_us", -1, queues),
        "assigned_us": Gap("start_us", -1, waits),
        "status": _statuses(chunk) if chunk.statuses else Const("ok"),
        "labels": Const(""),
    }


def _said(executions: Sequence[Row]) -> dict[str, Any]:
    """The columns that come from the messages."""
    messages = [row[2] for row in executions]
    threads = _coded([message["thread"] or 0 for message in messages])
    stops: list[int] = []
    durations: list[int] = []
    intervals: Intervals = []
    for row, message in enumerate(messages):
        startstops = message["startstops"]
        if len(startstops) == 1:
            only = startstops[0]
            stop, duration = only["stop"], only["stop"] - only["start"]
        else:
            stop, duration = _besides(row, startstops, intervals)
        stops.append(int(stop * 1e6))
        durations.append(round(duration * 1e6) if duration > 0 else 0)
    return {
        "worker": [message["worker"] + "" for message in messages],
        "thread": threads,
        "nbytes": array("q", [message["nbytes"] for message in messages]).tolist(),
        "type": [message["typename"] + "" for message in messages],
        "stop_us": stops,
        "start_us": Gap("stop_us", -1, durations),
        **_interval_columns(intervals),
    }


def _besides(row: int, startstops: Sequence[Mapping[str, Any]], intervals: Intervals) -> tuple[float, float]:
    """Keep what this execution did besides computing; return when it stopped computing and for how long it did.

    A worker reports the intervals of earlier runs of the same key again: all up to the last but one ``compute`` are old.
    """
    compute = None
    for item in reversed(startstops):
        if item["action"] != "compute":
            intervals.append(
                (row, item["action"] + "", item["start"] + 0.0, item["stop"] + 0.0, item.get("source") or "")
            )
        elif compute is None:
            compute = item
        else:
            break
    if compute is None:
        return (max(item["stop"] for item in startstops) if startstops else 0.0), 0.0
    return compute["stop"], compute["stop"] - compute["start"]


def _coded(values: list[int]) -> Any:
    distinct = list(dict.fromkeys(values))
    if len(distinct) > len(values) // 2:
        return values
    numbers = {value: number for number, value in enumerate(distinct)}
    return CodedIntegers(list(map(numbers.__getitem__, values)), array("q", distinct))


def _waits(
    said: Mapping[str, Any], assigned_ns: Sequence[int], queued_ns: Sequence[int]
) -> tuple[list[int], list[int]]:
    """How long each execution lay on its worker, and how long it was queued before."""
    waits: list[int] = []
    queues: list[int] = []
    for stop, duration, assigned, queued in zip(said["stop_us"], said["start_us"].gaps, assigned_ns, queued_ns):
        if assigned > 0:
            waits.append((stop - duration - assigned // 1000) & COARSE)
            queues.append((assigned - queued) // 1000 & COARSE if queued else 0)
        else:
            waits.append(stop - duration)
            queues.append(0)
    return waits, queues


def _usable(row: Row) -> Row:
    """The row if it can be encoded, else with an empty message."""
    try:
        _said([row])
    except Exception:  # noqa: BLE001 (whatever is wrong with it, the rows around it are worth having)
        empty = {"worker": "", "thread": 0, "typename": "", "nbytes": 0, "startstops": ()}
        return (row[0], row[1], empty, *row[3:])
    return row


def _statuses(chunk: Chunk) -> Coded:
    numbers = {"ok": 0}
    column = [0] * chunk.rows
    for row, status in chunk.statuses:
        column[row] = numbers.setdefault(status, len(numbers))
    return Coded(column, list(numbers))


def _interval_columns(intervals: Intervals) -> dict[str, Any]:
    rows, actions, starts, stops, sources = zip(*intervals) if intervals else ((), (), (), (), ())
    lengths = array("q", map(max, map(round, map((1e6).__mul__, map(sub, stops, starts))), repeat(0)))
    return {
        "interval_action": Ragged(rows, actions),
        "interval_start_us": Ragged(rows, microseconds(starts)),
        "interval_stop_us": Ragged(rows, Gap("interval_start_us", 1, lengths)),
        "interval_source": Ragged(rows, sources),
    }


def edge_columns(chunk: Chunk, part: slice = ALL) -> dict[str, Any]:
    """The chunk's dependencies, or a part of them, as columns of the ``edges`` table."""
    counted = ((chunk.first_id + row, execution[5]) for row, execution in enumerate(chunk.executions) if execution[5])
    dependents = list(chain.from_iterable(repeat(task, count) for task, count in counted))[part]
    # A key assigned again after its result was used (negative) or that ran before recording began (None) has no number.
    dependencies = [-1 if number is None or number < 0 else number for number in chunk.dependencies[part]]
    return {
        "task": Delta(dependents),
        "dependency": Gap("task", -1, list(map(sub, dependents, dependencies))),
        "seen_us": Const(chunk.seen_us),
    }
