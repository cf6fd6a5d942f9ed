"""Rows of a run whose every text tries to run as code."""

from __future__ import annotations

from typing import Any

T = 1_700_000_000_000_000
HOSTILE = "</script><img src=x onerror=alert(1)><!--"


def hostile_tables() -> dict[str, list[dict[str, Any]]]:
    """Return tables with the same hostile text in every text column."""
    who = {"worker": HOSTILE, "prefix": HOSTILE, "key": HOSTILE, "group": HOSTILE}
    return {
        "clusters": [{"cluster": "c", "name": HOSTILE, "address": HOSTILE, "recording_us": T, "end_us": T + 10**6}],
        "workers": [{"worker": HOSTILE, "server_id": "s", "name": HOSTILE, "nthreads": 1, "start_us": T}],
        "tasks": [{**who, "start_us": T + 1, "stop_us": T + 500, "type": HOSTILE, "status": "ok"}],
        "computations": [{"computation": "x", "code": HOSTILE, "start_us": T, "stop_us": T + 9, "state": "done"}],
        "groups": [{"group": HOSTILE, "prefix": HOSTILE, "computation": "x", "start_us": T}],
        "exceptions": [
            {**who, "time_us": T + 5, "type": HOSTILE, "message": HOSTILE, "traceback": HOSTILE, "count": 1}
        ],
        "logs": [
            {"time_us": T + 3, "worker": HOSTILE, "message": HOSTILE, "logger": HOSTILE, "level": 40, "repeats": 1}
        ],
        "profiles": [{"start_us": T, "stop_us": T + 9, "kind": "compute", "stack": [f"{HOSTILE}\tf\t1"], "count": 1}],
    }
