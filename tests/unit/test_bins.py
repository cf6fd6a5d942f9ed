"""Bins cover a run, and cubes add up over any of them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.cubes import cube_rows, cube_totals

from daskscope.analysis.columns.bins import Bins, Cube, make_cube

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


def test_a_time_outside_belongs_to_the_nearer_end() -> None:
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


def cube() -> Cube:
    return make_cube(
        {"prefix": ["add", "mul"], "category": ["cpu", "idle"]},
        [np.array([1, 0, 1, 0, 0]), np.array([0, 0, 0, 1, 0])],
        np.array([2, 0, 2, 1, 1]),
        3,
        {"us": np.array([5, 1, 7, 0, 2**60]), "share": np.array([0.5, 0.0, 0.25, 0.0, 1.0])},
    )


def test_a_cube_has_one_row_per_non_empty_cell() -> None:
    assert cube_rows(cube()) == [
        ("add", "cpu", 0, 1, 0.0),
        ("add", "cpu", 1, 2**60, 1.0),
        ("mul", "cpu", 2, 12, 0.75),
    ]
    assert cube().rows == 3


def test_a_cube_adds_up_over_any_bins() -> None:
    assert cube_totals(cube(), "us") == {("add", "cpu"): 2**60 + 1, ("mul", "cpu"): 12}
    assert cube_totals(cube(), "us", 1, 2) == {("add", "cpu"): 2**60}
    assert cube_totals(cube(), "share", 2) == {("mul", "cpu"): 0.75}
    assert cube_totals(cube(), "us", 3) == {}


def test_a_key_without_texts_is_its_code() -> None:
    found = make_cube({"stack": []}, [np.array([7, 3])], np.array([0, 0]), 1, {"count": np.array([1, 2])})

    assert cube_rows(found) == [("3", 0, 2), ("7", 0, 1)]


def test_an_empty_cube() -> None:
    none = np.zeros(0, dtype=np.int64)
    found = make_cube({"a": [], "b": ["x"]}, [none, none], none, 4, {"us": none})

    assert (cube_rows(found), cube_totals(found, "us")) == ([], {})
