"""Executions of tasks: dependencies between them, recomputed ones, counts and parallelism over time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from daskscope.analysis.columns.bins import Bins, Cube, add_cubes, make_cube
from daskscope.analysis.columns.grouping import counts as count_groups
from daskscope.analysis.columns.grouping import product, steps, where
from daskscope.analysis.columns.intervals import spread_all
from daskscope.model.recording import Array, Recording, Strings, Table, concatenate, empty_values, object_array

#: Statuses of executions with a measured duration; a killed one has none.
EXECUTED = ("ok", "error", "retried")
#: Clocks of scheduler and worker disagree by up to 0.9 s, even on one host.
CLOCK_NOISE_US = 1_000_000
#: Edges that are looked at together: 25 MB.
EDGE_BLOCK = 1_000_000
#: A year. Larger values of a metric are invalid, and would overflow.
MAX_SECONDS = 3.2e7


def find_ids(ids: Array) -> Callable[[Array], tuple[Array, Array]]:
    """Return a function that maps IDs of executions to their rows, and says whether each exists."""
    first, size = (int(ids.min()), len(ids)) if len(ids) else (0, 0)
    if size and int(ids.max()) - first == size - 1:
        # Usually nothing was dropped, and IDs are numbers without gaps: a table is ten times faster than a search.
        rows = np.full(size, -1, dtype=np.int64)
        rows[ids - first] = np.arange(size)
        if (rows >= 0).all():
            return lambda wanted: (
                rows[np.clip(wanted, first, first + size - 1) - first],
                (wanted >= first) & (wanted < first + size),
            )
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]

    def find(wanted: Array) -> tuple[Array, Array]:
        if not size:
            return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
        at = np.minimum(np.searchsorted(ordered, wanted), size - 1)
        return order[at], ordered[at] == wanted

    return find


def edge_rows(recording: Recording) -> tuple[Array, Array]:
    """Return dependencies as two columns of rows of ``tasks``, dependents and inputs; edges to unknown tasks are left out."""
    tasks, edges = recording["tasks"], recording["edges"]
    find = find_ids(tasks["id"])
    (dependents, known), (inputs, recorded) = find(edges["task"]), find(edges["dependency"])
    both = known & recorded & (edges["dependency"] >= 0)
    return dependents[both], inputs[both]


def inputs_of(recording: Recording, rows: Array) -> tuple[Array, Array]:
    """Return the dependencies of distinct executions: positions in ``rows``, and the number of the input, -1 if not known.

    Looks up only these, and edges block by block: the rows of ten million edges need 2 s and 300 MB.
    """
    edges = recording["edges"]
    owners, inputs = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    position = _position_by_number(recording["tasks"], rows)
    for first in range(0, edges.rows if len(position) else 0, EDGE_BLOCK):
        found = _look_up(position, edges["task"][first : first + EDGE_BLOCK])
        owners.append(found[found >= 0].astype(np.int64))
        inputs.append(edges["dependency"][first : first + EDGE_BLOCK][found >= 0])
    return np.concatenate(owners), np.concatenate(inputs)


def input_nbytes(recording: Recording, rows: Array) -> Array:
    """Return the bytes of the recorded inputs of the given executions."""
    tasks = recording["tasks"]
    owners, inputs = inputs_of(recording, rows)
    found = np.zeros(len(rows), dtype=np.int64)
    if len(owners):
        at = _look_up(_position_by_number(tasks, np.arange(tasks.rows, dtype=np.int32)), inputs)
        np.add.at(found, owners[at >= 0], np.maximum(tasks["nbytes"][at[at >= 0]], 0))
    return found


def _position_by_number(tasks: Table, rows: Array) -> Array:
    """Return the position in ``rows`` for each number of an execution, -1 for others; empty if the numbers have large gaps.

    The recorder numbers executions from 0 without gaps.
    """
    highest = int(tasks["id"].max()) if tasks.rows else -1
    if not len(rows) or not 0 <= highest <= 2 * tasks.rows + 1_000 or int(tasks["id"].min()) < 0:
        return np.zeros(0, dtype=np.int32)
    found = np.full(highest + 1, -1, dtype=np.int32)
    found[tasks["id"] if len(rows) == tasks.rows else tasks["id"][rows]] = np.arange(len(rows), dtype=np.int32)
    return found


def _look_up(position: Array, numbers: Array) -> Array:
    result: Array = np.where(
        (numbers >= 0) & (numbers < len(position)), position[np.clip(numbers, 0, len(position) - 1)], -1
    )
    return result


def recomputed_rows(recording: Recording) -> Array:
    """Return a mask of successful executions that were recomputed."""
    found = np.zeros(recording["tasks"].rows, dtype=bool)
    found[recomputed_pairs(recording)[0]] = True
    return found


def recomputed_pairs(recording: Recording) -> tuple[Array, Array]:
    """Return the successful executions whose key succeeded again later, and the later ones.

    A user who computes the same thing twice gets the same keys, and wants both. So in different computations, an execution counts
    only if its worker left before the next one, and the result with it.
    """
    tasks = recording["tasks"]
    rows, keys = tasks.strings("key").repeated
    if not len(rows) or has_hidden_keys(tasks, tasks.rows - len(rows) + len(np.unique(keys))):
        return rows[:0], rows[:0]
    ok = (where(tasks.strings("status"), "ok") & ~tasks.strings("key").is_empty)[rows]
    rows, keys = rows[ok], keys[ok]
    computations = tasks.strings("computation").codes
    order = np.lexsort((tasks["stop_us"][rows], keys))
    earlier, later = rows[order[:-1]], rows[order[1:]]
    same_key = np.diff(keys[order]) == 0
    earlier, later = earlier[same_key], later[same_key]
    lost = (computations[earlier] == computations[later]) | _left_between(recording, earlier, later)
    return earlier[lost], later[lost]


def _left_between(recording: Recording, earlier: Array, later: Array) -> Array:
    """Return whether the worker of each earlier execution left before the later one started, other than by a restart."""
    tasks, workers = recording["tasks"], recording["workers"]
    ends: dict[str, list[int]] = {}
    restarted = where(workers.strings("verdict"), "restarted").tolist()
    for address, end, ended in zip(workers["worker"], workers["end_us"].tolist(), restarted, strict=True):
        if end and not ended:
            ends.setdefault(address, []).append(end)
    for times in ends.values():
        times.sort()
    names = tasks.strings("worker").take(earlier).to_numpy().tolist()
    between = zip(names, tasks["stop_us"][earlier].tolist(), tasks["start_us"][later].tolist(), strict=True)
    return np.array([_has_between(ends.get(name, []), stop, start) for name, stop, start in between], dtype=bool)


def _has_between(times: list[int], first: int, last: int) -> bool:
    """Return whether one of the sorted times is between two others."""
    place = bisect_left(times, first)
    return place < len(times) and times[place] <= last


def cancelled_until_us(recording: Recording) -> Array:
    """Return when each execution ended; the column of ``tasks`` itself if none was cancelled.

    A thread goes on with a cancelled task: Dask's metrics say for how long. The metrics are totals by prefix, of which each
    cancelled execution of the prefix gets an equal part.
    """
    tasks, activities = recording["tasks"], recording["activities"]
    rows = np.flatnonzero(where(tasks.strings("status"), "cancelled"))
    if not len(rows):
        return tasks["stop_us"]
    stops: Array = tasks["stop_us"].copy()
    prefixes = tasks.strings("prefix")
    codes, size = prefixes.codes[rows], len(prefixes.values)
    known_us = np.bincount(codes, weights=stops[rows] - tasks["start_us"][rows], minlength=size)
    cancelled = where(activities.strings("context"), "execute") & where(activities.strings("activity"), "cancelled")
    places = {text: code for code, text in enumerate(prefixes.values)}
    names = activities.strings("prefix")
    of = np.array([places.get(text, -1) for text in names.values] or [-1], dtype=np.int64)[names.codes]
    metrics = np.flatnonzero(cancelled & (of >= 0))
    values = np.clip(np.nan_to_num(activities["value"][metrics]), 0.0, MAX_SECONDS)
    total_us = 1e6 * np.bincount(of[metrics], weights=values, minlength=size)
    each = np.maximum(total_us - known_us, 0.0) / np.maximum(np.bincount(codes, minlength=size), 1)
    stops[rows] += each[codes].astype(np.int64)
    return stops


def seceded_at_us(recording: Recording) -> Array:
    """Return when each execution seceded from its worker's threads; 0 if it did not."""
    tasks, events = recording["tasks"], recording["events"]
    found = np.zeros(tasks.rows, dtype=np.int64)
    rows = np.flatnonzero(where(events.strings("kind"), "seceded"))
    if not len(rows):
        return found
    moments: dict[str, list[int]] = {}
    for detail, time in zip(events["detail"][rows], events["time_us"][rows].tolist(), strict=True):
        moments.setdefault(str(detail), []).append(time)
    for times in moments.values():
        times.sort()
    mine = tasks.strings("key").rows_with(moments)
    keys, starts, stops = tasks.strings("key").take(mine).to_numpy(), tasks["start_us"][mine], tasks["stop_us"][mine]
    for row, key, start, stop in zip(mine.tolist(), keys.tolist(), starts.tolist(), stops.tolist(), strict=True):
        times = moments[key]
        first = bisect_left(times, start - CLOCK_NOISE_US)
        if first < len(times) and times[first] <= stop:
            found[row] = max(times[first], start)
    return found


