"""The critical path of a computation: the chain of executions that determined when it ended, and the time between them.

An execution starts when its inputs exist and a thread is free. The step before it is usually the input that the scheduler learned
of last. There is one exception: if the execution was ready when its thread started another one, that other one is the step before.

If the other one was already running, the execution waited only for the rest of it, which is ``busy_us``. Before that, it waited for
its input. Otherwise a task that becomes ready 1 ms before a thread is free would follow the whole history of that thread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.columns.grouping import where
from daskscope.analysis.columns.intervals import task_intervals, union_us
from daskscope.analysis.executions import edge_rows
from daskscope.model.recording import Array, Completeness, Recording, Table

#: Between the end of an execution and the start of its dependent, messages go to the scheduler and back: 2 to 7 ms. Its thread
#: may start another execution meanwhile, which was not preferred to the dependent.
ROUND_TRIP_US = 10_000


@dataclass(frozen=True)
class Step:
    """One execution on the path. ``wait_us`` is the time since the end of the step before, and has four parts."""

    task_row: int
    key: str
    prefix: str
    worker: str
    start_us: int
    stop_us: int
    wait_us: int
    #: Ready to run, but queued at the scheduler.
    queue_us: int = 0
    #: Its worker fetched inputs.
    transfer_us: int = 0
    #: Assigned to its worker, but its thread was busy with an execution that is not on the path.
    busy_us: int = 0
    #: The rest: messages, and work of the scheduler and the worker.
    scheduler_us: int = 0
    #: Whether the step before it occupied the same thread, rather than produced an input.
    same_thread: bool = False


@dataclass(frozen=True)
class CriticalPath:
    """The path to the execution of a computation that ended last; lengths in microseconds."""

    #: Whether dependencies or threads of executions were recorded.
    known: bool
    #: The computation it belongs to: the longest one. Empty if computations were not recorded.
    computation: str
    #: From the start of the first step to the end of the last.
    length_us: int
    compute_us: int
    wait_us: int
    queue_us: int
    transfer_us: int
    busy_us: int
    scheduler_us: int
    #: Compute time of the longest chain of dependencies: a lower bound of the run time with any number of workers.
    bound_us: int
    #: Compute time on the path by prefix, longest first.
    by_prefix: tuple[tuple[str, int], ...]
    #: In order of time.
    steps: tuple[Step, ...]


UNKNOWN = CriticalPath(
    known=False, computation="", length_us=0, compute_us=0, wait_us=0, queue_us=0, transfer_us=0, busy_us=0,
    scheduler_us=0, bound_us=0, by_prefix=(), steps=(),
)  # fmt: skip


def critical_path(recording: Recording, computation: str | None = None) -> CriticalPath:
    """Return the path of a computation; by default of the one that took longest."""
    tasks = recording["tasks"]
    if not recording["edges"].rows:
        return UNKNOWN
    # A killed or cancelled execution produced nothing.
    ran = ~where(tasks.strings("status"), "killed", "cancelled")
    name = longest_computation(tasks, ran) if computation is None else computation
    rows = np.flatnonzero(ran & where(tasks.strings("computation"), name))
    dependents, inputs = edge_rows(recording)
    if not (inputs != dependents).any() or not len(rows):
        return UNKNOWN
    inside = np.zeros(tasks.rows, dtype=bool)
    inside[rows] = True
    # Executions are numbered as the scheduler learned of their end. An input ends before its dependent starts, whatever clocks say.
    forward = (tasks["id"][inputs] < tasks["id"][dependents]) & inside[dependents] & inside[inputs]
    dependents, inputs = dependents[forward], inputs[forward]
    durations = np.maximum(tasks["stop_us"] - tasks["start_us"], 0)
    previous = previous_on_thread(tasks, rows)
    path = _walk(tasks, rows, last_inputs(tasks, dependents, inputs), previous)
    if _lacks_inputs(recording, path[0][0]):
        return UNKNOWN
    steps = _steps(tasks, path, previous)
    by_prefix: dict[str, int] = {}
    for step in steps:
        by_prefix[step.prefix] = by_prefix.get(step.prefix, 0) + step.stop_us - step.start_us
    return CriticalPath(
        known=True,
        computation=name,
        length_us=max(0, steps[-1].stop_us - steps[0].start_us),
        compute_us=sum(by_prefix.values()),
        wait_us=sum(step.wait_us for step in steps),
        queue_us=sum(step.queue_us for step in steps),
        transfer_us=sum(step.transfer_us for step in steps),
        busy_us=sum(step.busy_us for step in steps),
        scheduler_us=sum(step.scheduler_us for step in steps),
        bound_us=_bound(tasks["id"], durations, rows, dependents, inputs),
        by_prefix=tuple(sorted(by_prefix.items(), key=lambda item: (-item[1], item[0]))),
        steps=steps,
    )


def _lacks_inputs(recording: Recording, row: int) -> bool:
    """Return whether an execution lacks inputs because their edges were dropped, as very many inputs of a task are."""
    edges = recording.completeness.get("edges", Completeness())
    if not (edges.dropped or edges.missing):
        return False
    tasks, groups = recording["tasks"], recording["groups"]
    of_prefix = np.flatnonzero(where(groups.strings("prefix"), str(tasks["prefix"][row])))
    depends = bool((groups.lists("dependencies").lengths[of_prefix] > 0).any())
    return depends and not (recording["edges"]["task"] == tasks["id"][row]).any()


def longest_computation(tasks: Table, ran: Array) -> str:
    """Return the computation whose executions span the longest time."""
    names = tasks.strings("computation")
    size = len(names.values)
    first, last = np.full(size, np.iinfo(np.int64).max), np.zeros(size, dtype=np.int64)
    np.minimum.at(first, names.codes[ran], tasks["start_us"][ran])
    np.maximum.at(last, names.codes[ran], tasks["stop_us"][ran])
    return str(names.values[int(np.argmax(np.where(last > 0, last - np.minimum(first, last), -1)))]) if size else ""


def last_inputs(tasks: Table, dependents: Array, inputs: Array) -> Array:
    """Return the input of each execution that the scheduler learned of last, or -1.

    Only then could it assign the dependent. Times of ends come from the workers' clocks, which differ by milliseconds.
    """
    found = np.full(tasks.rows, -1, dtype=np.int64)
    # With several inputs, the last one is written last and stays.
    order = np.argsort(tasks["id"][inputs], kind="stable")
    found[dependents[order]] = inputs[order]
    return found


def _walk(tasks: Table, rows: Array, last_inputs: Array, previous: Array) -> list[tuple[int, bool]]:
    """Return the rows of the path in order of time, each with whether it followed the row before on the same thread."""
    had_to_wait = _was_passed_over(tasks, rows, last_inputs, previous)
    row = int(rows[np.argmax(tasks["id"][rows])])
    path: list[tuple[int, bool]] = []
    while row >= 0:
        same = bool(had_to_wait[row])
        path.append((row, same))
        row = int(previous[row] if same else last_inputs[row])
    return path[::-1]


def previous_on_thread(tasks: Table, rows: Array) -> Array:
    """Return the execution before each one on its thread; -1 if there is none."""
    found = np.full(tasks.rows, -1, dtype=np.int64)
    rows = rows[tasks["thread"][rows] != 0]
    worker, thread, ids = tasks.strings("worker").codes, tasks["thread"], tasks["id"]
    order = rows[np.lexsort((ids[rows], thread[rows], worker[rows]))]
    earlier, later = order[:-1], order[1:]
    same = (worker[earlier] == worker[later]) & (thread[earlier] == thread[later])
    found[later[same]] = earlier[same]
    return found


def _was_passed_over(tasks: Table, rows: Array, last_inputs: Array, previous: Array) -> Array:
    """Return whether each execution was ready when its thread started the one before.

    Without an input it is enough that the one before was running: nothing else on the path explains the time before.
    """
    found = np.zeros(tasks.rows, dtype=bool)
    rows = rows[previous[rows] >= 0]
    earlier, inputs = previous[rows], last_inputs[rows]
    queued, assigned = tasks["queued_us"][rows], tasks["assigned_us"][rows]
    known = np.where(queued > 0, queued, assigned)
    # The inputs end before, whatever clocks say. What the scheduler did not queue waits at its worker, for transfers too.
    ready = np.maximum(known, np.where(inputs >= 0, tasks["stop_us"][inputs], 0))
    at_worker = (queued == 0) | (queued >= assigned)
    ready = np.where(at_worker, np.maximum(ready, _transferred_us(tasks, rows)), ready)
    passed_over = np.where(
        inputs >= 0, ready + ROUND_TRIP_US <= tasks["start_us"][earlier], ready < tasks["stop_us"][earlier]
    )
    found[rows] = (known > 0) & passed_over
    return found


def _transferred_us(tasks: Table, rows: Array) -> Array:
    """Return when the last transfer for each row ended; 0 if it had none."""
    owners, actions, _, to_us = task_intervals(tasks, rows)
    moved = where(actions, "transfer")
    found = np.zeros(tasks.rows, dtype=np.int64)
    np.maximum.at(found, owners[moved], to_us[moved])
    return found[rows]


def _steps(tasks: Table, path: list[tuple[int, bool]], previous: Array) -> tuple[Step, ...]:
    index = np.array([row for row, _ in path], dtype=np.int64)
    # Clocks of workers differ by milliseconds: an execution does not start before it is assigned, nor before the step before it
    # ends. Otherwise the steps would overlap, and their times would add up to more than the path.
    stops = np.maximum.accumulate(tasks["stop_us"][index])
    starts = np.minimum(np.maximum(tasks["start_us"][index], tasks["assigned_us"][index]), stops)
    begins = np.concatenate((starts[:1], stops[:-1]))
    starts = np.maximum(starts, begins)
    owners, actions, from_us, to_us = task_intervals(tasks, index)
    moved = np.flatnonzero(where(actions, "transfer"))
    # By row, because a path through busy threads may have as many steps as a thread had executions.
    transfers: dict[int, list[tuple[int, int]]] = {}
    for owner, *times in zip(owners[moved].tolist(), from_us[moved].tolist(), to_us[moved].tolist(), strict=True):
        transfers.setdefault(owner, []).append((times[0], times[1]))
    texts = [tasks.strings(name).take(index).to_numpy().tolist() for name in ("key", "prefix", "worker")]
    found = []
    for i, (row, same) in enumerate(path):
        begin, start = int(begins[i]), int(starts[i])
        mine = np.array(transfers.get(row, ()), dtype=np.int64).reshape(-1, 2).clip(begin, start)
        transfer = union_us(mine[:, 0], mine[:, 1])
        queued, assigned = int(tasks["queued_us"][row]), int(tasks["assigned_us"][row])
        queue = max(0, min(assigned, start) - max(queued, begin)) if queued else 0
        queue = min(queue, start - begin - transfer)
        wait = start - begin
        busy = min(_busy_us(tasks, row, int(previous[row]), begin, start, mine), wait - transfer - queue)
        rest = wait - transfer - queue - busy
        key, prefix, worker = (text[i] for text in texts)
        found.append(Step(row, key, prefix, worker, start, int(stops[i]), wait, queue, transfer, busy, rest, same))
    return tuple(found)


def _busy_us(tasks: Table, row: int, before: int, begin: int, start: int, transfers: Array) -> int:
    """Return how long an assigned execution waited for the one before on its thread, without the time of transfers."""
    assigned = int(tasks["assigned_us"][row])
    from_us = max(begin, assigned)
    to_us = min(start, int(tasks["stop_us"][before]))
    if before < 0 or not assigned or to_us <= from_us:
        return 0
    meanwhile = transfers.clip(from_us, to_us)
    return to_us - from_us - union_us(meanwhile[:, 0], meanwhile[:, 1])


def _bound(ids: Array, durations: Array, rows: Array, dependents: Array, inputs: Array) -> int:
    """Return the longest sum of durations along any chain."""
    order = np.argsort(ids[dependents], kind="stable")
    lengths = durations.tolist()
    # The longest chain before each execution. Inputs are complete before they are used, because dependents are in order.
    before = [0] * len(lengths)
    for dependent, given in zip(dependents[order].tolist(), inputs[order].tolist(), strict=True):
        length = before[given] + lengths[given]
        if length > before[dependent]:
            before[dependent] = length
    return int((np.array(before, dtype=np.int64) + durations)[rows].max())
