"""The critical path of a computation: the chain of executions that determined when it ended, and the time between them.

An execution starts when its inputs exist and a thread is free. So the step before it is the input that stopped last or, if that
stopped later, the execution that occupied its thread until then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.executions import edge_rows
from daskscope.analysis.grouping import where
from daskscope.analysis.intervals import task_intervals, union_us
from daskscope.model.recording import Recording
from daskscope.model.table import Array, Table


@dataclass(frozen=True)
class Step:
    """One execution on the path. ``wait_us`` is the time since the end of the step before, and has three parts."""

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
    #: The rest: messages, and work of the scheduler and the worker.
    scheduler_us: int = 0
    #: Whether the step before it occupied the same thread, rather than produced an input.
    same_thread: bool = False


@dataclass(frozen=True)
class CriticalPath:
    """The path to the execution of a computation that stopped last; lengths in microseconds."""

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
    scheduler_us: int
    #: Compute time of the longest chain of dependencies: a lower bound of the run time with any number of workers.
    bound_us: int
    #: Compute time on the path by prefix, longest first.
    by_prefix: tuple[tuple[str, int], ...]
    #: In order of time.
    steps: tuple[Step, ...]


UNKNOWN = CriticalPath(
    known=False, computation="", length_us=0, compute_us=0, wait_us=0, queue_us=0, transfer_us=0, scheduler_us=0,
    bound_us=0, by_prefix=(), steps=(),
)  # fmt: skip


def critical_path(recording: Recording, computation: str | None = None) -> CriticalPath:
    """Return the path of a computation; by default of the one that took longest."""
    tasks = recording["tasks"]
    if not recording["edges"].rows:
        return UNKNOWN
    # A killed or cancelled execution produced nothing.
    ran = ~where(tasks.strings("status"), "killed", "cancelled")
    name = _longest(tasks, ran) if computation is None else computation
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
    path = _walk(tasks, rows, dependents, inputs)
    steps = _steps(tasks, path)
    by_prefix: dict[str, int] = {}
    for step in steps:
        by_prefix[step.prefix] = by_prefix.get(step.prefix, 0) + int(durations[step.task_row])
    return CriticalPath(
        known=True,
        computation=name,
        length_us=max(0, steps[-1].stop_us - steps[0].start_us),
        compute_us=sum(by_prefix.values()),
        wait_us=sum(step.wait_us for step in steps),
        queue_us=sum(step.queue_us for step in steps),
        transfer_us=sum(step.transfer_us for step in steps),
        scheduler_us=sum(step.scheduler_us for step in steps),
        bound_us=_bound(tasks["id"], durations, rows, dependents, inputs),
        by_prefix=tuple(sorted(by_prefix.items(), key=lambda item: (-item[1], item[0]))),
        steps=steps,
    )


def _longest(tasks: Table, ran: Array) -> str:
    """Return the computation whose executions span the longest time."""
    names = tasks.strings("computation")
    size = len(names.values)
    first, last = np.full(size, np.iinfo(np.int64).max), np.zeros(size, dtype=np.int64)
    np.minimum.at(first, names.codes[ran], tasks["start_us"][ran])
    np.maximum.at(last, names.codes[ran], tasks["stop_us"][ran])
    return str(names.values[int(np.argmax(np.where(last > 0, last - np.minimum(first, last), -1)))]) if size else ""


def _walk(tasks: Table, rows: Array, dependents: Array, inputs: Array) -> list[tuple[int, bool]]:
    """Return the rows of the path in order of time, each with whether it followed the row before on the same thread."""
    stops, ids = tasks["stop_us"], tasks["id"]
    order = np.lexsort((ids[inputs], stops[inputs]))
    latest = np.full(tasks.rows, -1, dtype=np.int64)
    # With several inputs, the one that stopped last is written last and stays.
    latest[dependents[order]] = inputs[order]
    previous = _previous_on_thread(tasks, rows)
    row = int(rows[np.lexsort((ids[rows], stops[rows]))[-1]])
    path: list[tuple[int, bool]] = []
    while row >= 0:
        before, on_thread = int(latest[row]), int(previous[row])
        # The thread was the last to become free, and only then could the execution start.
        same = on_thread >= 0 and (before < 0 or bool(stops[on_thread] > stops[before]))
        path.append((row, same))
        row = on_thread if same else before
    return path[::-1]


def _previous_on_thread(tasks: Table, rows: Array) -> Array:
    """Return the execution before each one on its thread, if it began later than it was assigned; else -1."""
    found = np.full(tasks.rows, -1, dtype=np.int64)
    rows = rows[tasks["thread"][rows] != 0]
    worker, thread, ids = tasks.strings("worker").codes, tasks["thread"], tasks["id"]
    order = rows[np.lexsort((ids[rows], thread[rows], worker[rows]))]
    earlier, later = order[:-1], order[1:]
    same = (worker[earlier] == worker[later]) & (thread[earlier] == thread[later])
    # While the earlier one ran, the later one was waiting for a thread.
    ready = np.where(tasks["queued_us"] > 0, tasks["queued_us"], tasks["assigned_us"])[later]
    waited = (ready > 0) & (ready < tasks["stop_us"][earlier])
    found[later[same & waited]] = earlier[same & waited]
    return found


def _steps(tasks: Table, path: list[tuple[int, bool]]) -> tuple[Step, ...]:
    index = np.array([row for row, _ in path], dtype=np.int64)
    stops = tasks["stop_us"][index]
    # Clocks of workers differ by milliseconds: an execution does not start before it is assigned.
    starts = np.minimum(np.maximum(tasks["start_us"][index], tasks["assigned_us"][index]), stops)
    begins = np.minimum(np.concatenate((starts[:1], stops[:-1])), starts)
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
        key, prefix, worker = (text[i] for text in texts)
        wait, rest = start - begin, start - begin - transfer - queue
        found.append(Step(row, key, prefix, worker, start, int(stops[i]), wait, queue, transfer, rest, same))
    return tuple(found)


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
