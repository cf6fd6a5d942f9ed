"""A recording of eight tasks of one second on one thread, and their sum of half a second."""

from __future__ import annotations

import time
from typing import Any

#: An hour ago: a server drops what is too old.
T = (time.time_ns() // 1_000_000_000 - 3600) * 1_000_000
MS = 1_000
S = 1_000_000


def row(id_: int, start: int, stop: int, **columns: Any) -> dict[str, Any]:
    """Return an execution on the only thread of the only worker; times in milliseconds."""
    row = {
        "id": id_, "key": f"load-{id_}", "group": "load", "prefix": "load", "worker": "tcp://10.0.0.1:1", "thread": 1,
        "computation": "c", "status": "ok", "queued_us": T, "assigned_us": T, "nbytes": 1000,
        "start_us": T + start * MS, "stop_us": T + stop * MS,
    }  # fmt: skip
    return {**row, **columns}


def worker(number: int = 1, **columns: Any) -> dict[str, Any]:
    address, host = f"tcp://10.0.0.{number}:1", f"10.0.0.{number}"
    base = {
        "worker": address,
        "server_id": address,
        "host": host,
        "nthreads": 1,
        "start_us": T,
        "memory_limit": 1 << 30,
    }
    return {**base, **columns}


def eight_task_rows() -> dict[str, list[dict[str, Any]]]:
    """Return the tables of eight tasks of one second on one thread, and their sum of half a second."""
    rows = [row(i, 1000 * i, 1000 * i + 1000) for i in range(8)]
    rows.append(row(8, 8000, 8500, key="sum", group="sum", prefix="sum", queued_us=0, assigned_us=T + 8 * S))
    return {
        "clusters": [
            {"cluster": "eight", "name": "eight tasks", "start_us": T, "seen_us": T + 9 * S, "end_us": T + 9 * S}
        ],
        "tasks": rows,
        "edges": [{"task": 8, "dependency": i, "seen_us": T + 9 * S} for i in range(8)],
        "workers": [worker()],
        "computations": [{"computation": "c", "start_us": T, "stop_us": T + 8500 * MS, "state": "done", "tasks": 9}],
        "processes": [{"time_us": T, "worker": "tcp://10.0.0.1:1", "cores": 4, "wall_us": S}],
    }
