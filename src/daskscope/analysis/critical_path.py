"""The chain of executions that the end had to wait for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.executions import edge_rows
from daskscope.analysis.grouping import where
from daskscope.model.recording import Recording
from daskscope.model.table import Array, Table


@dataclass(frozen=True)
class Step:
    """One execution on the way; ``wait_us`` passed between the end of the step before and its start."""

    task_row: int
    key: str
    prefix: str
    worker: str
    start_us: int
    stop_us: int
    wait_us: int


@dataclass(frozen=True)
class CriticalPath:
    """From the execution that stopped last back to one that waited for none; lengths in microseconds."""

    #: Whether it is known which execution needed which.
    known: bool
    #: From the start of the first step to the end of the last.
    length_us: int
    compute_us: int
    wait_us: int
    #: The longest chain of computing there is: no number of workers could have been faster.
    bound_us: int
    #: Computing on the path by prefix, the longest first.
    by_prefix: tuple[tuple[str, int], ...]
    #: In the order of time.
    steps: tuple[Step, ...]


UNKNOWN = CriticalPath(known=False, length_us=0, compute_us=0, wait_us=0, bound_us=0, by_prefix=(), steps=())


def critical_path(recording: Recording) -> CriticalPath:
    """Walk back from the execution that stopped last, always to the input that stopped last."""
    tasks = recording["tasks"]
    if not recording["edges"].rows:
        return UNKNOWN
    dependents, inputs = edge_rows(recording)
    turns = _turns(tasks)
    # An input that stopped after what needed it is a matter of clocks; followed, it could lead in circles.
    forward = turns[inputs] < turns[dependents]
    dependents, inputs = dependents[forward], inputs[forward]
    if not len(inputs):
        return UNKNOWN
    durations = np.maximum(tasks["stop_us"] - tasks["start_us"], 0)
    steps = _steps(tasks, _walk(tasks, turns, dependents, inputs))
    by_prefix: dict[str, int] = {}
    for step in steps:
        by_prefix[step.prefix] = by_prefix.get(step.prefix, 0) + int(durations[step.task_row])
    return CriticalPath(
        known=True,
        length_us=max(0, steps[-1].stop_us - steps[0].start_us),
        compute_us=sum(by_prefix.values()),
        wait_us=sum(step.wait_us for step in steps),
        bound_us=_bound(durations, turns, dependents, inputs),
        by_prefix=tuple(sorted(by_prefix.items(), key=lambda item: (-item[1], item[0]))),
        steps=steps,
    )


def _turns(tasks: Table) -> Array:
    """For each execution when its turn comes in the order in which they stopped."""
    order = np.lexsort((tasks["id"], tasks["start_us"], tasks["stop_us"]))
    turns = np.empty(tasks.rows, dtype=np.int64)
    turns[order] = np.arange(tasks.rows)
    return turns


def _walk(tasks: Table, turns: Array, dependents: Array, inputs: Array) -> list[int]:
    """Rows of the path in the order of time."""
    order = np.argsort(turns[inputs], kind="stable")
    latest = np.full(tasks.rows, -1, dtype=np.int64)
    # Of several inputs the last one stays.
    latest[dependents[order]] = inputs[order]
    # When a killed execution stopped nobody measured.
    killed = where(tasks.strings("status"), "killed")
    row = int(np.argmax(np.where(killed, -1, turns)))
    path = []
    while row >= 0:
        path.append(row)
        row = int(latest[row])
    return path[::-1]


def _steps(tasks: Table, rows: list[int]) -> tuple[Step, ...]:
    index = np.array(rows, dtype=np.int64)
    starts, stops = tasks["start_us"][index], tasks["stop_us"][index]
    waits = np.maximum(starts - np.concatenate((starts[:1], stops[:-1])), 0)
    texts = [tasks.strings(name).take(index).to_numpy().tolist() for name in ("key", "prefix", "worker")]
    return tuple(map(Step, rows, *texts, starts.tolist(), stops.tolist(), waits.tolist()))


def _bound(durations: Array, turns: Array, dependents: Array, inputs: Array) -> int:
    """The longest sum of durations along any chain."""
    order = np.argsort(turns[dependents], kind="stable")
    lengths = durations.tolist()
    # The longest chain that leads up to each execution; when it is looked at as an input, all its own inputs have been.
    before = [0] * len(lengths)
    for dependent, given in zip(dependents[order].tolist(), inputs[order].tolist(), strict=True):
        length = before[given] + lengths[given]
        if length > before[dependent]:
            before[dependent] = length
    return int((np.array(before, dtype=np.int64) + durations).max())