def has_hidden_keys(tasks: Table, distinct: int) -> bool:
    """Return whether keys are not recorded; the name of the task group is then the key of all its executions.

    Tasks submitted one by one are groups of one, whose name is their key, too; these rarely run more than twice.
    """
    return tasks.rows > 2 * distinct and bool((tasks["key"] == tasks["group"]).all())


def counts(recording: Recording, bins: Bins) -> Cube:
    """Return executions by prefix and status in the bin in which they stopped; they add up to the rows of ``tasks``."""
    tasks = recording["tasks"]
    prefix, status = tasks.strings("prefix"), tasks.strings("status")
    keys = {"prefix": list(map(str, prefix.values)), "status": list(map(str, status.values))}
    cubes = []
    for some in steps(tasks.rows):
        stops = tasks["stop_us"][some]
        measures = {
            "count": np.ones(len(stops), dtype=np.int64),
            "us": np.maximum(stops - tasks["start_us"][some], 0),
            "nbytes": np.maximum(tasks["nbytes"][some], 0),
        }
        cubes.append(make_cube(keys, [prefix.codes[some], status.codes[some]], bins.of(stops), bins.count, measures))
    return add_cubes(cubes, bins.count)


def parallelism(recording: Recording, bins: Bins) -> Array:
    """Return the mean number of running executions for each bin; the mean over all bins is the mean of the run."""
    tasks = recording["tasks"]
    ran = where(tasks.strings("status"), *EXECUTED)
    parts = ((tasks["start_us"][s][ran[s]], tasks["stop_us"][s][ran[s]], None, None) for s in steps(tasks.rows))
    found = spread_all(parts, bins, 1, tasks.rows)
    means = np.zeros(bins.count)
    means[found.bin] = found.us / bins.width_us
    return means


