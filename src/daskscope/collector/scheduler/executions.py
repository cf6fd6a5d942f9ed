"""Record one row per execution of a task and one edge per dependency: the hot path, and the columns made of its rows.

The first half runs on the event loop. The scheduler calls a plugin's ``transition`` five to six times per task. All but one of
these calls return after two or three comparisons; the one that reports the result stores ten values and returns. The values go
into one flat list, row after row: a tuple or the message's dict per row would be one more object for the garbage collector
to walk (2 µs per task). ``build_executions`` returns closures rather than methods because cell variables are a third cheaper than
attributes. No reference to a TaskState outlives the call.

The second half, ``task_columns`` and ``edge_columns``, runs on the encoder's thread and slices the flat list into columns. It is
separate because a line that runs between 100 µs of other code finds its caches cold, and costs three times as much as in a loop
over a thousand rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import itemgetter, mul, sub
from typing import Any

from ...wire.encode import Coded, CodedIntegers, Const, Delta, Gap, Ragged, Runs, Via, microseconds
from ..aliases import PLAIN, Aliases
from ..privacy import Scrubber, scrub_keys

#: The edges of a task with more dependencies than this are dropped: walking 100,000 would stall the event loop for 25 ms.
MAX_DEPENDENCIES = 5_000
#: Rows in which the last executions of a lost worker are looked for.
MAX_RECENT = 2_000

#: Target states of transitions that carry nothing to record.
SKIPPED = frozenset(("waiting", "released", "memory"))

#: States of tasks that have not been sent to a worker: if one of these is released, its client gave it up.
NOT_STARTED = frozenset(("waiting", "queued", "no-worker"))

#: Rows after which the chunk must be handed over; a batch of this size encodes in about 12 ms.
FULL_CHUNK = 5_000

#: Values per row: key, task group, worker, thread, bytes, type, intervals, assignment time (ns), time it was queued (ns; 0 if
#: unknown or not queued), number of entries in the chunk's dependencies.
WIDTH = 10

#: Defaults for fields that a worker's message lacks.
EMPTY_MESSAGE: Mapping[str, Any] = {"worker": "", "thread": 0, "nbytes": 0, "typename": "", "startstops": ()}

#: Waiting times are rounded down to 128 µs: the clocks of scheduler and worker agree no better than that, and the digits
#: below are noise that costs a byte per task.
COARSE = -128

ALL = slice(None)

_START, _STOP = itemgetter("start"), itemgetter("stop")

#: Intervals other than ``compute``: row, action, start, stop, source.
Intervals = list[tuple[int, str, float, float, str]]


@dataclass
class Executed:
    """Executions since the last ``rotate``."""

    first_id: int
    #: ``WIDTH`` values per row.
    values: list[Any] = field(default_factory=list)
    #: Row and status of the executions that are not "ok".
    statuses: list[tuple[int, str]] = field(default_factory=list)
    #: Rows at which the current computation changed, and its ID from there on.
    computation_starts: list[int] = field(default_factory=lambda: [0])
    computation_ids: list[str] = field(default_factory=lambda: [""])
    #: IDs of the executions that each row depends on, row after row; None or negative where the ID is not known.
    dependencies: list[int | None] = field(default_factory=list)
    edges_dropped: int = 0
    #: Computations by group, for groups whose tasks may not belong to the computation that was current when they ran.
    owners: dict[Any, str] = field(default_factory=dict)
    #: When ``rotate`` returned it.
    seen_us: int = 0

    @property
    def rows(self) -> int:
        return len(self.values) // WIDTH

    def groups(self) -> set[Any]:
        """Return the task groups that had executions."""
        return set(self.values[1::WIDTH])


@dataclass(frozen=True)
class Execution:
    """An execution that failed, was retried, killed or cancelled: these are recorded outside of the hot path."""

    key: Any
    group: Any
    worker: str
    thread: int
    startstops: Sequence[Mapping[str, Any]]
    status: str
    nbytes: int = 0
    type: str = ""
    #: When it started, if the worker did not report its intervals.
    start_us: int = 0


@dataclass(frozen=True)
class Executions:
    """The entry points of the hot path, sharing their state through closure cells."""

    transition: Callable[..., None]
    add: Callable[[Execution], None]
    set_computation: Callable[[str], None]
    rotate: Callable[[], Executed]
    rows: Callable[[], int]
    #: Number of executions so far, including earlier recordings of the same scheduler.
    total: Callable[[], int]
    #: When executions of a worker stopped after a time, ascending, in microseconds; of the latest since the last ``rotate``.
    stops_since: Callable[[str, int], list[int]]
    #: When a task that is processing was assigned to its worker, in microseconds; 0 if that is not known.
    assigned_us: Callable[[Any], int]


def build_executions(  # noqa: C901, PLR0915 (one scope on purpose: its closures share cells)
    tasks: Any,
    clock_ns: Callable[[], int],
    on_other: Callable[..., None],
    on_error: Callable[[BaseException], None],
    *,
    edges: bool = True,
    first_id: int = 0,
) -> Executions:
    """Build the hot path over the scheduler's ``tasks``; ``on_other`` gets transitions to "erred" and releases of running tasks."""
    chunk = Executed(first_id)
    keep, depends_on = chunk.values.extend, chunk.dependencies.append
    total = first_id
    current = ""
    # For each key the scheduler knows: while it is processing, its assignment time in negative nanoseconds; afterwards the ID of
    # its last execution, which edges refer to.
    live: dict[Any, int] = {}
    # Keys that became runnable while every thread was busy, and when.
    queued: dict[Any, int] = {}
    get_live, pop_live, pop_queued = live.get, live.pop, queued.pop
    max_dependencies = MAX_DEPENDENCIES if edges else 0

    def transition(key: Any, start: str, finish: str, stimulus_id: str = "", **kw: Any) -> None:  # noqa: C901, PLR0912
        nonlocal total
        try:
            if start == "processing":
                if finish != "memory":
                    # If the task is queued again, its queueing time starts over.
                    if queued and finish != "erred":
                        pop_queued(key, None)
                    on_other(key, start, finish, stimulus_id, kw)
                    return
                task = tasks[key]
                dependencies = task.dependencies
                count = len(dependencies)
                if count > max_dependencies:
                    chunk.edges_dropped += count if max_dependencies else 0
                    dependencies, count = (), 0
                keep(
                    (
                        key,
                        task.group,
                        kw["worker"],
                        kw["thread"],
                        kw["nbytes"],
                        kw["typename"],
                        kw["startstops"],
                        -get_live(key, 0),
                        pop_queued(key, 0) if queued else 0,
                        count,
                    )
                )
                # A plain loop: most tasks have one to four dependencies, for which two maps and an extend cost 3 µs more.
                for dependency in dependencies:
                    depends_on(get_live(dependency.key))
                live[key] = total
                total += 1
            elif finish in SKIPPED:
                if finish == "released" and start in NOT_STARTED:
                    on_other(key, start, finish, stimulus_id, kw)
            elif finish == "processing":
                live[key] = -clock_ns()
            elif finish == "forgotten":
                pop_live(key, None)
                if queued:
                    pop_queued(key, None)
            elif finish == "erred":
                on_other(key, start, finish, stimulus_id, kw)
            else:
                queued[key] = clock_ns()
        except KeyError as error:
            if finish == "memory" and key in tasks and not kw.keys() >= EMPTY_MESSAGE.keys():
                transition(key, start, finish, stimulus_id, **{**EMPTY_MESSAGE, **kw})
            else:
                on_error(error)
        except Exception as error:  # noqa: BLE001 (the guard counts it; a raise here would slow the scheduler 14-fold)
            on_error(error)

    def add(execution: Execution) -> None:
        nonlocal total
        assigned = max(0, -pop_live(execution.key, 0))
        chunk.statuses.append((chunk.rows, execution.status))
        keep(
            (
                execution.key,
                execution.group,
                execution.worker,
                execution.thread,
                execution.nbytes,
                execution.type,
                # No task starts before it is assigned.
                execution.startstops
                or _until(execution.start_us and max(execution.start_us, assigned // 1000), clock_ns()),
                assigned,
                pop_queued(execution.key, 0),
                0,
            )
        )
        total += 1

    def set_computation(id_: str) -> None:
        nonlocal current
        if id_ == current:
            return
        current = id_
        row = chunk.rows
        if chunk.computation_starts[-1] == row:
            chunk.computation_ids[-1] = id_
        else:
            chunk.computation_starts.append(row)
            chunk.computation_ids.append(id_)

    def rotate() -> Executed:
        nonlocal chunk, keep, depends_on
        full, chunk = chunk, Executed(total, computation_ids=[current])
        keep, depends_on = chunk.values.extend, chunk.dependencies.append
        full.seen_us = clock_ns() // 1000
        if full.computation_starts[-1] == full.rows and full.rows:
            full.computation_starts.pop()
            full.computation_ids.pop()
        return full

    def stops_since(worker: str, since_us: int) -> list[int]:
        # Hundreds of workers may be lost at once, and each of them asks.
        recent = chunk.values[-MAX_RECENT * WIDTH :]
        rows = zip(recent[2::WIDTH], recent[6::WIDTH], strict=True)
        stops = (_stop_us(intervals) for address, intervals in rows if address == worker)
        return sorted(stop for stop in stops if stop > since_us)

    return Executions(
        transition, add, set_computation, rotate, lambda: chunk.rows, lambda: total, stops_since,
        lambda key: max(0, -get_live(key, 0)) // 1000,
    )  # fmt: skip


def _until(start_us: int, now_ns: int) -> tuple[dict[str, Any], ...]:
    """Return the interval of an execution whose worker did not report it: it ends when the scheduler noticed."""
    now = now_ns / 1e9
    return ({"action": "compute", "start": min(start_us / 1e6, now) if start_us else now, "stop": now},)


def _stop_us(intervals: Any) -> int:
    """Return when the last interval ends; 0 if the worker sent something else than intervals."""
    try:
        return int(1e6 * max(map(_STOP, intervals), default=0.0))
    except (KeyError, TypeError, ValueError, OverflowError):
        return 0


def task_columns(chunk: Executed, scrubber: Scrubber, aliases: Aliases = PLAIN) -> dict[str, Any]:
    """Return the chunk as columns of ``tasks``. If keys are not recorded, a task has the name of its group.

    Durations are rounded as Dask rounds them, so that sums agree exactly.
    """
    try:
        reported = _message_columns(chunk.values)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        rows = (chunk.values[first : first + WIDTH] for first in range(0, len(chunk.values), WIDTH))
        chunk.values[:] = chain.from_iterable(map(_usable, rows))
        reported = _message_columns(chunk.values)
    groups = chunk.values[1::WIDTH]
    distinct = list(dict.fromkeys(groups))
    numbers = {group: number for number, group in enumerate(distinct)}
    scrub = scrubber.scrub_name
    if not aliases.keys:
        for key in chunk.values[0::WIDTH]:
            aliases.note(key)
    group = Coded(list(map(numbers.__getitem__, groups)), [scrub(aliases.group(group.name)) for group in distinct])
    return {
        "id": range(chunk.first_id, chunk.first_id + chunk.rows),
        "key": scrub_keys(scrubber, chunk.values[0::WIDTH]) if aliases.keys else group,
        "group": group,
        "prefix": Via("group", [scrub(aliases.group(group.prefix.name)) for group in distinct]),
        "span": Via("group", [group.span_id or "" for group in distinct]),
        "computation": _computations(chunk, groups),
        **reported,
        "status": _statuses(chunk) if chunk.statuses else Const("ok"),
        "labels": Const(""),
    }


def _computations(chunk: Executed, groups: list[Any]) -> Runs:
    """Return each row's computation: the one that was current, except for recomputed tasks of another computation's groups."""
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


def _message_columns(values: list[Any]) -> dict[str, Any]:
    """Return the columns that come from the workers' messages."""
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
    """Return start and stop of each execution, when it was assigned and queued, and its other intervals."""
    intervals: Intervals = []
    ends, seconds = _compute_times(all_startstops, intervals)
    # One pass per column: half the time of a loop over rows.
    stops = list(map(int, map(mul, ends, repeat(1e6))))
    durations = list(map(round, map(mul, map(max, seconds, repeat(0.0)), repeat(1e6))))
    starts = map(sub, stops, durations)
    if min(assigned_ns, default=0) > 0:
        waits = [(start - assigned // 1000) & COARSE for start, assigned in zip(starts, assigned_ns)]
    else:
        waits = [
            (start - assigned // 1000) & COARSE if assigned > 0 else start
            for start, assigned in zip(starts, assigned_ns)
        ]
    queues = [0] * len(stops)
    if any(queued_ns):
        queues = [
            (assigned - queued) // 1000 & COARSE if queued and assigned > 0 else 0
            for assigned, queued in zip(assigned_ns, queued_ns)
        ]
    return {
        "stop_us": stops,
        "start_us": Gap("stop_us", -1, durations),
        "assigned_us": Gap("start_us", -1, waits),
        "queued_us": Gap("assigned_us", -1, queues),
        **_interval_columns(intervals),
    }


def _compute_times(
    all_startstops: list[Sequence[Mapping[str, Any]]], intervals: Intervals
) -> tuple[Sequence[float], Sequence[float]]:
    """Return when each execution stopped computing and for how many seconds it did; append its other intervals."""
    if set(map(len, all_startstops)) == {1}:
        only = [startstops[0] for startstops in all_startstops]
        ends = list(map(_STOP, only))
        return ends, list(map(sub, ends, map(_START, only)))
    times = [
        (startstops[0]["stop"], startstops[0]["stop"] - startstops[0]["start"])
        if len(startstops) == 1
        else _split_intervals(row, startstops, intervals)
        for row, startstops in enumerate(all_startstops)
    ]
    return [end for end, _ in times], [seconds for _, seconds in times]


def _split_intervals(row: int, startstops: Sequence[Mapping[str, Any]], intervals: Intervals) -> tuple[float, float]:
    """Append the intervals other than ``compute``; return when the execution stopped computing and for how many seconds it did.

    A worker reports the intervals of earlier runs of the same key again: all up to the second-to-last ``compute`` are old.
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
    """Encode strings of which few are distinct; raise ``TypeError`` if a value is not a string."""
    distinct = list(dict.fromkeys(values))
    # Raises if one is not a string.
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
    """Return the row if it can be encoded, else the row with an empty message."""
    try:
        _message_columns(row)
    except Exception:  # noqa: BLE001 (a malformed row must not cost the rows around it)
        return [*row[:2], *EMPTY_MESSAGE.values(), *row[7:]]
    return row


def _statuses(chunk: Executed) -> Coded:
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


def edge_columns(chunk: Executed, part: slice = ALL) -> dict[str, Any]:
    """Return the chunk's dependencies, or a part of them, as columns of ``edges``."""
    counts = chunk.values[9::WIDTH]
    dependents = list(chain.from_iterable(map(repeat, range(chunk.first_id, chunk.first_id + chunk.rows), counts)))[
        part
    ]
    # A key that was assigned again after its result was used (negative) or ran before recording began (None) has no ID.
    dependencies = [-1 if number is None or number < 0 else number for number in chunk.dependencies[part]]
    return {
        "task": Delta(dependents),
        "dependency": Gap("task", -1, list(map(sub, dependents, dependencies))),
        "seen_us": Const(chunk.seen_us),
    }
