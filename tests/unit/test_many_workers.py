"""A report of very many workers has fewer bins and the same sums."""

from __future__ import annotations

from typing import Any

from daskscope.analysis.summary import extent
from daskscope.report.document import MAX_BINS, MAX_SUMS, MIN_BINS, build
from daskscope.report.schema import Report
from daskscope.testing import make_recording

SECOND = 1_000_000


def document(tables: dict[str, list[dict[str, Any]]]) -> Report:
    recording = make_recording(tables)
    return build(recording, *extent(recording))[0]


def bins_with(workers: int) -> int:
    rows = [
        {"server_id": f"w{n}", "worker": f"tcp://{n}", "nthreads": 1, "start_us": SECOND, "seen_us": SECOND}
        for n in range(workers)
    ]
    task = {"id": 1, "key": "a", "prefix": "a", "worker": "tcp://0", "start_us": SECOND, "stop_us": 100 * SECOND}
    report = document({"workers": rows, "tasks": [{**task, "status": "ok", "thread": 1}]})
    assert report["totals"]["tasks"] == 1
    return report["bins"]["count"]


def test_a_small_cluster_has_all_bins() -> None:
    assert bins_with(2) > MAX_BINS // 2


def test_very_many_workers_have_fewer_bins() -> None:
    assert bins_with(MAX_SUMS // MAX_BINS * 4) <= MAX_BINS // 4
    assert MIN_BINS < MAX_BINS // 4


def test_memory_limits_add_up_only_for_simultaneous_workers() -> None:
    start, second = 1_700_000_000_000_000, 1_000_000
    rows = [
        {
            "worker": f"tcp://{n}",
            "server_id": f"w{n}",
            "nthreads": 2,
            "memory_limit": 100,
            "start_us": start + begin * second,
            "end_us": start + end * second if end else 0,
            "seen_us": start + 30 * second,
        }
        for n, (begin, end) in enumerate([(0, 10), (11, 20), (15, 0)])
    ]
    task = {"worker": "tcp://2", "start_us": start, "stop_us": start + 30 * second, "status": "ok", "thread": 1}
    cluster = {"cluster": "c", "recording_us": start, "start_us": start, "seen_us": start + 30 * second}
    report = document({"workers": rows, "tasks": [task], "clusters": [cluster]})
    assert (report["totals"]["threads"], report["totals"]["memory_limit"]) == (4, 200)
