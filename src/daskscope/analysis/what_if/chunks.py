"""A recorded computation with larger or smaller chunks: neighbouring tasks of a group are joined, or tasks are divided.

The fixed part of a task's time is paid once per chunk, and the rest follows the data. A prefix whose executions do not show a fixed
part (see ``Line``) has none here, so that larger chunks save no more than the overheads of Dask.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from daskscope import units
from daskscope.analysis.executions import input_nbytes
from daskscope.analysis.what_if.from_recording import CannotReplay, Replayable
from daskscope.analysis.what_if.graph import Submission, build_graph
from daskscope.errors import DaskscopeError
from daskscope.model.recording import Array, Recording

# The duration of a task is nearly linear in the size of its chunk: a fixed part and a part per byte.
#
# The executions of a prefix show both parts if their results, or their inputs, have clearly different sizes.

MIN_TASKS = 20
#: The line explains this share of the variance, of sizes whose 90th percentile is this many times the 10th.
MIN_EXPLAINED = 0.7
MIN_SPREAD = 1.5
#: The largest of the sizes, by their median: more is skew.
MAX_SKEW = 5.0


@dataclass(frozen=True)
class Line:
    """The sizes of executions in the order of their start, with the line through their durations."""

    nbytes: Array
    fixed_us: float
    us_per_byte: float


def fit_line(recording: Recording, rows: Array) -> Line | None:
    """Return the line through the durations of the executions in the given rows; None if they do not show one."""
    if len(rows) < MIN_TASKS:
        return None
    tasks = recording["tasks"]
    rows = rows[np.argsort(tasks["start_us"][rows], kind="stable")]
    nbytes = np.maximum(tasks["nbytes"][rows], 0).astype(np.float64)
    if not _is_spread(nbytes):
        nbytes = input_nbytes(recording, rows).astype(np.float64)
        if not _is_spread(nbytes):
            return None
    us = (tasks["stop_us"][rows] - tasks["start_us"][rows]).astype(np.float64)
    slope, fixed = np.polyfit(nbytes, us, 1)
    left = us - (fixed + slope * nbytes)
    explained = 1.0 - left.var() / us.var() if us.var() else 0.0
    return Line(nbytes, max(float(fixed), 0.0), float(slope)) if slope > 0 and explained >= MIN_EXPLAINED else None


def _is_spread(nbytes: Array) -> bool:
    """Return whether sizes differ enough to fit a line, without being skewed."""
    low, middle, high = np.percentile(nbytes, (10, 50, 90)).tolist()
    return bool(low > 0 and high >= MIN_SPREAD * low and float(nbytes.max()) <= MAX_SKEW * middle)


def makespan_us(durations_us: Sequence[float], threads: int) -> float:
    """Return the time until the last of independent tasks ends, started in their order."""
    # More threads than tasks change nothing, and anybody may upload a recording with a trillion threads.
    free = [0.0] * max(1, min(threads, len(durations_us)))
    for us in durations_us:
        heapq.heapreplace(free, free[0] + us)
    return max(free)


#: Larger changes are far from anything that was recorded.
MAX_FACTOR = 8
#: Executions after tasks are divided.
MAX_TASKS = 2_000_000
#: Prefixes that the assumptions name.
MAX_NAMED = 3
#: Python refuses to convert thousands of digits, and anybody may send such a key.
_INDEX = re.compile(r"-?\d{1,18}", re.ASCII)


@dataclass(frozen=True)
class OtherChunks:
    """A computation with other chunks, and what was assumed about them."""

    recorded: Replayable
    assumptions: tuple[str, ...]


def with_chunks(recording: Recording, recorded: Replayable, factor: float) -> OtherChunks:
    """Return the computation with chunks of ``factor`` times the size: a whole number, or one divided by a whole number."""
    times = max(factor, 1 / factor) if factor > 0 else 0.0
    count = round(min(times, MAX_FACTOR + 1)) if times >= 1 else 0
    # People write 0.33 and 0.17 for a third and a sixth.
    if not 2 <= count <= MAX_FACTOR or abs(times - count) > (0.0 if factor > 1 else 0.05 * count):
        raise DaskscopeError(
            f"Chunks can't be {factor:g} times as large. Give a whole number from 2 to {MAX_FACTOR}, or one divided by it, "
            "such as 0.5."
        )
    if recorded.lock_wait_us:
        raise CannotReplay("Its tasks wait for locks, and how long chunks of another size hold them is not known.")
    fixed, fitted = _fixed_us(recording, recorded)
    changed = _joined(recording, recorded, fixed, count) if factor >= 1 else _divided(recorded, fixed, count)
    what = (
        f"{count} neighbouring tasks of a group become one"
        if factor >= 1
        else f"each task of a group with several becomes {count}"
    )
    known = [f"{units.duration(us)} of {name}" for name, us in fitted[:MAX_NAMED]]
    if len(fitted) > MAX_NAMED:
        known.append(f"a part of {units.counted(len(fitted) - MAX_NAMED, 'other prefix', 'other prefixes')}")
    paid = (
        f"Paid once per chunk: {', '.join(known)}. The rest of the time follows the data."
        if known
        else "No fixed part of their time shows in the run, so all of it follows the data."
    )
    return OtherChunks(changed, (f"With such chunks, {what}. {paid}",))


def _fixed_us(recording: Recording, recorded: Replayable) -> tuple[Array, list[tuple[str, float]]]:
    """Return the fixed part of each execution's time, and of the prefixes that show one, the largest first.

    The line is fitted to recorded durations. The replay has shorter ones, without waiting for cores and the interpreter lock, or
    with a faster prefix: the fixed part is the same share of them.
    """
    tasks, us = recording["tasks"], np.array(recorded.graph.us)
    recorded_us = tasks["stop_us"][recorded.rows] - tasks["start_us"][recorded.rows] + recorded.disk_us
    shares = us / np.maximum(recorded_us, 1.0)
    fixed = np.zeros(len(us))
    found = []
    for code in np.unique(recorded.prefix).tolist():
        own = recorded.prefix == code
        line = fit_line(recording, recorded.rows[own])
        if line is not None and line.fixed_us > 0:
            fixed[own] = line.fixed_us * shares[own]
            found.append((recorded.prefixes[code], float(np.median(fixed[own]))))
    return np.minimum(fixed, us), sorted(found, key=lambda item: -item[1])


def _joined(recording: Recording, recorded: Replayable, fixed: Array, count: int) -> Replayable:
    """Return the computation with ``count`` neighbouring tasks of a group in one."""
    graph = recorded.graph
    group, us = np.array(graph.group), np.array(graph.us)
    submission = np.full(len(us), -1, dtype=np.int64)
    for number, part in enumerate(graph.submissions):
        submission[np.array(part.roots, dtype=np.int64)] = number
    order = _neighbours(recording, recorded, submission)
    # Neighbours are of one group, and submitted together.
    kind = group[order] * (len(graph.submissions) + 1) + submission[order] + 1
    first = np.concatenate(([True], np.diff(kind) != 0))
    rank = np.arange(len(order)) - np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    begins = first | (rank % count == 0)
    bucket = np.empty(len(us), dtype=np.int64)
    bucket[order] = np.cumsum(begins) - 1
    # Numbered by the first start among its members, as executions are.
    starts: Array = np.full(int(bucket.max()) + 1, len(us))
    np.minimum.at(starts, bucket, np.arange(len(us)))
    numbers: Array = np.empty(len(starts), dtype=np.int64)
    numbers[np.argsort(starts)] = np.arange(len(starts))
    joined = numbers[bucket]
    total = len(starts)
    member = np.sort(starts)
    sums = np.bincount(joined, weights=us - fixed, minlength=total)
    most = np.zeros(total)
    np.maximum.at(most, joined, fixed)
    dependents, inputs = _edges(recorded)
    pairs = np.unique(joined[dependents] * total + joined[inputs])
    dependents, inputs = pairs // total, pairs % total
    # Tasks of one chunk that depend on each other run one after the other inside of it.
    kept = dependents != inputs
    dependents, inputs = dependents[kept], inputs[kept]
    _check_order(dependents, inputs, total)
    submissions = [_joined_submission(part, joined) for part in graph.submissions]
    return replace(
        recorded,
        graph=build_graph(
            sums + most,
            np.bincount(joined, weights=np.array(graph.nbytes, dtype=np.float64), minlength=total).astype(np.int64),
            group[member],
            dependents,
            inputs,
            _shares(recorded),
            submissions,
        ),
        rows=recorded.rows[member],
        prefix=recorded.prefix[member],
        disk_us=np.bincount(joined, weights=recorded.disk_us, minlength=total),
    )


def _joined_submission(part: Submission, joined: Array) -> Submission:
    """Return the submission of joined tasks; one of them is there when its last member is."""
    delays: dict[int, float] = {}
    for root, delay in zip(part.roots, part.delays_us, strict=True):
        name = int(joined[root])
        delays[name] = max(delay, delays.get(name, 0.0))
    ordered = sorted(delays.items(), key=lambda item: item[1])
    return Submission(part.pause_us, [root for root, _ in ordered], [delay for _, delay in ordered])


def _divided(recorded: Replayable, fixed: Array, count: int) -> Replayable:
    """Return the computation with each task of a group with several tasks divided into ``count``."""
    graph = recorded.graph
    group, us = np.array(graph.group), np.array(graph.us)
    parts = np.where(np.bincount(group)[group] > 1, count, 1)
    if int(parts.sum()) > MAX_TASKS:
        raise CannotReplay(f"There would be more than {MAX_TASKS:,} tasks with such chunks.")
    first = np.concatenate(([0], np.cumsum(parts)[:-1]))
    owner = np.repeat(np.arange(len(us)), parts)
    dependents, inputs = _edges(recorded)
    # Part by part where both are divided; otherwise all parts.
    both = (parts[dependents] > 1) & (parts[inputs] > 1)
    pieces = [(first[dependents[both]] + at, first[inputs[both]] + at) for at in range(count)]
    for at in range(count):
        many = ~both & (np.maximum(parts[dependents], parts[inputs]) > at)
        pieces.append(
            (
                first[dependents[many]] + np.minimum(at, parts[dependents[many]] - 1),
                first[inputs[many]] + np.minimum(at, parts[inputs[many]] - 1),
            )
        )
    submissions = [
        Submission(
            part.pause_us,
            [int(first[root]) + at for root in part.roots for at in range(int(parts[root]))],
            [
                delay
                for root, delay in zip(part.roots, part.delays_us, strict=True)
                for _ in range(int(parts[root]))
            ],
        )
        for part in graph.submissions
    ]  # fmt: skip
    return replace(
        recorded,
        graph=build_graph(
            (fixed + (us - fixed) / parts)[owner],
            (np.array(graph.nbytes, dtype=np.int64) // parts)[owner],
            group[owner],
            np.concatenate([of for of, _ in pieces]),
            np.concatenate([given for _, given in pieces]),
            _shares(recorded),
            submissions,
        ),
        rows=recorded.rows[owner],
        prefix=recorded.prefix[owner],
        disk_us=(recorded.disk_us / parts)[owner],
    )


def _neighbours(recording: Recording, recorded: Replayable, submission: Array) -> Array:
    """Return the executions in an order in which neighbours follow each other: by group, submission, and number in the key."""
    texts = recording["tasks"].strings("key").take(recorded.rows).to_numpy()
    group = recorded.graph.group

    def place(number: int) -> tuple[int, int, tuple[int, ...], int]:
        text = str(texts[number])
        # A key of a collection: ('sum-3f…', 4, 0). Other keys are ordered by their start.
        index = tuple(map(int, _INDEX.findall(text.rpartition("'")[2]))) if text.startswith("(") else ()
        return group[number], int(submission[number]), index, number

    return np.array(sorted(range(len(group)), key=place), dtype=np.int64)


def _edges(recorded: Replayable) -> tuple[Array, Array]:
    graph = recorded.graph
    counts = np.diff(np.array(graph.inputs_from))
    return np.repeat(np.arange(len(counts)), counts), np.array(graph.inputs, dtype=np.int64)


def _shares(recorded: Replayable) -> list[tuple[float, float, float]]:
    return [(group.cpu_share, group.gil_share, group.busy_share) for group in recorded.graph.groups]


def _check_order(dependents: Array, inputs: Array, count: int) -> None:
    """Raise if joined tasks wait for each other."""
    missing = np.bincount(dependents, minlength=count)
    order = np.argsort(inputs, kind="stable")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(inputs, minlength=count))))
    ready, seen = np.flatnonzero(missing == 0).tolist(), 0
    while ready:
        task = ready.pop()
        seen += 1
        for dependent in dependents[order[offsets[task] : offsets[task + 1]]].tolist():
            missing[dependent] -= 1
            if not missing[dependent]:
                ready.append(dependent)
    if seen < count:
        raise CannotReplay(
            "Tasks of one group wait for each other through other tasks, so that their chunks can't be joined."
        )
