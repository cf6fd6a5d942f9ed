"""Intervals are summed, merged and distributed without losing or inventing a microsecond."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskscope.analysis.columns import grouping
from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.columns.intervals import (
    day_shares,
    overlaps_us,
    spread,
    sum_by_action,
    task_intervals,
    union_us,
)
from daskscope.testing import make_recording
from daskscope.units import DAY

PAIR = st.tuples(st.integers(-20, 60), st.integers(-20, 60))


def intervals(*actions: str) -> dict[str, Any]:
    starts, stops = list(range(len(actions))), [10 * (i + 1) for i in range(len(actions))]
    return {"interval_action": list(actions), "interval_start_us": starts, "interval_stop_us": stops}


def test_intervals_are_flattened_with_the_row_of_their_execution() -> None:
    tasks = make_recording({"tasks": [intervals("transfer", "disk-read"), {}, intervals("transfer")]})["tasks"]
    rows, actions, starts, stops = task_intervals(tasks)

    assert rows.tolist() == [0, 0, 2]
    assert actions.to_numpy().tolist() == ["transfer", "disk-read", "transfer"]
    assert (starts.tolist(), stops.tolist()) == ([0, 1, 0], [10, 20, 10])
    assert task_intervals(tasks, np.array([2]))[0].tolist() == [2]


def test_rows_whose_interval_columns_disagree_are_left_out() -> None:
    broken = {**intervals("transfer", "disk-read"), "interval_stop_us": [5]}
    tasks = make_recording({"tasks": [broken, intervals("transfer")]})["tasks"]

    assert task_intervals(tasks)[0].tolist() == [1]
    assert sum_by_action(tasks, np.array([0, 1]), 2) == [{}, {"transfer": 10}]


@given(st.lists(PAIR, max_size=8))
def test_the_union_counts_every_microsecond_once(pairs: list[tuple[int, int]]) -> None:
    starts, stops = np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    assert union_us(starts, stops) == len({us for start, stop in pairs for us in range(start, stop)})


@given(st.lists(PAIR, max_size=8))
def test_overlaps_with_steps(pairs: list[tuple[int, int]]) -> None:
    starts, stops = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    expected = [
        [float(sum(first <= us < last for us in range(start, stop))) for first, last in ((0, 7), (7, 30))]
        for start, stop in pairs
    ]

    assert overlaps_us(starts, stops, np.array([0, 7, 30])).tolist() == expected


def shares(start: float, stop: float, first_day: int = 10, days: int = 3) -> list[float]:
    (row,) = day_shares(np.array([start * DAY]), np.array([stop * DAY]), first_day, days)
    return [float(share) for share in row]


def test_an_interval_is_shared_between_its_days() -> None:
    assert shares(10.5, 12.0) == pytest.approx([1 / 3, 2 / 3, 0])


def test_parts_outside_the_days_do_not_count() -> None:
    assert shares(8.0, 11.0) == pytest.approx([1 / 3, 0, 0])
    assert shares(12.0, 14.0) == pytest.approx([0, 0, 0.5])
    assert shares(1.0, 2.0) == [0, 0, 0]


def test_an_interval_without_length_belongs_to_its_day() -> None:
    assert shares(11.25, 11.25) == [0, 1, 0]
    assert shares(11.25, 11.0) == [0, 1, 0]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8))
def test_shares_add_up_to_one_at_most(stretches: list[tuple[int, int]]) -> None:
    start, stop = (np.array([pair[side] * DAY / 4 for pair in stretches]) for side in (0, 1))
    found = day_shares(start, stop, 2, 5)
    assert found.shape == (len(stretches), 5)
    assert (found >= 0).all()
    assert (found.sum(axis=1) <= 1 + 1e-9).all()


def test_a_long_interval_touches_many_bins() -> None:
    found = spread(np.array([3, 4, 100, 9]), np.array([47, 4, 90, 12]), Bins(0, 10, 5), np.array([1, 1, 1, 0]))

    assert found.group.tolist() == [0, 0, 1, 1, 1, 1, 1]
    assert found.bin.tolist() == [0, 1, 0, 1, 2, 3, 4]
    assert found.us.tolist() == [1, 2, 7, 10, 10, 10, 7]


def test_no_intervals_spread_to_no_cells() -> None:
    none = np.zeros(0, dtype=np.int64)

    assert spread(none, none, Bins(0, 1, 1), none, none).us.tolist() == []


INTERVAL = st.tuples(st.integers(-20, 120), st.integers(-20, 120), st.integers(0, 3), st.integers(0, 4))


@pytest.mark.parametrize("dense", [0, 2**22])
@settings(max_examples=60, deadline=None)
@given(st.lists(INTERVAL, max_size=20), st.integers(1, 30), st.integers(1, 12))
def test_spread_agrees_with_counting_microseconds(
    dense: int, intervals: list[tuple[int, int, int, int]], width: int, count: int
) -> None:
    bins, expected = Bins(0, width, count), Counter[tuple[int, int]]()
    for start, stop, group, weight in intervals:
        for moment in range(max(0, start), min(stop, bins.stop_us)):
            expected[group, moment // width] += weight
    starts, stops, groups, weights = np.array(intervals, dtype=np.int64).reshape(-1, 4).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "MAX_DENSE", dense)
        found = spread(starts, stops, bins, groups, weights)

    cells = list(zip(found.group.tolist(), found.bin.tolist(), strict=True))
    assert cells == sorted(cells)
    assert dict(zip(cells, found.us.tolist(), strict=True)) == {cell: us for cell, us in expected.items() if us}
