"""The permutation test: exact, corrected for many quantities, and the same for both directions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.analysis.compare.verdicts import (
    ALPHA,
    adjusted_p,
    can_prove,
    relative_to_others,
    repeats_needed,
    run_factors,
    smallest_p,
)
from daskscope.model.recording import Array


def noisy(seed: int, rows: int, columns: int, spread: float = 0.1) -> Array:
    values: Array = np.exp(np.random.default_rng(seed).normal(0.0, spread, (rows, columns)))
    return values


@pytest.mark.parametrize(
    ("before", "after", "expected"), [(5, 5, 2 / 252), (1, 1, 1.0), (4, 5, 1 / 126), (0, 5, 1.0), (1, 70, 1 / 71)]
)
def test_the_smallest_p_is_the_share_of_the_most_extreme_division(before: int, after: int, expected: float) -> None:
    assert smallest_p(before, after) == expected


def test_five_repeats_each_can_prove_a_difference_and_four_cannot() -> None:
    assert (repeats_needed(), can_prove(5, 5), can_prove(4, 4), can_prove(1, 1)) == (5, True, False, False)


def test_a_clear_difference_has_the_smallest_p_however_many_quantities_there_are() -> None:
    before, after = noisy(1, 5, 40, 0.01), noisy(2, 5, 40, 0.01)
    after[:, 7] *= 2
    found = adjusted_p(before, after)
    assert found[7] == pytest.approx(2 / 252)
    assert all(p > ALPHA for at, p in enumerate(found.tolist()) if at != 7)


def test_identical_code_is_named_no_more_often_than_alpha() -> None:
    # 400 comparisons of 8 correlated quantities; the number named has a binomial distribution with at most this mean.
    named = 0
    for seed in range(400):
        values = noisy(seed, 10, 8) * noisy(seed + 1_000, 10, 1, 0.3)
        named += bool((adjusted_p(values[:5], values[5:]) <= ALPHA).any())
    mean = 400 * ALPHA
    assert named <= mean + 3 * mean**0.5


def test_a_busy_machine_is_removed_from_all_quantities_of_a_run() -> None:
    steady = np.tile([1.0, 2.0, 4.0, 8.0], (10, 1))
    load = noisy(3, 10, 1, 0.5)
    values = steady * load
    corrected = values / run_factors(values[:5], values[5:])[:, None]
    np.testing.assert_allclose(corrected, np.tile(corrected[0], (10, 1)))
    np.testing.assert_allclose(np.concatenate(relative_to_others(values[:5], values[5:])), np.ones((10, 4)))


def test_a_change_of_one_quantity_is_seen_in_full_beside_the_others() -> None:
    before, after = np.ones((5, 4)), np.ones((5, 4))
    after[:, 2] = 1.5
    first, second = relative_to_others(before, after)
    assert (second / first)[0, 2] == pytest.approx(1.5)


def test_many_repeats_are_sampled_with_the_same_result_each_time() -> None:
    before, after = noisy(1, 12, 3), noisy(2, 12, 3) * 1.5
    found = adjusted_p(before, after)
    np.testing.assert_array_equal(found, adjusted_p(before, after))
    assert (found <= ALPHA).all()


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 5), st.integers(1, 4))
def test_swapping_the_sides_gives_the_same_p(seed: int, before: int, after: int, columns: int) -> None:
    values = noisy(seed, before + after, columns)
    first, second = values[:before], values[before:]
    np.testing.assert_allclose(adjusted_p(first, second), adjusted_p(second, first))


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 4))
def test_equal_repeats_show_nothing(seed: int, repeats: int, columns: int) -> None:
    values = noisy(seed, repeats, columns)
    assert adjusted_p(values, values).tolist() == [1.0] * columns


def test_nothing_to_compare_proves_nothing() -> None:
    assert adjusted_p(np.ones((0, 2)), np.ones((3, 2))).tolist() == [1.0, 1.0]
    assert adjusted_p(np.ones((3, 0)), np.ones((3, 0))).tolist() == []
