"""Calls of actor methods as executions: Dask has no tasks for them, but they compute on a thread of their worker."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from daskscope.model.recording import Recording
from daskscope.model.table import Array, Strings, Table, concatenate, empty_values, object_array

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
