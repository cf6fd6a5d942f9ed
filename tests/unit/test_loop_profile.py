"""Dask's profile of an event loop becomes rows, once, however many servers share the loop."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

from daskscope.analysis.profiles import loops_note
from daskscope.collector.profiles import MAX_BUCKETS, MAX_STACKS, LoopProfile
from daskscope.model.tables import PROFILES
from daskscope.testing import make_recording


def node(name: str, count: int, *children: dict[str, Any]) -> dict[str, Any]:
    description = {"filename": "f.py", "name": name, "line_number": 7, "line": ""}
    return {
        "count": count,
        "identifier": name,
        "description": description,
        "children": {child["identifier"]: child for child in children},
    }


def a_loop(*buckets: tuple[float, dict[str, Any]]) -> Any:
    return SimpleNamespace(profile=deque(buckets, maxlen=1000))


def make(io_loop: Any, kind: str = "scheduler") -> LoopProfile:
    return LoopProfile(io_loop, kind, interval=0.01, cycle=1.0)


def test_new_buckets_are_merged_by_stack() -> None:
    io_loop = a_loop((99.0, node("root", 9, node("before", 0))))
    profile = make(io_loop, "worker event loop")
    io_loop.profile.append((101.0, node("root", 3, node("a", 3, node("b", 0)))))
    io_loop.profile.append((102.0, node("root", 0)))
    io_loop.profile.append((103.0, node("root", 2, node("a", 2, node("b", 0)))))

    columns = profile.columns(profile.new_buckets(), "tcp://w", delay=5.0)

    assert columns["stack"] == [("f.py\ta\t7", "f.py\tb\t7")]
    assert columns["count"] == [5]
    assert (columns["start_us"], columns["stop_us"]) == ([105_000_000], [108_000_000])
    assert columns["ticks_expected"] == [300]
    assert (columns["kind"], columns["source"], columns["worker"]) == (["worker event loop"], ["dask"], ["tcp://w"])
    assert set(columns) == set(PROFILES.names)
    assert {len(values) for values in columns.values()} == {1}
    assert profile.new_buckets() == []


def test_buckets_and_stacks_are_limited_and_counted() -> None:
    io_loop = a_loop()
    profile = make(io_loop)
    for second in range(MAX_BUCKETS + 3):
        io_loop.profile.append((float(second), node("root", 1, node("a", 0))))
    assert len(profile.new_buckets()) == MAX_BUCKETS
    assert profile.dropped == 3
    wide = node("root", MAX_STACKS + 5, *(node(f"f{n}", 0) for n in range(MAX_STACKS + 5)))
    assert len(profile.columns([(1.0, wide)], "scheduler")["count"]) == MAX_STACKS
    assert profile.dropped == 8


def test_a_shared_event_loop_is_drained_once_at_a_time() -> None:
    io_loop = a_loop()
    first, second = make(io_loop), make(io_loop, "worker event loop")
    io_loop.profile.append((1.0, node("root", 1, node("a", 0))))
    assert (len(first.new_buckets()), len(second.new_buckets())) == (1, 0)
    second.close()
    assert make(io_loop).new_buckets() == []
    first.close()
    third = make(io_loop)
    io_loop.profile.append((2.0, node("root", 1, node("a", 0))))
    assert len(third.new_buckets()) == 1


def test_without_a_history_there_are_no_rows() -> None:
    for io_loop in (None, SimpleNamespace(), a_loop()):
        assert make(io_loop).new_buckets() == []
    assert make(None).columns([], "scheduler")["count"] == []


def test_the_note_says_why_event_loops_are_missing() -> None:
    cluster = {"cluster": "c", "versions": '{"python": "3.11.7.final.0"}'}
    newer = {**cluster, "versions": '{"python": "3.12.1.final.0"}'}
    row = {"kind": "scheduler", "stack": ["f.py\ta\t7"], "count": 1}
    assert loops_note(make_recording({"clusters": [cluster]})) == "Dask does not sample event loops on Python 3.11."
    assert loops_note(make_recording({"clusters": [cluster], "profiles": [row]})) == ""
    assert loops_note(make_recording({"clusters": [newer]})) == loops_note(make_recording({})) == ""
