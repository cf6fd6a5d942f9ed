"""Fine metrics are summed as they come, whatever they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daskscope.analysis.bins import Bins, rows, total
from daskscope.analysis.fine_metrics import cache_hits, fine_metrics
from daskscope.testing import make_recording
from daskscope.wire.file import read_recording

GOLDEN = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"
T = 1_700_000_000_000_000


def metric(time: int, activity: str, unit: str, value: float, **columns: Any) -> dict[str, Any]:
    row = {"time_us": T + time, "context": "execute", "activity": activity, "unit": unit, "value": value}
    return {**row, **columns}


def test_deltas_are_summed_in_the_bin_they_were_reported_in() -> None:
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

    assert rows(fine_metrics(recording, Bins(T, 10, 2))) == [
        ("execute", "s", "add", "thread-cpu", "seconds", 0, 0.75),
        ("execute", "s", "add", "thread-cpu", "seconds", 1, 1.0),
        ("execute", "", "", "sparkle", "unicorns", 1, 3.0),
    ]


def test_how_much_was_read_from_memory() -> None:
    recording = make_recording(
        {
            "activities": [
                metric(0, "memory-read", "bytes", 300.0),
                metric(1, "memory-read", "count", 1.0, context="get-data"),
                metric(2, "disk-read", "bytes", 100.0),
                metric(3, "disk-read", "seconds", 5.0),
            ]
        }
    )

    assert cache_hits(recording) == {"bytes": 0.75, "count": 1.0}
    assert cache_hits(make_recording({})) == {}


def test_any_recording_has_fine_metrics() -> None:
    assert sum(total(fine_metrics(read_recording(GOLDEN), Bins(0, 1, 1)), "value").values()) == -1.4
    assert fine_metrics(make_recording({}), Bins(0, 1, 1)).rows == 0
