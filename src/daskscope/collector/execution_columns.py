"""Executions as columns of the ``tasks`` and ``edges`` tables; runs in the writer thread.

The columns of a chunk are strided slices of its values; only the intervals are walked, once. A message that holds nonsense must
not cost the rows around it: then every row is looked at by itself, and one that cannot be used keeps its key alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from operator import sub
from typing import Any

from ..wire.encode import Coded, CodedIntegers, Const, Delta, Gap, Ragged, Runs, Via, microseconds
from .executions import NOTHING, WIDTH, Chunk

#: Waiting times are kept in steps of 128 µs: the clocks of scheduler and worker agree no better than that, and the digits
#: below are noise that costs a byte a task.
COARSE = -128

ALL = slice(None)

Intervals = list[tuple[int, str, float, float, str]]


def task_columns(chunk: Chunk, *, keys: bool = True) -> dict[str, Any]:
    """The chunk as columns of the ``tasks`` table. Durations are rounded as Dask rounds them, so that sums agree exactly."""
    try:
        said = _said(chunk.values)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        rows = (chunk.values[first : first + WIDTH] for first in range(0, len(chunk.values), WIDTH))
        chunk.values[:] = chain.from_iterable(map(_usable, rows))
        said = _said(chunk.values)
    groups = chunk.values[1::WIDTH]
    distinct = list(dict.fromkeys(groups))
    numbers = {group: number for number, group in enumerate(distinct)}
    group = Coded(list(map(numbers.__getitem__, groups)), [group.name for group in distinct])
    return {
        "id": range(chunk.first_id, chunk.first_id + chunk.rows),
        "key": chunk.values[0::WIDTH] if keys else group,
        "group": group,
        "prefix": Via("group", [group.prefix.name for group in distinct]),
        "span": Via("group", [group.span_id or "" for group in distinct]),
        "computation": _computations(chunk, groups),
        **said,
        "status": _statuses(chunk) if chunk.statuses else Const("ok"),
        "labels": Const(""),
    }


def _computations(chunk: Chunk, groups: list[Any]) -> Runs:
    """The computation that was current, but for groups that are known to be another one's: those ran again."""
    if not chunk.owners:
        return Runs(chunk.computation_starts, chunk.computation_ids)
    starts: list[int] = []
    values: list[str] = []
    owner = chunk.owners.get
    ends = [*chunk.computation_starts[1:], chunk.rows]
    for first, end, current in zip(chunk.computation_starts, ends, chunk.computation_ids):
        for row, group in enumerate(groups[first:end], first):
            value = owner(group, current)
            if not values or values[-1] != value:
                starts.append(row)
                values.append(value)
    return Runs(starts, values)


def _said(values: list[Any]) -> dict[str, Any]:
    """The columns that come from the workers' messages."""
    return {
        "worker": _texts(values[2::WIDTH]),
        "thread": _coded([thread or 0 for thread in values[3::WIDTH]]),
        "nbytes": array("q", values[4::WIDTH]).tolist(),
        "type": _texts(values[5::WIDTH]),
        **_times(values[6::WIDTH], values[7::WIDTH], values[8::WIDTH]),
    }


def _times(
    all_startstops: list[Sequence[Mapping[str, Any]]], assigned_ns: list[int], queued_ns: list[int]
) -> dict[str, Any]:
    """When each execution computed, for how long it lay on its worker and was queued before, and what else it did."""
    stops: list[int] = []
    durations: list[int] = []
    waits: list[int] = []
    queues: list[int] = []
    intervals: Intervals = []
    for row, (startstops, assigned, queued) in enumerate(zip(all_startstops, assigned_ns, queued_ns)):
        if len(startstops) == 1:
            only = startstops[0]
            end = only["stop"]
            seconds = end - only["start"]
        else:
            end, seconds = _besides(row, startstops, intervals)
        stop, duration = int(end * 1e6), round(seconds * 1e6) if seconds > 0 else 0
        stops.append(stop)
        durations.append(duration)
        if assigned > 0:
            waits.append((stop - duration - assigned // 1000) & COARSE)
            queues.append((assigned - queued) // 1000 & COARSE if queued else 0)
        else:
            waits.append(stop - duration)
            queues.append(0)
    return {
        "stop_us": stops,
        "start_us": Gap("stop_us", -1, durations),
        "assigned_us": Gap("start_us", -1, waits),
        "queued_us": Gap("assigned_us", -1, queues),
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


def _texts(values: list[str]) -> Coded:
    """Strings of which few are distinct; ``TypeError`` where one is none."""
    distinct = list(dict.fromkeys(values))
    "".join(distinct)
    numbers = {value: number for number, value in enumerate(distinct)}
    return Coded(list(map(numbers.__getitem__, values)), distinct)


def _coded(values: list[int]) -> Any:
    distinct = list(dict.fromkeys(values))
    if len(distinct) > len(values) // 2:
        return values
    numbers = {value: number for number, value in enumerate(distinct)}
    return CodedIntegers(list(map(numbers.__getitem__, values)), array("q", distinct))


def _usable(row: list[Any]) -> list[Any]:
    """The row if it can be encoded, else with an empty message."""
    try:
        _said(row)
    except Exception:  # noqa: BLE001 (whatever is wrong with it, the rows around it are worth having)
        return [*row[:2], *NOTHING.values(), *row[7:]]
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
    counts = chunk.values[9::WIDTH]
    dependents = list(chain.from_iterable(map(repeat, range(chunk.first_id, chunk.first_id + chunk.rows), counts)))[
        part
    ]
    # A key assigned again after its result was used (negative) or that ran before recording began (None) has no number.
    dependencies = [-1 if number is None or number < 0 else number for number in chunk.dependencies[part]]
    return {
        "task": Delta(dependents),
        "dependency": Gap("task", -1, list(map(sub, dependents, dependencies))),
        "seen_us": Const(chunk.seen_us),
    }
