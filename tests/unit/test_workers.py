"""Workers: their order, how busy they were, and results lost with them."""

from __future__ import annotations

from typing import Any

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.failures import MAX_KEYS, failures
from daskscope.analysis.time.breakdown import breakdown
from daskscope.analysis.workers import workers
from daskscope.testing import make_recording

T = 1_700_000_000_000_000


def task(worker: str, start: int, stop: int, key: str, **columns: Any) -> dict[str, Any]:
    row = {"worker": worker, "start_us": T + start, "stop_us": T + stop, "key": key, "status": "ok"}
    return {**row, **columns}


def test_lost_results_are_attributed_to_their_worker() -> None:
    recording = make_recording(
        {
            "workers": [
                {"worker": "a", "server_id": "1", "nthreads": 2, "start_us": T, "end_us": T + 50},
                {"worker": "b", "server_id": "2", "nthreads": 1, "start_us": T},
            ],
            "tasks": [
                task("a", 0, 10, "k"),
                task("a", 10, 15, "m"),
                task("b", 60, 70, "k"),
                task("b", 70, 75, "m", status="error"),
                task("b", 75, 80, "n"),
                task("b", 80, 85, "n"),
            ],
        }
    )

    found = workers(recording, T + 100)
    assert [(w.worker, w.busy_us, w.recomputed_us) for w in found] == [("a", 15, 10), ("b", 25, 0)]


def test_a_result_that_was_moved_is_lost_with_the_worker_that_had_it() -> None:
    """Dask dropped the copy on b, which computed k, and a was killed with the only other one. That b leaves later is no reason."""
    there = {"nthreads": 1, "start_us": T}
    recording = make_recording(
        {
            "workers": [
                {**there, "worker": "a", "server_id": "1", "end_us": T + 50, "lost_count": 1},
                {**there, "worker": "b", "server_id": "2", "end_us": T + 90, "lost_count": 1},
                {**there, "worker": "c", "server_id": "3", "end_us": T + 5, "lost_count": 1},
                # It left last before k was needed again, but had no result that was nowhere else.
                {**there, "worker": "d", "server_id": "4", "end_us": T + 55},
            ],
            "tasks": [
                task("b", 0, 10, "k", computation="c"),
                task("b", 60, 75, "k", computation="c"),
                # Nobody left in between.
                task("b", 61, 62, "m", computation="c"),
                task("b", 63, 64, "m", computation="c"),
            ],
        }
    )

    found = workers(recording, T + 100)
    assert {w.worker: (w.recomputed, w.recomputed_us) for w in found} == {
        "a": (1, 10), "b": (0, 0), "c": (0, 0), "d": (0, 0),
    }  # fmt: skip


def test_workers_are_sorted_by_name() -> None:
    names = ("w-10", "w-2", "", "w-02", "9", "10", "1" * 5_000)
    table = [
        {"worker": "tcp://a", "server_id": str(i), "name": name, "start_us": T - i} for i, name in enumerate(names)
    ]

    found = [worker.name for worker in workers(make_recording({"workers": table}), T)]
    assert found == ["9", "10", "1" * 5_000, "", "w-02", "w-2", "w-10"]


def test_a_worker_that_moves_data_is_busy() -> None:
    table = [
        {"worker": "a", "server_id": "1", "nthreads": 2, "start_us": T, "end_us": T + 50},
        {"worker": "b", "server_id": "2", "nthreads": 1, "start_us": T + 50, "end_us": T + 90},
    ]
    moved = {"interval_action": ["transfer"], "interval_start_us": [T + 20], "interval_stop_us": [T + 25]}
    recording = make_recording({"workers": table, "tasks": [task("a", 0, 20, "k", **moved), task("b", 50, 90, "m")]})

    assert breakdown(recording, Bins.over(T, T + 100)).busy_shares() == {"a": 0.25, "b": 1.0}


def test_a_worker_is_at_most_busy_all_the_time() -> None:
    table = [
        {"worker": "a", "server_id": "1", "nthreads": 1, "start_us": T, "end_us": T + 5},
        {"worker": "b", "server_id": "2", "nthreads": 0, "start_us": T, "end_us": T + 5},
        {"worker": "c", "server_id": "3", "nthreads": 3, "start_us": T + 9, "end_us": T + 5},
    ]
    tasks = [task(name, 0, 50, name) for name in "abc"] + [task("b", 9, 0, "odd")]

    found = breakdown(make_recording({"workers": table, "tasks": tasks}), Bins.over(T, T + 50)).busy_shares()
    assert all(0 <= share <= 1 for share in found.values()) and found["a"] == 1


def test_a_failure_lists_workers_and_some_keys() -> None:
    rows = [
        {"fingerprint": "f", "key": f"k{i % 15}", "worker": f"w{i % 3}", "time_us": T + 100 - i, "count": 1}
        for i in range(30)
    ]
    (found,) = failures(make_recording({"exceptions": [*rows, {"fingerprint": "f", "time_us": T + 200}]}))

    assert found.workers == ("w0", "w1", "w2")
    assert found.keys == tuple(f"k{i}" for i in range(14, 14 - MAX_KEYS, -1))
    assert (found.count, found.first_us, found.last_us) == (31, T + 71, T + 200)


def test_a_peak_has_the_time_at_which_it_was_first_measured() -> None:
    joined = {"nthreads": 1, "start_us": T}
    rows = {
        "workers": [{**joined, "worker": name, "server_id": name} for name in "abc"],
        "samples": [
            {"worker": "a", "time_us": T + 1, "memory": 5},
            {"worker": "a", "time_us": T + 2, "memory": 9},
            {"worker": "a", "time_us": T + 3, "memory": 9},
            {"worker": "b", "time_us": T + 1, "memory": 5},
        ],
        # Between two samples of b, the kernel saw more.
        "processes": [{"worker": "b", "time_us": T + 4, "peak_memory": 7}],
    }
    found = {worker.worker: (worker.peak_memory, worker.peak_us) for worker in workers(make_recording(rows), T + 9)}
    assert found == {"a": (9, T + 2), "b": (7, T + 4), "c": (0, 0)}
