"""Dask's own profile becomes whole stacks with their innermost frames."""

from __future__ import annotations

import sys
from collections import deque
from types import SimpleNamespace
from typing import Any

from distributed import profile

from daskscope.collector.profiles import DaskProfile, resolve_stacks
from daskscope.model.tables import PROFILES


def node(name: str, count: int, *children: dict[str, Any]) -> dict[str, Any]:
    description = {"filename": "f.py", "name": name, "line_number": 7, "line": ""}
    return {
        "count": count,
        "identifier": name,
        "description": description,
        "children": {child["identifier"]: child for child in children},
    }


def stacks(tree: dict[str, Any]) -> dict[tuple[str, ...], int]:
    """Return the function names of stacks."""
    found: dict[tuple[str, ...], int] = {}
    for stack, count in resolve_stacks(tree):
        names = tuple(frame.split("\t")[1] for frame in stack)
        found[names] = found.get(names, 0) + count
    return found


def test_the_innermost_frame_below_an_only_child_is_exact() -> None:
    assert stacks(node("root", 5, node("a", 5, node("b", 0)))) == {("a", "b"): 5}


def test_a_frame_can_be_leaf_and_caller() -> None:
    assert stacks(node("root", 5, node("a", 2, node("b", 0)))) == {("a",): 3, ("a", "b"): 2}


def test_leaves_seen_once_each_are_exact() -> None:
    assert stacks(node("root", 2, node("a", 0), node("b", 0))) == {("a",): 1, ("b",): 1}


def test_ambiguous_samples_are_counted_at_the_caller() -> None:
    tree = node("root", 9, node("a", 9, node("b", 0), node("c", 0), node("d", 2, node("e", 0))))
    assert stacks(tree) == {("a", "b"): 1, ("a", "c"): 1, ("a",): 5, ("a", "d", "e"): 2}


def test_no_sample_is_lost_or_invented() -> None:
    tree = node("root", 9, node("a", 9, node("b", 0), node("c", 0), node("d", 2, node("e", 0))))
    assert sum(stacks(tree).values()) == 9


def test_a_tree_made_by_dask_names_the_function_on_top() -> None:
    def outer() -> dict[str, Any]:
        return inner()

    def inner() -> dict[str, Any]:
        state: dict[str, Any] = profile.create()
        for _ in range(3):
            profile.process(sys._getframe(), True, state)
        return state

    ((stack, count),) = resolve_stacks(outer())
    assert count == 3
    assert [frame.split("\t")[1] for frame in stack][-2:] == ["outer", "inner"]


def bucket(stop: float, **trees: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    return stop, trees


def test_a_bucket_becomes_rows_per_prefix() -> None:
    worker = SimpleNamespace(profile_keys_history=deque(maxlen=10))
    drain = DaskProfile(worker, interval=0.01, cycle=1.0)
    worker.profile_keys_history.append(bucket(10.0, x=node("root", 5, node("a", 0)), y=node("root", 1, node("b", 0))))
    columns = drain.drain("tcp://w")
    assert columns["prefix"] == ["x", "y"]
    assert columns["count"] == [5, 1]
    assert columns["stack"] == [("f.py\ta\t7",), ("f.py\tb\t7",)]
    assert columns["source"] == ["dask", "dask"]
    assert (columns["start_us"][0], columns["stop_us"][0]) == (9_000_000, 10_000_000)
    assert columns["ticks_expected"] == [100, 100]


def test_a_bucket_is_drained_once() -> None:
    worker = SimpleNamespace(profile_keys_history=deque(maxlen=10))
    drain = DaskProfile(worker, interval=0.01, cycle=1.0)
    worker.profile_keys_history.append(bucket(10.0, x=node("root", 5, node("a", 0))))
    drain.drain("w")
    worker.profile_keys_history.append(bucket(11.0, x=node("root", 7, node("a", 0))))
    assert drain.drain("w")["count"] == [7]
    assert drain.drain("w")["count"] == []


def test_buckets_from_before_the_start_are_left_out() -> None:
    worker = SimpleNamespace(profile_keys_history=deque([bucket(10.0, x=node("root", 5, node("a", 0)))]))
    assert DaskProfile(worker, interval=0.01, cycle=1.0).drain("w")["count"] == []


def test_every_column_of_the_table_is_there() -> None:
    assert tuple(DaskProfile(SimpleNamespace(), interval=0.01, cycle=1.0).drain("w")) == PROFILES.names
