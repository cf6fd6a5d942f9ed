"""Prefixes: how durations scatter, what ran again, how much memory was in use meanwhile."""

from __future__ import annotations

from typing import Any

from daskscope.analysis.prefixes import prefixes
from daskscope.testing import make_recording

T = 1_700_000_000_000_000


def task(prefix: str, start: int, us: int, status: str = "ok", **columns: Any) -> dict[str, Any]:
    return {"prefix": prefix, "start_us": T + start, "stop_us": T + start + us, "status": status, **columns}


def test_durations_scatter() -> None:
    tasks = [task("add", 0, us) for us in range(1, 101)] + [task("mul", 0, 7), task("sub", 0, 9, "killed")]
    found = {p.prefix: (p.std_us, p.p95_us, p.p99_us, p.max_us) for p in prefixes(make_recording({"tasks": tasks}))}

    assert found == {"add": (29, 95, 99, 100), "mul": (0, 7, 7, 7), "sub": (0, 0, 0, 0)}


def test_what_ran_again_is_counted() -> None:
    tasks = [
        task("add", 0, 10, key="k"),
        task("add", 20, 30, "error", key="k"),
        task("add", 50, 40, key="k"),
        task("mul", 0, 5, key="m"),
        task("mul", -9, -5, key="m"),
    ]
    found = {p.prefix: (p.total_us, p.recomputed_us) for p in prefixes(make_recording({"tasks": tasks}))}

    assert found == {"add": (80, 10), "mul": (0, 0)}


def test_the_memory_in_use_while_a_prefix_ran() -> None:
    recording = make_recording(
        {
            "tasks": [
                task("add", 0, 10, worker="a"),
                task("add", 100, 10, worker="b"),
                task("mul", 50, 10, worker="a"),
                task("sub", 50, 10, worker="unheard of"),
            ],
            "samples": [
                {"worker": "a", "time_us": T + 5, "memory": 7},
                {"worker": "a", "time_us": T + 30, "memory": 1000},
                {"worker": "b", "time_us": T + 5, "memory": 2000},
                {"worker": "b", "time_us": T + 110, "memory": 9},
            ],
        }
    )

    assert {p.prefix: p.peak_memory for p in prefixes(recording)} == {"add": 9, "mul": 0, "sub": 0}
