"""Every microsecond of every thread is in exactly one category."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.cubes import cube_rows, cube_totals

from daskscope.analysis.columns.bins import Bins, Cube
from daskscope.analysis.executions import recomputed_rows
from daskscope.analysis.time.breakdown import CATEGORIES, Breakdown, breakdown
from daskscope.model.recording import Recording
from daskscope.model.tables import TABLES
from daskscope.report import schema
from daskscope.testing import make_recording
from daskscope.wire.file import read_recording

GOLDEN = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"
T = 1_700_000_000_000_000


def task(start: int, stop: int, worker: str = "a", status: str = "ok", **columns: Any) -> dict[str, Any]:
    return {"start_us": T + start, "stop_us": T + stop, "worker": worker, "status": status, **columns}


def intervals(*items: tuple[str, int, int]) -> dict[str, Any]:
    return {
        "interval_action": [action for action, _, _ in items],
        "interval_start_us": [T + start for _, start, _ in items],
        "interval_stop_us": [T + stop for _, _, stop in items],
        "interval_source": ["" for _ in items],
    }


def worker(name: str = "a", threads: int = 1, start: int = 0, end: int = 0, **columns: Any) -> dict[str, Any]:
    end_us = T + end if end else 0
    return {
        "worker": name,
        "server_id": f"{name}{start}",
        "nthreads": threads,
        "start_us": T + start,
        "end_us": end_us,
    } | columns


def split(found: Breakdown) -> dict[str, int]:
    return {category: us for category, us in found.split.items() if us}


def check(found: Breakdown, bins: Bins) -> None:
    """Check the invariants of any breakdown."""
    assert sum(found.split.values()) == found.thread_us
    assert found.idle_us == found.split["idle"]
    assert found.compute_us == found.split["cpu"] + found.split["noncpu"]
    assert 0 <= found.fully_idle_us <= bins.stop_us - bins.start_us
    sums = [by_category_and_bin(cube) for cube in (found.by_prefix, found.by_worker, found.by_span)]
    assert sums[0] == sums[1] == sums[2]
    assert Counter(found.split) == sum_over_bins(sums[0])
    for cube in (found.by_prefix, found.by_worker, found.by_span):
        assert (cube.measures["us"] > 0).all()


def by_category_and_bin(cube: Cube) -> Counter[tuple[str, int]]:
    found = Counter[tuple[str, int]]()
    for _, category, bin_, us in cube_rows(cube):
        found[category, bin_] += us
    return found


def sum_over_bins(cells: Counter[tuple[str, int]]) -> Counter[str]:
    found = Counter[str]()
    for (category, _), us in cells.items():
        found[category] += us
    return found


def test_the_categories_are_those_of_the_report() -> None:
    assert CATEGORIES == schema.CATEGORIES


def test_a_thread_is_computing_or_idle() -> None:
    recording = make_recording(
        {
            "workers": [worker("a", 2), worker("b", 1, 50, 90)],
            "tasks": [
                task(0, 30, prefix="add", span="s"),
                task(20, 60, prefix="mul"),
                task(60, 200, "b", prefix="add"),
            ],
        }
    )
    bins = Bins(T, 50, 2)
    found = breakdown(recording, bins)

    check(found, bins)
    assert found.thread_us == 200 + 40
    assert split(found) == {"cpu": 30 + 40 + 30, "idle": 140}
    assert found.fully_idle_us == 10
    assert cube_rows(found.by_prefix) == [
        ("add", "cpu", 0, 30),
        ("add", "cpu", 1, 30),
        ("mul", "cpu", 0, 30),
        ("mul", "cpu", 1, 10),
        ("", "idle", 0, 40),
        ("", "idle", 1, 100),
    ]
    assert cube_rows(found.by_worker) == [
        ("a", "cpu", 0, 60),
        ("a", "cpu", 1, 10),
        ("a", "idle", 0, 40),
        ("a", "idle", 1, 90),
        ("b", "cpu", 1, 30),
        ("b", "idle", 1, 10),
    ]
    assert cube_totals(found.by_span, "us") == {("s", "cpu"): 30, ("", "cpu"): 70, ("", "idle"): 140}


def test_other_activities_count_only_while_threads_are_free() -> None:
    recording = make_recording(
        {
            "workers": [worker("a", 1)],
            "tasks": [
                task(0, 70, **intervals(("transfer", 0, 40), ("disk-read", 0, 20), ("what", 0, 50))),
                task(200, 200, **intervals(("deserialize", 100, 110), ("disk-write", 110, 115))),
            ],
        }
    )
    bins = Bins(T, 100, 2)
    found = breakdown(recording, bins)

    check(found, bins)
    # 30 µs are left in the first bin for 60 µs of transfers.
    assert split(found) == {"cpu": 70, "transfer": 20, "disk": 10 + 5, "serialize": 10, "idle": 85}


def metric(prefix: str, activity: str, seconds: float, context: str = "execute") -> dict[str, Any]:
    return {"context": context, "prefix": prefix, "activity": activity, "unit": "seconds", "value": seconds}


def test_fine_metrics_divide_compute_time() -> None:
    recording = make_recording(
        {
            "workers": [worker("a", 1)],
            "tasks": [task(0, 10, prefix="add"), task(10, 21, prefix="mul"), task(30, 50, prefix="sub")],
            "activities": [
                metric("add", "thread-cpu", 1.0),
                metric("add", "thread-cpu", 1.0),
                metric("add", "thread-noncpu", 2.0),
                metric("mul", "thread-noncpu", 5.0),
                metric("sub", "thread-noncpu", 5.0, "get-data"),
                metric("unheard of", "thread-cpu", 5.0),
            ],
        }
    )
    bins = Bins(T, 7, 8)
    found = breakdown(recording, bins)

    check(found, bins)
    assert cube_totals(found.by_prefix, "us") == {
        ("add", "cpu"): 5,
        ("add", "noncpu"): 5,
        ("mul", "noncpu"): 11,
        ("sub", "cpu"): 20,
        ("", "idle"): 56 - 41,
    }


def test_waits_inside_of_p2p_tasks_are_transfers() -> None:
    def profile(*frames: str, wall: int, runqueue: int = 0) -> dict[str, Any]:
        times = {"wall_us": wall, "cpu_us": 0, "runqueue_us": runqueue, "switches": 0, "count": 1, "start_us": T}
        return {"kind": "compute", "prefix": "shuffle-transfer", "stack": list(frames), **times}

    recording = make_recording(
        {
            "workers": [worker("a", 1)],
            "tasks": [task(0, 10, prefix="shuffle-transfer"), task(10, 20, prefix="add")],
            "activities": [
                metric("shuffle-transfer", "p2p-shard-partition-cpu", 2.0),
                metric("shuffle-transfer", "p2p-shard-partition-noncpu", 6.0),
                metric("shuffle-transfer", "thread-noncpu", 2.0),
                metric("add", "thread-noncpu", 1.0),
            ],
            "profiles": [
                profile("/site-packages/pandas/core.py\ttake\t1", wall=1_000, runqueue=1_000),
                profile("/site-packages/distributed/shuffle/_core.py\tadd\t1", "/threading.py\twait\t9", wall=3_000),
            ],
        }
    )
    found = breakdown(recording, Bins(T, 1, 20))
    # A quarter of the waits are for a core.
    assert split(found) == {"cpu": 2, "transfer": 6, "noncpu": 12}
    assert {reason: us for reason, us in found.waiting_us.items() if us} == {"core": 2, "unknown": 10}


def test_wasted_work_is_failed() -> None:
    recording = make_recording(
        {
            "workers": [worker("a", 1)],
            "tasks": [
                task(0, 1, key="k"),
                task(1, 3, status="error", key="e"),
                task(3, 7, status="retried", key="r"),
                task(7, 7, status="killed", key="r"),
                task(7, 15, key="k"),
                task(15, 31, key="k", computation="another"),
            ],
        }
    )
    assert recomputed_rows(recording).tolist() == [True, False, False, False, False, False]
    bins = Bins(T, 32, 1)
    assert split(breakdown(recording, bins)) == {"failed": 1 + 2 + 4, "cpu": 8 + 16, "idle": 1}


def test_without_keys_nothing_counts_as_recomputed() -> None:
    tasks = [task(i, i + 1, key="add-1", group="add-1") for i in range(5)]

    assert not recomputed_rows(make_recording({"tasks": tasks})).any()
    assert recomputed_rows(make_recording({"tasks": tasks[:2]})).tolist() == [True, False]


def test_executions_beyond_the_thread_time_are_scaled_down() -> None:
    recording = make_recording(
        {
            "workers": [worker("a", 1)],
            "tasks": [task(0, 10, prefix=prefix, **intervals(("transfer", 0, 9))) for prefix in ("x", "y", "z")],
        }
    )
    bins = Bins(T, 10, 2)
    found = breakdown(recording, bins)

    check(found, bins)
    assert cube_totals(found.by_prefix, "us") == {("x", "cpu"): 3, ("y", "cpu"): 3, ("z", "cpu"): 4, ("", "idle"): 10}


def test_a_worker_known_only_from_executions_has_their_lifetime() -> None:
    recording = make_recording(
        {"tasks": [task(10, 20, thread=1), task(15, 40, thread=2, **intervals(("transfer", 5, 8))), task(0, 4, "b")]}
    )
    bins = Bins(T, 100, 1)
    found = breakdown(recording, bins)

    check(found, bins)
    assert found.thread_us == 2 * 35 + 4
    assert split(found) == {"cpu": 39, "transfer": 3, "idle": 32}
    # Of the time with a worker: 35 µs with the one, 4 µs with the other.
    assert found.fully_idle_us == 35 + 4 - 4 - 3 - 30


def test_a_reused_address_has_two_lifetimes() -> None:
    recording = make_recording(
        {
            "workers": [worker("a", 1, 0, 10), worker("a", 4, 20, 30)],
            "tasks": [task(5, 15), task(18, 25)],
        }
    )
    bins = Bins(T, 30, 1)
    found = breakdown(recording, bins)

    check(found, bins)
    # The first execution outlasted its worker; the second belongs to the lifetime in which it ended.
    assert (found.thread_us, split(found)) == (50, {"cpu": 5 + 5, "idle": 40})


@pytest.mark.parametrize(
    "recording",
    [read_recording(GOLDEN), make_recording({}), make_recording({name: [{}] for name in TABLES})],
    ids=["golden", "empty", "blank"],
)
@pytest.mark.parametrize(
    "bins", [Bins(0, 1, 1), Bins.over(1_763_244_000_000_000, 1_763_244_002_000_000), Bins(0, 2**53, 7)]
)
def test_any_recording_has_a_breakdown(recording: Recording, bins: Bins) -> None:
    check(breakdown(recording, bins), bins)


TIME = st.integers(-10, 130)
NAME = st.sampled_from(["", "a", "b"])
TASK = st.fixed_dictionaries(
    {
        "start": TIME,
        "stop": TIME,
        "worker": NAME,
        "status": st.sampled_from(["ok", "ok", "error", "killed", "?"]),
        "prefix": NAME,
        "span": NAME,
        "key": NAME,
        "thread": st.integers(0, 2),
        "moved": st.lists(
            st.tuples(st.sampled_from(["transfer", "disk-read", "deserialize", "?"]), TIME, TIME), max_size=2
        ),
    }
)
WORKER = st.tuples(NAME, st.integers(-1, 3), TIME, TIME)
ACTIVITY = st.fixed_dictionaries(
    {
        "context": st.just("execute"),
        "prefix": NAME,
        "activity": st.sampled_from(["thread-cpu", "thread-noncpu"]),
        "unit": st.just("seconds"),
        "value": st.floats(-1, 10) | st.just(float("nan")),
    }
)


@settings(max_examples=150, deadline=None)
@given(st.lists(TASK, max_size=8), st.lists(WORKER, max_size=3), st.lists(ACTIVITY, max_size=3))
def test_sums_are_exact_and_independent_of_the_bins(
    tasks: list[dict[str, Any]], workers: list[tuple[str, int, int, int]], activities: list[dict[str, Any]]
) -> None:
    recording = make_recording(
        {
            "workers": [
                worker(name, threads, start, end, server_id=str(i))
                for i, (name, threads, start, end) in enumerate(workers)
            ],
            "tasks": [
                task(**{k: v for k, v in row.items() if k != "moved"}) | intervals(*row["moved"]) for row in tasks
            ],
            "activities": activities,
        }
    )
    found = {}
    for bins in (Bins(T, 120, 1), Bins(T, 7, 18), Bins(T, 40, 3), Bins(T, 1, 120)):
        found[bins] = breakdown(recording, bins)
        check(found[bins], bins)
    fine, coarse = found[Bins(T, 1, 120)], found[Bins(T, 40, 3)]
    assert (fine.thread_us, fine.fully_idle_us) == (coarse.thread_us, coarse.fully_idle_us)
    threads = Counter[tuple[str, int]]()
    for name, _, bin_, us in cube_rows(fine.by_worker):
        threads[name, bin_ // 40] += us
    for name, _, bin_, us in cube_rows(coarse.by_worker):
        threads[name, bin_] -= us
    assert set(threads.values()) <= {0}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 119), st.integers(1, 40), NAME, st.booleans()), max_size=10), st.integers(1, 120)
)
def test_executions_within_the_thread_time_count_in_full(tasks: list[tuple[int, int, str, bool]], width: int) -> None:
    recording = make_recording(
        {
            "workers": [worker("a", len(tasks))],
            "tasks": [
                task(start, start + length, prefix=prefix, status="ok" if ok else "error", key=str(i))
                for i, (start, length, prefix, ok) in enumerate(tasks)
            ],
            "activities": [
                {"context": "execute", "prefix": "a", "activity": "thread-cpu", "unit": "seconds", "value": 1.0},
                {"context": "execute", "prefix": "a", "activity": "thread-noncpu", "unit": "seconds", "value": 2.0},
            ],
        }
    )
    bins = Bins(T, width, -(-160 // width))
    found = breakdown(recording, bins)
    check(found, bins)

    lengths = Counter[Any]()
    for _, length, prefix, ok in tasks:
        lengths[prefix, ok] += length
    assert found.split["failed"] == sum(us for (_, ok), us in lengths.items() if not ok)
    assert found.compute_us == sum(us for (_, ok), us in lengths.items() if ok)
    assert found.split["cpu"] == found.compute_us - (lengths["a", True] - lengths["a", True] // 3)
    assert np.array_equal(found.by_prefix.measures["us"], found.by_prefix.measures["us"].astype(np.int64))
