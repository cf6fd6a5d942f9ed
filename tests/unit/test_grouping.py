"""Codes without gaps for combinations of columns, also of empty ones and of columns with one value."""

from __future__ import annotations

import numpy as np
import pytest

from daskscope.analysis.columns import grouping
from daskscope.analysis.columns.grouping import product, renumber


def combinations(columns: list[list[int]], sizes: list[int]) -> tuple[list[int], list[list[int]]]:
    codes, parts = product([np.array(column, dtype=np.int64) for column in columns], sizes)
    return codes.tolist(), [part.tolist() for part in parts]


@pytest.mark.parametrize("max_dense", [grouping.MAX_DENSE, -(2**60)])
def test_combinations_are_numbered_in_their_order(max_dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "MAX_DENSE", max_dense)
    assert combinations([[1, 0, 1, 3], [0, 5, 0, 2]], [4, 6]) == ([1, 0, 1, 2], [[0, 1, 3], [5, 0, 2]])
    assert combinations([[0, 0], [2, 1]], [1, 3]) == ([1, 0], [[0, 0], [1, 2]])
    assert combinations([[2, 1], [0, 0]], [3, 1]) == ([1, 0], [[1, 2], [0, 0]])


@pytest.mark.parametrize("sizes", [[0, 0], [1, 1], [1, 4], [3, 1]])
def test_no_rows_have_no_combinations(sizes: list[int]) -> None:
    assert combinations([[], []], sizes) == ([], [[], []])


def test_keys_are_renumbered_without_gaps() -> None:
    codes, keys = renumber(np.array([7, 3, 7]), 10)
    assert (codes.tolist(), keys.tolist()) == ([1, 0, 1], [3, 7])
    codes, keys = renumber(np.zeros(0, dtype=np.int64), 1)
    assert (codes.tolist(), keys.tolist()) == ([], [])
