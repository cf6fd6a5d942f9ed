"""Workers: utilisation, and results lost with them."""

from __future__ import annotations

from typing import Any

from daskscope.analysis.failures import MAX_KEYS, failures
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
    assert [(w.worker, w.busy_us, w.recomputed_us, w.utilisation) for w in found] == [
        ("a", 15, 10, 0.15),
        ("b", 25, 0, 0.25),
    ]


def test_utilisation_is_at_most_one() -> None:
    table = [
        {"worker": "a", "server_id": "1", "nthreads": 1, "start_us": T, "end_us": T + 5},
        {"worker": "b", "server_id": "2", "nthreads": 0, "start_us": T, "end_us": T + 5},
        {"worker": "c", "server_id": "3", "nthreads": 3, "start_us": T + 9, "end_us": T + 5},
    ]
    tasks = [task(name, 0, 50, name) for name in "abc"] + [task("b", 9, 0, "odd")]

    assert [w.utilisation for w in workers(make_recording({"workers": table, "tasks": tasks}), T)] == [1.0, 0.0, 0.0]


def test_a_failure_lists_workers_and_some_keys() -> None:
    rows = [
        {"fingerprint": "f", "key": f"k{i % 15}", "worker": f"w{i % 3}", "time_us": T + 100 - i, "count": 1}
        for i in range(30)
    ]
    (found,) = failures(make_recording({"exceptions": [*rows, {"fingerprint": "f", "time_us": T + 200}]}))

    assert found.workers == ("w0", "w1", "w2")
    assert found.keys == tuple(f"k{i}" for i in range(14, 14 - MAX_KEYS, -1))
    assert (found.count, found.first_us, found.last_us) == (31, T + 71, T + 200)