def first_on_worker(tasks: Table) -> Array:
    """Return a mask of the first execution of each prefix on each worker: it imports modules and compiles code."""
    prefix, worker = tasks.strings("prefix"), tasks.strings("worker")
    groups, pairs = product([prefix.codes, worker.codes], [len(prefix.values), len(worker.values)])
    size = len(pairs[0])
    earliest, rows = np.full(size, np.iinfo(np.int64).max), np.zeros(size, dtype=np.int64)
    np.minimum.at(earliest, groups, tasks["start_us"])
    # Sorting five million executions takes a second. Of several that started together, the first one is assigned last.
    for some in reversed(steps(tasks.rows)):
        candidates = np.flatnonzero(tasks["start_us"][some] == earliest[groups[some]])[::-1] + some.start
        rows[groups[candidates]] = candidates
    found = np.zeros(tasks.rows, dtype=bool)
    # A worker with one execution of a prefix has no later one to compare it with: that one counts as usual.
    found[rows[count_groups(groups, size) > 1]] = True
    return found


#: Larger IDs are invalid, and would overflow.
MAX_ID = 2**53


def with_actor_calls(recording: Recording) -> Recording:
    """Return a recording whose ``tasks`` include the actor calls, named "prefix.method" as in profiles; without any, the same.

    The calls have no key, so they are never recomputed, and no queue.
    """
    calls, tasks = recording["actor_calls"], recording["tasks"]
    if not calls.rows:
        return recording
    columns = {column.name: empty_values(column.kind, calls.rows) for column in tasks.definition.columns}
    columns |= {name: calls.columns[name] for name in ("start_us", "stop_us", "worker", "thread", "status")}
    columns |= {"prefix": call_names(recording), "id": np.arange(calls.rows) + _next_id(tasks["id"])}
    joined = concatenate(tasks.definition, [tasks, Table(tasks.definition, columns)])
    return replace(recording, tables={**recording.tables, "tasks": joined})


def call_names(recording: Recording) -> Strings:
    """Return the name of each actor call, "prefix.method"."""
    calls = recording["actor_calls"]
    names = [f"{prefix}.{method}" for prefix, method in calls.records("prefix", "method")]
    index = {name: code for code, name in enumerate(dict.fromkeys(names))}
    codes = np.fromiter(map(index.__getitem__, names), dtype=np.int32, count=len(names))
    return Strings(codes, object_array(list(index)))


def _next_id(ids: Array) -> int:
    """Return an ID above all others; invalid rows may have any."""
    return int(np.clip(ids, 0, MAX_ID).max()) + 1 if len(ids) else 0
