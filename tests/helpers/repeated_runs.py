"""Frames of runs of the same code, an hour apart, each on a cluster of its own."""

from __future__ import annotations

from typing import Any

from daskscope.testing import make_frames

S = 1_000_000
BEGIN = 1_700_000_000 * S


def repeated_frames(number: int, seconds: float, version: str) -> list[bytes]:
    """Return the frames of cluster ``c<number>`` with computation ``k<number>``, which takes these seconds."""
    start = BEGIN + number * 3600 * S
    stop = start + round(seconds * S)
    tables: dict[str, list[dict[str, Any]]] = {
        "clusters": [
            {
                "cluster": f"c{number}", "name": "nightly", "start_us": start, "seen_us": stop, "end_us": stop,
                "end_reason": "closed", "versions": f'{{"pandas": "{version}"}}',
            }
        ],
        "workers": [
            {
                "worker": "w", "server_id": "s", "nthreads": 4, "memory_limit": 2**30, "start_us": start - 60 * S,
                "seen_us": stop,
            },
            # Left after a second, so that its thread costs a second of this run.
            {
                "worker": "v", "server_id": "t", "nthreads": 1, "memory_limit": 2**30, "start_us": start, "seen_us": stop,
                "end_us": start + S,
            },
            # Left before, and came after: no part of this run.
            {
                "worker": "u", "server_id": "u", "nthreads": 1, "memory_limit": 2**30, "start_us": start - 60 * S,
                "end_us": start - S, "seen_us": stop,
            },
            {"worker": "x", "server_id": "x", "nthreads": 1, "memory_limit": 2**30, "start_us": stop + S, "seen_us": stop},
        ],
        "computations": [
            {
                "computation": f"k{number}", "seen_us": stop, "start_us": start, "stop_us": stop, "state": "done", "tasks": 2,
                "code": "df.sum().compute()", "code_line": 0, "code_file": "job.py",
            }
        ],
        "tasks": [
            {
                "id": n, "key": f"load-{n}", "prefix": "load", "computation": f"k{number}", "worker": "w", "status": "ok",
                "start_us": start, "stop_us": stop, "nbytes": 1_000,
            }
            for n in range(2)
        ],
    }  # fmt: skip
    return make_frames(tables, cluster=f"c{number}")
