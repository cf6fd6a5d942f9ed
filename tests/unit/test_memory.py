"""Samples on a grid: the largest of each bin, nothing where nobody looked."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from daskscope.analysis.bins import Bins
from daskscope.analysis.memory import MEASURES, cluster, memory, peaks
from daskscope.model.tables import TABLES
from daskscope.testing import make_recording
from daskscope.wire.file import read_recording

GOLDEN = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"
S = 1_000_000
T = 1_700_000_000 * S


def sample(worker: str, seconds: float, memory: int, **columns: Any) -> dict[str, Any]:
    return {"worker": worker, "time_us": T + round(seconds * S), "memory": memory, **columns}


def plain(values: Any) -> list[Any]:
    return [[None if math.isnan(value) else value for value in row] for row in values.tolist()]


def test_the_largest_sample_of_each_bin() -> None:
    recording = make_recording(
        {
            "samples": [
                sample("b", 1, 7, managed=1, unmanaged_old=2, unmanaged_recent=4, spilled=8, cpu_percent=99.5),
                sample("a", 0, 5),
                sample("b", 0, 3, managed=9),
                sample("a", 25, 6),
                sample("scheduler", 1, 1000),
                sample("a", -1, 2000),
                sample("gone", 99, 3000),
            ]
        }
    )
    found = memory(recording, Bins(T, 10 * S, 3))

    assert found.workers == ["a", "b"]
    assert list(found.measures) == list(MEASURES)
    assert plain(found.measures["process"]) == [[5, None, 6], [7, None, None]]
    of_b = {name: plain(values)[1][0] for name, values in found.measures.items()}
    assert of_b == {
        "process": 7,
        "managed": 9,
        "unmanaged_old": 2,
        "unmanaged_recent": 4,
        "unmanaged": 6,
        "spilled": 8,
        "optimistic": 9,
        "managed_total": 9,
        "cpu_percent": 99.5,
        "net_read_bps": 0,
        "net_write_bps": 0,
        "disk_read_bps": 0,
        "disk_write_bps": 0,
    }


def test_all_workers_together_with_their_last_samples() -> None:
    recording = make_recording(
        {"samples": [sample("a", 4, 5), sample("a", 1, 1), sample("b", 3.5, 100), sample("scheduler", 1, 7)]}
    )
    times, values = cluster(recording, "process", T, T + 12 * S, 2 * S)

    assert ((times - T) // S).tolist() == [0, 2, 4, 6, 8, 10, 12]
    assert plain(values.reshape(1, -1)) == [[None, 1, 105, 105, 105, None, None]]


def test_a_stretch_of_no_length_is_one_moment() -> None:
    recording = make_recording({"samples": [sample("a", 0, 5)]})

    for interval in (1, 0, -1):
        times, values = cluster(recording, "process", T, T, interval)
        assert (times.tolist(), values.tolist()) == ([T], [5.0])
    assert cluster(recording, "process", T + 5, T, 1)[0].tolist() == [T + 5]


def test_the_peak_of_each_worker() -> None:
    recording = make_recording(
        {"samples": [sample("a", 4, 5), sample("a", 1, 9, spilled=3), sample("scheduler", 1, 99)]}
    )

    assert peaks(recording) == {"a": 9.0}
    assert peaks(recording, "spilled") == {"a": 3.0}


@pytest.mark.parametrize("bins", [Bins(0, 1, 1), Bins(1_763_244_000_000_000, 1, 20)])
def test_any_recording_has_memory(bins: Bins) -> None:
    for recording in (read_recording(GOLDEN), make_recording({}), make_recording({name: [{}] for name in TABLES})):
        found = memory(recording, bins)
        assert {values.shape for values in found.measures.values()} == {(len(found.workers), bins.count)}
        cluster(recording, "optimistic", bins.start_us, bins.stop_us, 7)
        assert len(peaks(recording)) <= 3
