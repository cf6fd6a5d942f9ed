"""Columns of a report are decoded as they were encoded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.report.blocks import Blocks, decode, from_mini, mini, zigzag


@given(st.lists(st.integers(0, 2**40), max_size=50))
def test_codes_round_trip(values: list[int]) -> None:
    blocks = Blocks()
    block = blocks.codes("c", np.array(values, dtype=np.int64))
    assert [int(value) for value in decode(block, blocks.data["c"])] == values


@pytest.mark.parametrize(("most", "dtype"), [(0, "u8"), (255, "u8"), (256, "u16"), (65_536, "u32"), (2**32, "f64")])
def test_codes_use_the_narrowest_type(most: int, dtype: str) -> None:
    assert Blocks().codes("c", np.array([0, most]))["dtype"] == dtype


def test_floats_keep_nan_and_infinity() -> None:
    blocks = Blocks()
    block = blocks.column("f", np.array([1.5, np.nan]), "f32")
    found = decode(block, blocks.data["f"])
    assert found[0] == 1.5 and np.isnan(found[1])


@pytest.mark.parametrize("lines", [[], ["one"], ["a", "", "ünï", "</script>"]])
def test_lines_round_trip(lines: list[str]) -> None:
    blocks = Blocks()
    block = blocks.lines("t", lines)
    assert decode(block, blocks.data["t"]) == lines


@given(st.lists(st.integers(0, 2**60)))
def test_mini_numbers_have_three_digits(values: list[int]) -> None:
    found = from_mini(mini(np.array(values, dtype=np.int64))).tolist()
    assert all(abs(number - value) <= value / 511 for number, value in zip(found, values, strict=True))
    assert all(number == value for number, value in zip(found, values, strict=True) if value < 512)
    assert from_mini(mini(np.array(found, dtype=np.int64))).tolist() == found


@given(st.lists(st.integers(-(2**40), 2**40)))
def test_zigzag_keeps_small_numbers_small(values: list[int]) -> None:
    coded = zigzag(np.array(values, dtype=np.int64))
    assert [(c >> 1) ^ -(c & 1) for c in coded.tolist()] == values
    assert all(c <= 2 * abs(v) for c, v in zip(coded.tolist(), values, strict=True))
