"""The hot path: one row per execution of a task, one edge per dependency it had.

The scheduler calls a plugin's ``transition`` five to six times a task. All but one of these calls return after two or three
comparisons; the one that reports the result appends to typed columns. Nothing here allocates per row but what the columns
keep, and no reference to a TaskState outlives the call. ``executions`` returns plain closures rather than methods because cell
variables are a third cheaper than attributes, and this code runs once per task of every user.

The rows are turned into wire columns by ``task_columns`` and ``edge_columns``, off the event loop.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import sub
from typing import Any

from ..wire.encode import Coded, CodedIntegers, Const, Delta, Gap, Ragged, Runs, Via, microseconds

#: A task with more dependencies than this keeps none of its edges: walking 100,000 of them would stall the loop for 25 ms.
MAX_DEPENDENCIES = 5_000

#: States a task passes through that add nothing to what the other transitions say.
SKIPPED = frozenset(("waiting", "released", "memory"))

#: Waiting times are kept in steps of 128 µs: the clocks of scheduler and worker agree no better than that, and the digits
#: below are noise that costs a byte a task.
COARSE = -128

#: Rows after which the columns must be rotated; a batch of this size encodes in about 5 ms.
FULL = 5_000


def codes() -> defaultdict[Any, int]:
    """A dictionary that gives every new key the next number, without a Python call."""
    numbers: defaultdict[Any, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


@dataclass
class Chunk:
    """Executions as columns: one entry per row in each of the first block.

    Lists, although the values are integers: appending to a list takes 7 ns, to an ``array`` 50, and a list becomes an array
    in one C call (18 ns a value) once it is off the event loop.
    """

    first_id: int
    keys: list[Any] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    workers: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    nbytes: list[int] = field(default_factory=list)
    #: Microseconds: when it stopped, how long it computed, how long it lay on the worker before that, how long it was queued.
    stops: list[int] = field(default_factory=list)
    durations: list[int] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    queued: list[int] = field(default_factory=list)
    # What the codes stand for.
    group_codes: defaultdict[Any, int] = field(default_factory=codes)
    worker_codes: defaultdict[Any, int] = field(default_factory=codes)
    thread_codes: defaultdict[Any, int] = field(default_factory=codes)
    type_codes: defaultdict[Any, int] = field(default_factory=codes)
    # Exceptions to the rule, by row.
    statuses: list[tuple[int, str]] = field(default_factory=list)
    computation_starts: list[int] = field(default_factory=lambda: [0])
    computation_ids: list[str] = field(default_factory=lambda: [""])
    #: What executions did besides computing: row, action, start and stop in seconds, source; the latest of a row first.
    intervals: list[tuple[int, str, float, float, str]] = field(default_factory=list)
    # Edges: the dependent execution and the one it needed.
    dependents: list[int] = field(default_factory=list)
    dependencies: list[int] = field(default_factory=list)
    edges_dropped: int = 0

    @property
    def rows(self) -> int:
        return len(self.keys)


@dataclass(frozen=True)
class Execution:
    """One execution as the slow paths see it: failed, retried or killed."""

    key: Any
    group: Any
    worker: str
    thread: int
    startstops: Sequence[Mapping[str, Any]]
    status: str
    nbytes: int = 0
    type: str = ""


@dataclass(frozen=True)
class Executions:
    """The entry points of the hot path, sharing their state through closure cells."""

    transition: Callable[..., None]
    add: Callable[[Execution], None]
    computation: Callable[[str], None]
    rotate: Callable[[], Chunk]
    rows: Callable[[], int]
    live: Callable[[], int]


def executions(  # noqa: C901, PLR0915 (one scope on purpose: its closures share cells)
    tasks: Any,
    clock_ns: Callable[[], int],
    on_other: Callable[..., None],
    on_error: Callable[[BaseException], None],
    *,
    edges: bool = True,
) -> Executions:
    """Build the hot path over the scheduler's ``tasks``; ``on_other`` gets the transitions that are no plain success."""
    chunk = Chunk(0)
    total = 0
    current = ""
    # What is known of each key the scheduler still knows: minus the nanosecond it was assigned while it is processing, then
    # the number of its last execution, which names the two ends of an edge.
    live: dict[Any, int] = {}
    # Keys that became runnable while every thread was taken, and when.
    queued: dict[Any, int] = {}
    get_task, get_live, pop_live, pop_queued = tasks.get, live.get, live.pop, queued.pop

    unbound: Any = None
    add_key = add_group = add_worker = add_thread = add_type = add_nbytes = unbound
    add_stop = add_duration = add_wait = add_queued = add_dependent = add_edge = unbound
    group_codes = worker_codes = thread_codes = type_codes = unbound

    def bind() -> None:
        nonlocal add_key, add_group, add_worker, add_thread, add_type, add_nbytes
        nonlocal add_stop, add_duration, add_wait, add_queued, add_dependent, add_edge
        nonlocal group_codes, worker_codes, thread_codes, type_codes
        add_key, add_group, add_worker = chunk.keys.append, chunk.groups.append, chunk.workers.append
        add_thread, add_type, add_nbytes = chunk.threads.append, chunk.types.append, chunk.nbytes.append
        add_stop, add_duration = chunk.stops.append, chunk.durations.append
        add_wait, add_queued = chunk.waits.append, chunk.queued.append
        add_dependent, add_edge = chunk.dependents.append, chunk.dependencies.append
        group_codes, worker_codes = chunk.group_codes, chunk.worker_codes
        thread_codes, type_codes = chunk.thread_codes, chunk.type_codes

    bind()

    def transition(  # noqa: C901, PLR0912, PLR0915 (inlined on purpose: a call costs 60 ns, five times a task)
        key: Any, start: str, finish: str, stimulus_id: str = "", **kw: Any
    ) -> None:
        nonlocal total
        try:
            if start == "processing":
                if finish != "memory":
                    on_other(key, start, finish, stimulus_id, kw)
                    return
                task = get_task(key)
                nbytes, startstops = kw["nbytes"], kw["startstops"]
                group = group_codes[task.group]
                worker = worker_codes[kw["worker"]]
                thread = thread_codes[kw["thread"]]
                type_ = type_codes[kw["typename"]]
                if len(startstops) == 1:
                    interval = startstops[0]
                    ended = interval["stop"]
                    duration = round((ended - interval["start"]) * 1e6)
                else:
                    ended, duration = intervals(startstops)
                if duration < 0:
                    duration = 0
                stop = int(ended * 1e6) or clock_ns() // 1000
                assigned = -get_live(key, 0) // 1000
                # From here on nothing can fail, so the columns stay of one length.
                add_nbytes(nbytes)
                add_key(key)
                add_group(group)
                add_worker(worker)
                add_thread(thread)
                add_type(type_)
                add_stop(stop)
                add_duration(duration)
                add_wait((stop - duration - assigned) & COARSE if assigned else stop - duration)
                add_queued((assigned - pop_queued(key, assigned * 1000) // 1000) & COARSE if queued else 0)
                dependencies = task.dependencies
                if dependencies and edges:
                    if len(dependencies) > MAX_DEPENDENCIES:
                        chunk.edges_dropped += len(dependencies)
                    else:
                        for dependency in dependencies:
                            add_edge(get_live(dependency.key, -1))
                            add_dependent(total)
                live[key] = total
                total += 1
            elif finish in SKIPPED:
                return
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
        except Exception as error:  # noqa: BLE001 (the guard counts it; a raise here would slow the scheduler 14-fold)
            on_error(error)

    def intervals(startstops: Sequence[Mapping[str, Any]]) -> tuple[float, int]:
        """Keep what this execution did besides computing; return when it stopped computing and how long that took.

        A worker reports the intervals of earlier runs of the same key again: all up to the last but one ``compute`` are old.
        """
        compute = None
        row = len(chunk.keys)
        found = []
        for item in reversed(startstops):
            action = item["action"]
            if action != "compute":
                found.append((row, action, item["start"], item["stop"], item.get("source") or ""))
            elif compute is None:
                compute = item
            else:
                break
        stop, duration = 0.0, 0
        if compute is not None:
            stop = compute["stop"]
            duration = round((stop - compute["start"]) * 1e6)
        chunk.intervals += found
        return stop, duration

    def add(execution: Execution) -> None:
        nonlocal total
        group, worker = group_codes[execution.group], worker_codes[execution.worker]
        thread, type_ = thread_codes[execution.thread], type_codes[execution.type]
        ended, duration = intervals(execution.startstops)
        # A killed execution has no times: it ends where the scheduler learned of it.
        stop, duration = int(ended * 1e6) or clock_ns() // 1000, max(duration, 0)
        assigned = max(0, -pop_live(execution.key, 0) // 1000)
        chunk.statuses.append((len(chunk.keys), execution.status))
        add_nbytes(execution.nbytes)
        add_key(execution.key)
        add_group(group)
        add_worker(worker)
        add_thread(thread)
        add_type(type_)
        add_stop(stop)
        add_duration(duration)
        add_wait((stop - duration - assigned) & COARSE if assigned else stop - duration)
        add_queued((assigned - pop_queued(execution.key, assigned * 1000) // 1000) & COARSE)
        total += 1

    def computation(id_: str) -> None:
        nonlocal current
        if id_ == current:
            return
        current = id_
        row = len(chunk.keys)
        if chunk.computation_starts[-1] == row:
            chunk.computation_ids[-1] = id_
        else:
            chunk.computation_starts.append(row)
            chunk.computation_ids.append(id_)

    def rotate() -> Chunk:
        nonlocal chunk
        full, chunk = chunk, Chunk(total, computation_ids=[current])
        bind()
        if full.computation_starts[-1] == full.rows and full.rows:
            full.computation_starts.pop()
            full.computation_ids.pop()
        return full

    return Executions(transition, add, computation, rotate, lambda: len(chunk.keys), lambda: len(live))


def task_columns(chunk: Chunk, *, keys: bool = True) -> dict[str, Any]:
    """The chunk as columns of the ``tasks`` table. Durations are rounded as Dask rounds them, so that sums agree exactly."""
    groups = list(chunk.group_codes)
    return {
        "id": range(chunk.first_id, chunk.first_id + chunk.rows),
        "key": chunk.keys if keys else Coded(chunk.groups, [group.name for group in groups]),
        "group": Coded(chunk.groups, [group.name for group in groups]),
        "prefix": Via("group", [group.prefix.name for group in groups]),
        "span": Via("group", [group.span_id or "" for group in groups]),
        "computation": Runs(chunk.computation_starts, chunk.computation_ids),
        "worker": Coded(chunk.workers, list(chunk.worker_codes)),
        "thread": CodedIntegers(chunk.threads, [thread or 0 for thread in chunk.thread_codes]),
        "queued_us": Gap("assigned_us", -1, chunk.queued),
        "assigned_us": Gap("start_us", -1, chunk.waits),
        "start_us": Gap("stop_us", -1, chunk.durations),
        "stop_us": chunk.stops,
        "nbytes": chunk.nbytes,
        "type": Coded(chunk.types, list(chunk.type_codes)),
        "status": _statuses(chunk) if chunk.statuses else Const("ok"),
        "labels": Const(""),
        **_interval_columns(chunk),
    }


def _statuses(chunk: Chunk) -> Coded:
    numbers = codes()
    column = array("H", bytes(2 * chunk.rows))
    numbers["ok"]
    for row, status in chunk.statuses:
        column[row] = numbers[status]
    return Coded(column, list(numbers))


def _interval_columns(chunk: Chunk) -> dict[str, Any]:
    rows, actions, starts, stops, sources = zip(*chunk.intervals) if chunk.intervals else ((), (), (), (), ())
    lengths = array("q", map(max, map(round, map((1e6).__mul__, map(sub, stops, starts))), repeat(0)))
    return {
        "interval_action": Ragged(rows, actions),
        "interval_start_us": Ragged(rows, microseconds(starts)),
        "interval_stop_us": Ragged(rows, Gap("interval_start_us", 1, lengths)),
        "interval_source": Ragged(rows, sources),
    }


def edge_columns(chunk: Chunk) -> dict[str, Any]:
    """The chunk's dependencies as columns of the ``edges`` table."""
    dependencies = chunk.dependencies
    if min(dependencies) < -1:
        # A key that was assigned again after its result was used: its earlier execution is no longer known by number.
        dependencies = list(map(max, dependencies, repeat(-1)))
    return {
        "task": Delta(chunk.dependents),
        "dependency": Gap("task", -1, list(map(sub, chunk.dependents, dependencies))),
        "seen_us": Const(chunk.stops[-1]),
    }
