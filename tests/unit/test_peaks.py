"""The largest sample while something ran, for many things at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from daskscope.analysis.peaks import peaks_during
from daskscope.model.table import Strings
from daskscope.testing import make_recording

NAME = st.sampled_from(["a", "b", "c"])
SAMPLE = st.tuples(NAME, st.integers(-30, 30), st.integers(-5, 100))
STRETCH = st.tuples(NAME, st.integers(-40, 40), st.integers(-5, 60))


@settings(max_examples=100, deadline=None)
@given(st.lists(SAMPLE, max_size=40), st.lists(STRETCH, max_size=5))
def test_the_largest_sample_of_the_worker_in_the_time(
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
