"""Recognize the runs of coffea in a recording, and the phase of each execution in them.

coffea's ``Runner`` submits, with names of its own: a task per file that counts its events (preprocess), one that broadcasts the
processor, a task per chunk (process), and a tree of tasks that add up the results (merge). Dependencies and types of results
tell them apart, so phases are also known for recordings without ``chunks``. With dask-awkward there are no such phases: tasks
that read a partition are the process phase.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from daskscope.analysis.columns.grouping import flat_strings, where
from daskscope.analysis.executions import edge_rows
from daskscope.model.recording import Array, Recording

#: The type of the result of a preprocess task.
ACCUMULATOR = "set_accumulator"
#: The type of the result of a task that skipped its file or chunk, because ``skipbadfiles`` is set.
SKIPPED = "NoneType"
EXECUTOR = "coffea/processor/executor.py"


class Phase(IntEnum):
    """The phase of an execution."""

    OTHER = 0
    PREPROCESS = 1
    BROADCAST = 2
    PROCESS = 3
    MERGE = 4


@dataclass(frozen=True)
class RunRows:
    """One run: its computations, and its executions by phase as rows of ``tasks``."""

    #: Runner or dask-awkward.
    kind: str
    computations: tuple[str, ...]
    preprocess: Array
    process: Array
    merge: Array


def uses_coffea(recording: Recording) -> bool:
    """Return whether a recording has tasks of coffea or uproot; fast, because most have none."""
    if where(recording["chunks"].strings("kind"), "process", "read").any():
        return True
    if any(str(text).endswith(ACCUMULATOR) for text in recording["tasks"].strings("type").values):
        return True
    frames = flat_strings(recording["profiles"].lists("stack")).values
    return any(EXECUTOR in str(frame).replace("\\", "/").partition("\t")[0] for frame in frames)


def phases(recording: Recording) -> Array:
    """Return the ``Phase`` of each execution, if the recording uses coffea's Runner."""
    tasks = recording["tasks"]
    found = np.full(tasks.rows, Phase.OTHER, dtype=np.int8)
    prefixes, types = tasks.strings("prefix"), tasks.strings("type")
    is_accumulator = _ends_with(types.values, ACCUMULATOR)[types.codes]
    dependencies, broadcasts = _dependencies(recording)
    no_result = _ends_with(types.values, SKIPPED)[types.codes]
    retries = where(prefixes, "automatic_retries")
    found[retries & (dependencies == 0) & (is_accumulator | no_result)] = Phase.PREPROCESS
    found[where(prefixes, "lambda") & (dependencies == 0)] = Phase.BROADCAST
    found[(dependencies == 1) & (broadcasts == 1)] = Phase.PROCESS
    merges = where(prefixes, "reduce") & (dependencies > 0)
    found[merges] = Phase.MERGE
    found[merges & is_accumulator] = Phase.PREPROCESS
    found[_with_chunks(recording, "process")] = Phase.PROCESS
    return found


def runs(recording: Recording) -> list[RunRows]:
    """Return the runs in order of their start."""
    if not uses_coffea(recording):
        return []
    tasks = recording["tasks"]
    phase = phases(recording)
    names = tasks.strings("computation")
    by_computation: dict[str, Array] = {
        str(name): np.flatnonzero(names.codes == code) for code, name in enumerate(names.values)
    }
    partitions = np.zeros(tasks.rows, dtype=bool)
    partitions[_with_chunks(recording, "read")] = True
    order = sorted(recording["computations"].records("start_us", "computation", "client"))
    known = {computation for _, computation, _ in order}
    order += [(0, name, "") for name in by_computation if name not in known]
    found: list[tuple[list[str], str]] = []
    waiting: dict[str, list[str]] = {}
    last: dict[str, list[str]] = {}
    for _, computation, client in order:
        rows = by_computation.get(computation, np.zeros(0, dtype=np.int64))
        held = set(phase[rows].tolist())
        if partitions[rows].any():
            found.append(([computation], "dask-awkward"))
        elif Phase.PROCESS in held and _is_runner(recording, phase, rows):
            members = [*waiting.pop(client, []), computation]
            found.append((members, "Runner"))
            last[client] = members
        elif held == {Phase.MERGE} and client in last:
            last[client].append(computation)
        elif held and held <= {Phase.PREPROCESS, Phase.BROADCAST}:
            waiting.setdefault(client, []).append(computation)
    return [_rows(kind, members, by_computation, phase, partitions) for members, kind in found]


def _rows(kind: str, members: list[str], by_computation: dict[str, Array], phase: Array, partitions: Array) -> RunRows:
    rows = np.concatenate([by_computation[name] for name in members if name in by_computation])
    if kind != "Runner":
        none = np.zeros(0, dtype=np.int64)
        return RunRows(kind, tuple(members), none, rows[partitions[rows]], none)
    parts = (rows[phase[rows] == wanted] for wanted in (Phase.PREPROCESS, Phase.PROCESS, Phase.MERGE))
    return RunRows(kind, tuple(members), *parts)


def _is_runner(recording: Recording, phase: Array, rows: Array) -> bool:
    """Return whether a computation is coffea's, and not another one whose tasks depend on a lambda."""
    if (phase[rows] == Phase.MERGE).any():
        return True
    with_chunks = np.zeros(recording["tasks"].rows, dtype=bool)
    with_chunks[_with_chunks(recording, "process")] = True
    return bool(with_chunks[rows].any())


def _with_chunks(recording: Recording, kind: str) -> Array:
    """Return the rows of executions whose key has a chunk of this kind."""
    chunks, tasks = recording["chunks"], recording["tasks"]
    keys = set(chunks["key"][where(chunks.strings("kind"), kind)].tolist())
    if not keys:
        return np.zeros(0, dtype=np.int64)
    held = tasks.strings("key").to_numpy().tolist()
    return np.array([row for row, key in enumerate(held) if key in keys], dtype=np.int64)


def _dependencies(recording: Recording) -> tuple[Array, Array]:
    """Return for each execution the number of its dependencies, and of those that broadcast a processor."""
    tasks = recording["tasks"]
    if not recording["edges"].rows:
        return _group_dependencies(recording)
    dependents, inputs = edge_rows(recording)
    is_broadcast = where(tasks.strings("prefix"), "lambda")[inputs]
    return (
        np.bincount(dependents, minlength=tasks.rows),
        np.bincount(dependents[is_broadcast], minlength=tasks.rows),
    )


def _group_dependencies(recording: Recording) -> tuple[Array, Array]:
    """Return the same from the task groups, if dependencies of tasks were not recorded."""
    tasks, groups = recording["tasks"], recording["groups"]
    rows = list(groups.records("computation", "group", "prefix", "dependencies"))
    prefixes = {group: prefix for _, group, prefix, _ in rows}
    counts = {
        (computation, group): (len(needed), sum(prefixes.get(name, name) == "lambda" for name in needed))
        for computation, group, _, needed in rows
    }
    held = [counts.get(key, (0, 0)) for key in tasks.records("computation", "group")]
    result = np.array(held, dtype=np.int64).reshape(-1, 2)
    return result[:, 0], result[:, 1]


def _ends_with(texts: Array, end: str) -> Array:
    return np.array([str(text).endswith(end) for text in texts], dtype=bool)
