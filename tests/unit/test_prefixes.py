"""Sums by prefix: durations, recomputed work, peak memory, and fine metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.helpers.cubes import cube_rows, cube_totals

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.summary import fine_metrics, prefixes
from daskscope.testing import make_recording
from daskscope.wire.file import read_recording

GOLDEN = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"
T = 1_700_000_000_000_000


def task(prefix: str, start: int, us: int, status: str = "ok", **columns: Any) -> dict[str, Any]:
    return {"prefix": prefix, "start_us": T + start, "stop_us": T + start + us, "status": status, **columns}


def test_the_spread_of_durations() -> None:
    tasks = [task("add", 0, us) for us in range(1, 101)] + [task("mul", 0, 7), task("sub", 0, 9, "killed")]
    found = {p.prefix: (p.std_us, p.p95_us, p.p99_us, p.max_us) for p in prefixes(make_recording({"tasks": tasks}))}

    assert found == {"add": (29, 95, 99, 100), "mul": (0, 7, 7, 7), "sub": (0, 0, 0, 0)}


def test_recomputed_time_is_summed() -> None:
    tasks = [
        task("add", 0, 10, key="k"),
        task("add", 20, 30, "error", key="k"),
        task("add", 50, 40, key="k"),
        task("mul", 0, 5, key="m"),
        task("mul", -9, -5, key="m"),
    ]
    found = {p.prefix: (p.total_us, p.recomputed_us) for p in prefixes(make_recording({"tasks": tasks}))}

    assert found == {"add": (80, 10), "mul": (0, 0)}


def test_peak_memory_while_a_prefix_ran() -> None:
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


def metric(time: int, activity: str, unit: str, value: float, **columns: Any) -> dict[str, Any]:
    row = {"time_us": T + time, "context": "execute", "activity": activity, "unit": unit, "value": value}
    return {**row, **columns}


def test_fine_metrics_are_summed_in_the_bin_in_which_they_were_reported() -> None:
    recording = make_recording(
        {
            "activities": [
                metric(0, "thread-cpu", "seconds", 0.5, prefix="add", span="s"),
                metric(9, "thread-cpu", "seconds", 0.25, prefix="add", span="s"),
                metric(10, "thread-cpu", "seconds", 1.0, prefix="add", span="s"),
                metric(99, "sparkle", "unicorns", 3.0),
                metric(-5, "sparkle", "unicorns", float("nan")),
            ]
        }
    )

    assert cube_rows(fine_metrics(recording, Bins(T, 10, 2))) == [
        ("execute", "s", "add", "thread-cpu", "seconds", 0, 0.75),
        ("execute", "s", "add", "thread-cpu", "seconds", 1, 1.0),
        ("execute", "", "", "sparkle", "unicorns", 1, 3.0),
    ]


def test_any_recording_has_fine_metrics() -> None:
    assert sum(cube_totals(fine_metrics(read_recording(GOLDEN), Bins(0, 1, 1)), "value").values()) == -1.4
    assert fine_metrics(make_recording({}), Bins(0, 1, 1)).rows == 0
