"""Drain Dask's own profile, on interpreters where the sampler cannot run.

Dask counts a sample at every frame that called another frame, never at the innermost frame. So ``count(P) -
sum(count(children))`` samples ended in one of P's children; if P has one child, it is known which. Merging prefixes or seconds
first would give P more children, so samples are resolved per prefix and per bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask.config
from dask.utils import parse_timedelta

from ...model.tables import PROFILES
from ..aliases import PLAIN, Aliases
from ..rows import Columns, empty

Tree = dict[str, Any]
Stack = tuple[str, ...]


class DaskProfile:
    """Drains the new buckets of ``worker.profile_keys_history``."""

    def __init__(self, worker: Any, *, interval: float, cycle: float, aliases: Aliases = PLAIN) -> None:
        self._worker = worker
        self._aliases = aliases
        self._cycle = cycle
        self._expected = max(round(cycle / interval), 1)
        self._last = self._newest()

    def drain(self, worker: str) -> Columns:
        columns = empty(PROFILES)
        if not self._aliases.keys:
            # Dask's profile has the prefixes only. Those of tasks that are gone by now get an alias.
            for key in list(self._worker.state.tasks):
                self._aliases.note(key)
        for stop, trees in self._new_buckets():
            for prefix, tree in list(trees.items()):
                for stack, count in resolve_stacks(tree):
                    self._append(columns, worker, stop, self._aliases.group(prefix), stack, count)
        return columns

    def _newest(self) -> Any:
        history = getattr(self._worker, "profile_keys_history", None)
        return history[-1] if history else None

    def _new_buckets(self) -> list[tuple[float, dict[str, Tree]]]:
        history = list(getattr(self._worker, "profile_keys_history", None) or ())
        new = []
        for bucket in reversed(history):
            if bucket is self._last:
                break
            new.append(bucket)
        if history:
            self._last = history[-1]
        return new[::-1]

    def _append(self, columns: Columns, worker: str, stop: float, prefix: str, stack: Stack, count: int) -> None:
        columns["start_us"].append(round((stop - self._cycle) * 1e6))
        columns["stop_us"].append(round(stop * 1e6))
        columns["worker"].append(worker)
        columns["kind"].append("compute")
        columns["source"].append("dask")
        columns["prefix"].append(prefix)
        columns["span"].append("")
        columns["stack"].append(stack)
        columns["count"].append(count)
        columns["ticks"].append(0)  # Dask does not count its ticks
        columns["ticks_expected"].append(self._expected)
        for name in ("wall_us", "cpu_us", "runqueue_us", "switches", "looping"):
            columns[name].append(0)


def dask_timing(name: str, default: float) -> float:
    """Return a duration of Dask's profiler configuration in seconds; plain numbers there are milliseconds."""
    value = dask.config.get(f"distributed.worker.profile.{name}", None)
    try:
        return float(parse_timedelta(value, default="ms")) if value else default
    except (ValueError, KeyError, TypeError):
        return default


def resolve_stacks(tree: Tree) -> Iterator[tuple[Stack, int]]:
    """Yield whole stacks with their counts. Samples of an unknown child count for the caller; the sum is always exact."""
    pending: list[tuple[Stack, Tree]] = [((), tree)]
    while pending:
        path, node = pending.pop()
        children = list(node["children"].values())
        paths = [(*path, _frame(child["description"])) for child in children]
        leaves = node["count"] - sum(child["count"] for child in children)
        if leaves > 0:
            yield from _leaf_counts(path, children, paths, leaves)
        pending += zip(paths, children, strict=True)


def _leaf_counts(path: Stack, children: list[Tree], paths: list[Stack], leaves: int) -> Iterator[tuple[Stack, int]]:
    if len(children) == 1:
        yield paths[0], leaves
        return
    # A child without a count was innermost at least once; the remaining samples may belong to any child.
    for child, child_path in zip(children, paths, strict=True):
        if not child["count"] and leaves:
            leaves -= 1
            yield child_path, 1
    if leaves:
        yield path, leaves


def _frame(description: dict[str, Any]) -> str:
    fields = (description.get("filename"), description.get("name"), description.get("line_number"))
    return "\t".join(str(field).replace("\t", " ").replace("\n", " ") for field in fields)
