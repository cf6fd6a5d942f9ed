"""The hot path: one row per execution of a task, one edge per dependency it had.

The scheduler calls a plugin's ``transition`` five to six times a task. All but one of these calls return after two or three
comparisons; the one that reports the result keeps ten values and returns. Everything else happens off the event loop
(``execution_columns``): in between 100 µs of other code a line here finds its caches cold and costs three times what it costs in a
loop over a thousand rows.

The values go into one flat list, a row after the other: a tuple or the message's dict kept for each row is an object more that
the garbage collector walks (2 µs a task), and the writer gets its columns from strided slices.

``executions`` returns plain closures rather than methods because cell variables are a third cheaper than attributes. No
reference to a TaskState outlives the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: A task with more dependencies than this keeps none of its edges: walking 100,000 of them would stall the loop for 25 ms.
MAX_DEPENDENCIES = 5_000

#: States a task passes through that add nothing to what the other transitions say.
SKIPPED = frozenset(("waiting", "released", "memory"))

#: Rows after which the chunk must be handed over; a batch of this size encodes in about 12 ms.
FULL = 5_000

#: What is kept of an execution: key, task group, worker, thread, bytes, type, intervals, nanosecond of assignment, nanosecond it
#: became runnable (0: not known, or not queued), how many of the chunk's dependencies are its own.
WIDTH = 10

#: What a worker's message is taken to say where it lacks something.
NOTHING: Mapping[str, Any] = {"worker": "", "thread": 0, "nbytes": 0, "typename": "", "startstops": ()}


@dataclass
class Chunk:
    """Executions since the last hand-over."""

    first_id: int
    #: ``WIDTH`` values a row.
    values: list[Any] = field(default_factory=list)
    # Exceptions to the rule, by row.
    statuses: list[tuple[int, str]] = field(default_factory=list)
    computation_starts: list[int] = field(default_factory=lambda: [0])
    computation_ids: list[str] = field(default_factory=lambda: [""])
    #: The executions that the rows needed, one row's after the other's; None or negative where they are not known by number.
    dependencies: list[int | None] = field(default_factory=list)
    edges_dropped: int = 0
    #: Computations of groups whose rows may be none of the computation that was current then.
    owners: dict[Any, str] = field(default_factory=dict)
    #: When it was handed over.
    seen_us: int = 0

    @property
    def rows(self) -> int:
        return len(self.values) // WIDTH

    def groups(self) -> set[Any]:
        """The task groups that had executions."""
        return set(self.values[1::WIDTH])


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
    keep, depends_on = chunk.values.extend, chunk.dependencies.append
    total = 0
    current = ""
    # What is known of each key the scheduler still knows: minus the nanosecond it was assigned while it is processing, then
    # the number of its last execution, which names the two ends of an edge.
    live: dict[Any, int] = {}
    # Keys that became runnable while every thread was taken, and when.
    queued: dict[Any, int] = {}
    get_live, pop_live, pop_queued = live.get, live.pop, queued.pop
    most = MAX_DEPENDENCIES if edges else 0

    def transition(key: Any, start: str, finish: str, stimulus_id: str = "", **kw: Any) -> None:  # noqa: C901, PLR0912
        nonlocal total
        try:
            if start == "processing":
                if finish != "memory":
                    # It may be queued anew, which counts from then.
                    if queued and finish != "erred":
                        pop_queued(key, None)
                    on_other(key, start, finish, stimulus_id, kw)
                    return
                task = tasks[key]
                dependencies = task.dependencies
                count = len(dependencies)
                if count > most:
                    chunk.edges_dropped += count if most else 0
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
                # A plain loop: two maps and an extend cost 3 µs more, as most tasks have one to four dependencies.
                for dependency in dependencies:
                    depends_on(get_live(dependency.key))
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
        except KeyError as error:
            if finish == "memory" and key in tasks and not kw.keys() >= NOTHING.keys():
                transition(key, start, finish, stimulus_id, **{**NOTHING, **kw})
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
                execution.startstops or _moment(clock_ns()),
                assigned,
                pop_queued(execution.key, 0),
                0,
            )
        )
        total += 1

    def computation(id_: str) -> None:
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

    def rotate() -> Chunk:
        nonlocal chunk, keep, depends_on
        full, chunk = chunk, Chunk(total, computation_ids=[current])
        keep, depends_on = chunk.values.extend, chunk.dependencies.append
        full.seen_us = clock_ns() // 1000
        if full.computation_starts[-1] == full.rows and full.rows:
            full.computation_starts.pop()
            full.computation_ids.pop()
        return full

    return Executions(transition, add, computation, rotate, lambda: chunk.rows, lambda: len(live))


def _moment(now_ns: int) -> tuple[dict[str, Any], ...]:
    """The intervals of an execution that has none: killed with its worker, it ends where the scheduler learned of it."""
    now = now_ns / 1e9
    return ({"action": "compute", "start": now, "stop": now},)
