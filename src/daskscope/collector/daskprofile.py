"""Dask's own profile, drained where our sampler cannot run.

Dask counts a sample at every frame that called another one, never at the frame on top. So ``count(P) - sum(count(children))``
samples ended in one of P's children; with one child that one is known. Two prefixes or two seconds merged first would make
many children of one, so this is resolved per prefix and per bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..model.tables import PROFILES
from .columns import Columns, empty

Tree = dict[str, Any]
Stack = tuple[str, ...]


class DaskProfile:
    """Drains the buckets of ``worker.profile_keys_history`` that were not there before."""

    def __init__(self, worker: Any, *, interval: float, cycle: float) -> None:
        self._worker = worker
        self._cycle = cycle
        self._expected = max(round(cycle / interval), 1)
        self._last = self._newest()

    def drain(self, worker: str) -> Columns:
        columns = empty(PROFILES)
        for stop, trees in self._new_buckets():
            for prefix, tree in list(trees.items()):
                for stack, count in resolved(tree):
                    self._append(columns, worker, stop, str(prefix), stack, count)
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
        columns["ticks"].append(0)  # Dask does not say how often it looked
        columns["ticks_expected"].append(self._expected)


def resolved(tree: Tree) -> Iterator[tuple[Stack, int]]:
    """Whole stacks with their counts. What cannot be told apart is counted at the caller, and the sum is always exact."""
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
    # A child without counts was seen on top, at least once; the rest may have been on top of any of them.
    for child, child_path in zip(children, paths, strict=True):
        if not child["count"] and leaves:
            leaves -= 1
            yield child_path, 1
    if leaves:
        yield path, leaves


def _frame(description: dict[str, Any]) -> str:
    fields = (description.get("filename"), description.get("name"), description.get("line_number"))
    return "\t".join(str(field).replace("\t", " ").replace("\n", " ") for field in fields)
