"""Intervals are distributed over bins without losing or inventing a microsecond."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskscope.analysis import grouping
from daskscope.analysis.bins import Bins, Cube, make_cube, rows, spread, total

T = 1_700_000_000_000_000


@pytest.mark.parametrize(
    ("start", "stop", "most", "bins"),
    [
        (T, T + 1000, 400, Bins(T, 3, 334)),
        (T, T + 400, 400, Bins(T, 1, 400)),
        (T, T + 7, 400, Bins(T, 1, 7)),
        (T, T, 400, Bins(T, 1, 1)),
        (T, T - 5, 400, Bins(T, 1, 1)),
        (0, 10, 0, Bins(0, 10, 1)),
        (-(2**63), 2**63 - 1, 2, Bins(0, 2**52, 2)),
    ],
)
def test_bins_cover_a_run_in_whole_microseconds(start: int, stop: int, most: int, bins: Bins) -> None:
    assert Bins.over(start, stop, most) == bins
    assert bins.stop_us >= min(stop, 2**53)


def test_a_moment_outside_counts_to_the_nearer_end() -> None:
    assert Bins(10, 5, 3).of(np.array([-(2**63), 9, 10, 14, 15, 24, 25, 2**63 - 1])).tolist() == [
        0,
        0,
        0,
        0,
        1,
        2,
        2,
        2,
    ]


def test_a_long_interval_touches_many_bins() -> None:
    found = spread(np.array([3, 4, 100, 9]), np.array([47, 4, 90, 12]), Bins(0, 10, 5), np.array([1, 1, 1, 0]))

    assert found.group.tolist() == [0, 0, 1, 1, 1, 1, 1]
    assert found.bin.tolist() == [0, 1, 0, 1, 2, 3, 4]
    assert found.us.tolist() == [1, 2, 7, 10, 10, 10, 7]


def test_nothing_spreads_to_nothing() -> None:
    none = np.zeros(0, dtype=np.int64)

    assert spread(none, none, Bins(0, 1, 1), none, none).us.tolist() == []


INTERVAL = st.tuples(st.integers(-20, 120), st.integers(-20, 120), st.integers(0, 3), st.integers(0, 4))


@pytest.mark.parametrize("dense", [0, 2**22])
@settings(max_examples=60, deadline=None)
@given(st.lists(INTERVAL, max_size=20), st.integers(1, 30), st.integers(1, 12))
def test_spreading_agrees_with_counting_microseconds(
    dense: int, intervals: list[tuple[int, int, int, int]], width: int, count: int
) -> None:
    bins, expected = Bins(0, width, count), Counter[tuple[int, int]]()
    for start, stop, group, weight in intervals:
        for moment in range(max(0, start), min(stop, bins.stop_us)):
            expected[group, moment // width] += weight
    starts, stops, groups, weights = np.array(intervals, dtype=np.int64).reshape(-1, 4).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "DENSE", dense)
        found = spread(starts, stops, bins, groups, weights)

    cells = list(zip(found.group.tolist(), found.bin.tolist(), strict=True))
    assert cells == sorted(cells)
    assert dict(zip(cells, found.us.tolist(), strict=True)) == {cell: us for cell, us in expected.items() if us}


def cube() -> Cube:
    return make_cube(
        {"prefix": ["add", "mul"], "category": ["cpu", "idle"]},
        [np.array([1, 0, 1, 0, 0]), np.array([0, 0, 0, 1, 0])],
        np.array([2, 0, 2, 1, 1]),
        3,
        {"us": np.array([5, 1, 7, 0, 2**60]), "share": np.array([0.5, 0.0, 0.25, 0.0, 1.0])},
    )


def test_a_cube_has_one_row_per_cell_that_is_not_empty() -> None:
    assert rows(cube()) == [
        ("add", "cpu", 0, 1, 0.0),
        ("add", "cpu", 1, 2**60, 1.0),
        ("mul", "cpu", 2, 12, 0.75),
    ]
    assert cube().rows == 3


def test_a_cube_adds_up_over_any_bins() -> None:
    assert total(cube(), "us") == {("add", "cpu"): 2**60 + 1, ("mul", "cpu"): 12}
    assert total(cube(), "us", 1, 2) == {("add", "cpu"): 2**60}
    assert total(cube(), "share", 2) == {("mul", "cpu"): 0.75}
    assert total(cube(), "us", 3) == {}


def test_a_key_without_texts_is_its_code() -> None:
    found = make_cube({"stack": []}, [np.array([7, 3])], np.array([0, 0]), 1, {"count": np.array([1, 2])})

    assert rows(found) == [("3", 0, 2), ("7", 0, 1)]


def test_an_empty_cube() -> None:
    none = np.zeros(0, dtype=np.int64)
    found = make_cube({"a": [], "b": ["x"]}, [none, none], none, 4, {"us": none})

    assert (rows(found), total(found, "us")) == ([], {})
