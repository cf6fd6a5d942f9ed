"""The peak number of workers, threads and bytes of a run, also after its end. On SQLite and on PostgreSQL."""

from __future__ import annotations

from typing import Any

from tests.helpers.archive import NOW, Archive, frame

from daskscope.model.untrusted import LARGEST

SECOND, GIB = 1_000_000, 1 << 30


def worker(name: str, start: int, end: int = 0, **values: Any) -> dict[str, Any]:
    """Return a worker with its start and end in seconds from now; an end of 0 means that it is still running."""
    row = {
        "server_id": name,
        "worker": f"tcp://{name}",
        "nthreads": 2,
        "memory_limit": GIB,
        "start_us": NOW + start * SECOND,
        "end_us": NOW + end * SECOND if end else 0,
        "seen_us": NOW + max(start, end) * SECOND,
    }
    return {**row, **values}


def peaks(archive: Archive) -> tuple[int, int, int]:
    run = archive.run()
    return run["peak_workers"], run["peak_threads"], run["peak_memory_limit"]


def test_the_peak_of_a_run_is_kept_after_its_workers_left(archive: Archive) -> None:
    archive.ingest([frame("workers", [worker("a", 0), worker("b", 1)], 0)])
    assert peaks(archive) == (2, 4, 2 * GIB)
    ended = {"cluster": "c", "seen_us": NOW + 9 * SECOND, "end_us": NOW + 9 * SECOND, "workers": 0, "threads": 0}
    archive.ingest([
        frame("workers", [worker("a", 0, 5), worker("b", 1, 6)], 1), frame("clusters", [ended], 2)
    ])  # fmt: skip
    run = archive.run()
    assert (run["state"], run["workers"], run["memory_limit"]) == ("finished", 0, 0)
    assert peaks(archive) == (2, 4, 2 * GIB)


def test_a_run_sent_after_its_end_has_the_same_peak(archive: Archive) -> None:
    workers = [
        worker("a", 0, 5),
        # It joins at the moment the first leaves: there are never three at once.
        worker("b", 5, 9, nthreads=8, memory_limit=4 * GIB),
        worker("c", 2, 7),
        worker("d", 20, 21, nthreads=1),
    ]
    archive.ingest([frame("workers", workers, 0)])
    assert peaks(archive) == (2, 10, 5 * GIB)


def test_runs_do_not_count_each_others_workers(archive: Archive) -> None:
    archive.ingest([frame("workers", [worker("a", 0)], 0), frame("workers", [worker("b", 0)], 0, cluster="other")])
    assert peaks(archive) == (1, 2, GIB)


def test_values_above_the_maximum_are_capped(archive: Archive) -> None:
    huge = {"nthreads": 2**63 - 1, "memory_limit": 2**63 - 1}
    archive.ingest([frame("workers", [worker(f"w{n}", n, **huge) for n in range(1_100)], 0)])
    assert peaks(archive) == (1_100, LARGEST, LARGEST)
