"""Parallelism: how many executions ran at the same time."""

from __future__ import annotations

from pathlib import Path

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.executions import parallelism
from daskscope.testing import make_recording
from daskscope.wire.file import read_recording

GOLDEN = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"


def test_the_mean_number_of_running_executions() -> None:
    times = [(0, 10, "ok"), (5, 25, "error"), (0, 30, "killed"), (20, 19, "ok"), (-9, 99, "retried")]
    recording = make_recording(
        {"tasks": [{"start_us": start, "stop_us": stop, "status": status} for start, stop, status in times]}
    )

    assert parallelism(recording, Bins(0, 10, 3)).tolist() == [2.5, 2.0, 1.5]


def test_any_recording_has_a_parallelism() -> None:
    assert parallelism(make_recording({}), Bins(0, 1, 2)).tolist() == [0, 0]
    assert parallelism(read_recording(GOLDEN), Bins(0, 1, 2)).tolist() == [0, 0]
