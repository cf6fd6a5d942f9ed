"""Samples by bin, of the whole cluster, and their peaks during executions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.resources import MEASURES, cluster, memory, peaks_during, scheduler
from daskscope.model.recording import Strings
from daskscope.model.tables import TABLES
from daskscope.testing import make_recording
from daskscope.wire.file import read_recording

GOLDEN = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"
S = 1_000_000
T = 1_700_000_000 * S
NAME = st.sampled_from(["a", "b", "c"])
SAMPLE = st.tuples(NAME, st.integers(-30, 30), st.integers(-5, 100))
STRETCH = st.tuples(NAME, st.integers(-40, 40), st.integers(-5, 60))


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


def test_the_scheduler_has_measures_of_its_own() -> None:
    samples = [
        sample("scheduler", 1, 1000, cpu_percent=80.0, loop_lag_us=20_000, processing=3),
        sample("scheduler", 2, 900, cpu_percent=95.0, loop_lag_us=500_000, processing=2),
        sample("a", 1, 5, cpu_percent=400.0),
    ]

    found = scheduler(make_recording({"samples": samples}), Bins(T, 10 * S, 2))

    assert found.workers == ["scheduler"]
    assert {name: plain(values) for name, values in found.measures.items()} == {
        "cpu_percent": [[95, None]],
        "loop_lag_us": [[500_000, None]],
        "processing": [[3, None]],
        "process": [[1000, None]],
    }
    assert scheduler(make_recording({"samples": samples[2:]}), Bins(T, 10 * S, 2)).workers == []


def test_all_workers_together_with_their_last_samples() -> None:
    recording = make_recording(
        {"samples": [sample("a", 4, 5), sample("a", 1, 1), sample("b", 3.5, 100), sample("scheduler", 1, 7)]}
    )
    times, values = cluster(recording, "process", T, T + 12 * S, 2 * S)

    assert ((times - T) // S).tolist() == [0, 2, 4, 6, 8, 10, 12]
    assert plain(values.reshape(1, -1)) == [[None, 1, 105, 105, 105, None, None]]


def test_a_worker_that_left_does_not_count_with_its_last_sample() -> None:
    samples = [sample("a", 0, 80), sample("b", 0, 100), sample("new", 4, 70)]
    workers: list[dict[str, Any]] = [{"worker": "a", "end_us": T + 3 * S}, {"worker": "b"}, {"worker": "new"}]
    _, values = cluster(make_recording({"samples": samples, "workers": workers}), "process", T, T + 4 * S, 2 * S)
    assert plain(values.reshape(1, -1)) == [[180, 180, 170]]


def test_a_stretch_without_length_is_one_point() -> None:
    recording = make_recording({"samples": [sample("a", 0, 5)]})

    for interval in (1, 0, -1):
        times, values = cluster(recording, "process", T, T, interval)
        assert (times.tolist(), values.tolist()) == ([T], [5.0])
    assert cluster(recording, "process", T + 5, T, 1)[0].tolist() == [T + 5]


@settings(max_examples=100, deadline=None)
@given(st.lists(SAMPLE, max_size=40), st.lists(STRETCH, max_size=5))
def test_the_peak_of_a_worker_during_an_interval(
    samples: list[tuple[str, int, int]], stretches: list[tuple[str, int, int]]
) -> None:
    recording = make_recording({"samples": [{"worker": w, "time_us": t, "memory": m} for w, t, m in samples]})
    found = peaks_during(
        recording["samples"],
        "memory",
        Strings.of([w for w, _, _ in stretches]),
        np.array([start for _, start, _ in stretches], dtype=np.int64),
        np.array([start + length for _, start, length in stretches], dtype=np.int64),
    )

    assert found.tolist() == [
        max((m for w, t, m in samples if w == worker and start <= t <= start + length and m > 0), default=0)
        for worker, start, length in stretches
    ]


@pytest.mark.parametrize("bins", [Bins(0, 1, 1), Bins(1_763_244_000_000_000, 1, 20)])
def test_any_recording_has_memory(bins: Bins) -> None:
    for recording in (read_recording(GOLDEN), make_recording({}), make_recording({name: [{}] for name in TABLES})):
        found = memory(recording, bins)
        assert {values.shape for values in found.measures.values()} == {(len(found.workers), bins.count)}
        cluster(recording, "optimistic", bins.start_us, bins.stop_us, 7)
