"""Formatted durations, sizes, counts, shares, amounts and times."""

from __future__ import annotations

import math

import pytest

from daskscope import units


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0 s"),
        (1, "1 µs"),
        (12, "12 µs"),
        (999, "999 µs"),
        (999.6, "1 ms"),
        (1_000, "1 ms"),
        (1_234, "1.23 ms"),
        (83_000, "83 ms"),
        (999_499, "999 ms"),
        (999_600, "1.00 s"),
        (1_240_000, "1.24 s"),
        (9_999_000, "10.0 s"),
        (59_940_000, "59.9 s"),
        (59_960_000, "1 min 0 s"),
        (200_000_000, "3 min 20 s"),
        (3_599_700_000, "1 h 0 min"),
        (7_500_000_000, "2 h 5 min"),
        (330_000_000_000, "3 d 20 h"),
        (10**18, "11,574,074 d 2 h"),
        (-1_500, "-1.5 ms"),
        (-0.3, "0 s"),
    ],
)
def test_a_duration_is_shown_in_the_unit_that_fits(us: float, text: str) -> None:
    assert units.duration(us) == text


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_023.7, "1 KiB"),
        (1_024, "1 KiB"),
        (1_536, "1.5 KiB"),
        (1_024_000, "1,000 KiB"),
        (1_048_575, "1 MiB"),
        (1.5 * 2**30, "1.5 GiB"),
        (2**63, "8 EiB"),
        (2**80, "1,048,576 EiB"),
        (-5, "-5 B"),
        (-(2**20), "-1 MiB"),
    ],
)
def test_a_size_is_shown_in_binary_units(n: float, text: str) -> None:
    assert units.nbytes(n) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"),
        (0.0001, "<0.1 %"),
        (0.003, "0.3 %"),
        (0.42, "42 %"),
        (0.996, ">99 %"),
        (1, "100 %"),
        (12.5, "1,250 %"),
        (-0.1, "-10 %"),
    ],
)
def test_only_a_full_share_is_shown_as_100_percent(share: float, text: str) -> None:
    assert units.percent(share) == text


@pytest.mark.parametrize(
    ("values", "shares"), [([1, 1, 1], [34, 33, 33]), ([999, 1], [100, 0]), ([0, 0], [0, 0]), ([], []), ([5], [100])]
)
def test_whole_shares_add_up_to_100(values: list[float], shares: list[int]) -> None:
    assert units.whole_shares(values) == shares


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, units.NOTHING),
        (1_700_000_000_123_456, "2023-11-14T22:13:20Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (2**63 - 1, "9223372036854775807 µs since 1970"),
        (-(2**63), "-9223372036854775808 µs since 1970"),
    ],
)
def test_a_time_is_shown_in_utc_to_the_second(us: int, text: str) -> None:
    assert units.moment(us) == text


@pytest.mark.parametrize(("n", "text"), [(0, "0"), (1_234_567, "1,234,567"), (-1_000, "-1,000")])
def test_a_count_has_thousands_separators(n: int, text: str) -> None:
    assert units.count(n) == text


@pytest.mark.parametrize(("n", "text"), [(0, "0 tasks"), (1, "1 task"), (2_000, "2,000 tasks")])
def test_a_counted_noun_agrees_with_its_number(n: int, text: str) -> None:
    assert units.counted(n, "task") == text


def test_a_noun_may_have_an_irregular_plural() -> None:
    assert units.counted(2, "batch", "batches") == "2 batches"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.5, "seconds", "1.50 s"),
        (2**30, "bytes", "1 GiB"),
        (17, "count", "17×"),
        (2.5, "furlongs", "2.5 furlongs"),
        (1e20, "", "1e+20"),
        (math.nan, "watts", "nan watts"),
        (math.inf, "", "inf"),
        (1e308, "seconds", "1e+308 seconds"),
    ],
)
def test_an_amount_of_any_unit(value: float, unit: str, text: str) -> None:
    assert units.quantity(value, unit) == text
