"""A report of far too many workers: fewer bins, and the same sums."""

from __future__ import annotations

from daskscope.report.document import BINS, FEWEST_BINS, MOST_SUMS, build
from daskscope.testing import make_recording

SECOND = 1_000_000


def built(workers: int) -> int:
    rows = [
        {"server_id": f"w{n}", "worker": f"tcp://{n}", "nthreads": 1, "start_us": SECOND, "seen_us": SECOND}
        for n in range(workers)
    ]
    task = {"id": 1, "key": "a", "prefix": "a", "worker": "tcp://0", "start_us": SECOND, "stop_us": 100 * SECOND}
    report, _ = build(make_recording({"workers": rows, "tasks": [{**task, "status": "ok", "thread": 1}]}))
    assert report["totals"]["tasks"] == 1
    return report["bins"]["count"]


def test_a_cluster_has_all_the_bins_a_page_shows() -> None:
    assert built(2) > BINS // 2


def test_more_workers_than_can_be_added_up_have_fewer() -> None:
    assert built(MOST_SUMS // BINS * 4) <= BINS // 4
    assert FEWEST_BINS < BINS // 4


def test_memory_of_workers_that_were_not_there_together_is_not_added_up() -> None:
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
    report, _ = build(make_recording({"workers": rows, "tasks": [task], "clusters": [cluster]}))
    assert (report["totals"]["threads"], report["totals"]["memory_limit"]) == (4, 200)
