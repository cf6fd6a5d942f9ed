"""Stretches of time by day."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.analysis.spread import day_shares
from daskscope.units import DAY


def shares(start: float, stop: float, first_day: int = 10, days: int = 3) -> list[float]:
    (row,) = day_shares(np.array([start * DAY]), np.array([stop * DAY]), first_day, days)
    return [float(share) for share in row]


def test_a_stretch_falls_on_each_of_its_days() -> None:
    assert shares(10.5, 12.0) == pytest.approx([1 / 3, 2 / 3, 0])


def test_what_is_outside_of_the_days_does_not_count() -> None:
    assert shares(8.0, 11.0) == pytest.approx([1 / 3, 0, 0])
    assert shares(12.0, 14.0) == pytest.approx([0, 0, 0.5])
    assert shares(1.0, 2.0) == [0, 0, 0]


def test_a_stretch_without_length_falls_on_its_day() -> None:
    assert shares(11.25, 11.25) == [0, 1, 0]
    assert shares(11.25, 11.0) == [0, 1, 0]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8))
def test_no_more_is_shared_out_than_there_is(stretches: list[tuple[int, int]]) -> None:
    start, stop = (np.array([pair[side] * DAY / 4 for pair in stretches]) for side in (0, 1))
    found = day_shares(start, stop, 2, 5)
    assert found.shape == (len(stretches), 5)
    assert (found >= 0).all()
    assert (found.sum(axis=1) <= 1 + 1e-9).all()
