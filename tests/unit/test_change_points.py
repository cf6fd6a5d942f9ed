"""Changes of a level are found, noise is not, and what changed is named."""

from __future__ import annotations

import random
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.analysis.compare.history import (
    AFTER,
    BEFORE,
    MAX_P,
    ChangePoint,
    PastRun,
    causes,
    change_points,
    p_value,
)


def test_a_step_is_found_with_its_place_and_size() -> None:
    noise = [0.00, 0.02, -0.01, 0.03, -0.02, 0.01]
    values = [10 * (1 + noise[n % 6]) for n in range(20)] + [12 * (1 + noise[n % 6]) for n in range(5)]
    (change,) = change_points(values)
    assert change.index == 20
    assert change.ratio == pytest.approx(1.2, rel=0.02)


@pytest.mark.parametrize("values", [[], [5.0] * 3, [5.0] * 100, [1.0, 100.0] * 30])
def test_a_steady_series_has_no_change(values: list[float]) -> None:
    assert change_points(values) == []


def test_one_outlier_is_no_change() -> None:
    assert change_points([10.0 + n % 3 / 10 for n in range(20)] + [50.0] + [10.0 + n % 3 / 10 for n in range(10)]) == []


def test_a_change_back_is_another_change() -> None:
    def around(level: float, count: int) -> list[float]:
        return [level + n % 4 / 100 for n in range(count)]

    found = change_points([*around(10, 15), *around(13, 15), *around(10, 15)])
    assert [(change.index, round(change.ratio, 1)) for change in found] == [(15, 1.3), (30, 0.8)]


@given(st.lists(st.integers(0, 5), min_size=2, max_size=4), st.lists(st.integers(0, 5), min_size=1, max_size=3))
def test_equal_values_make_a_change_less_likely_but_never_impossible(before: list[int], after: list[int]) -> None:
    assert 0 < p_value(before, after) <= 1


def test_the_probability_is_that_of_all_orders() -> None:
    """Compare with counting every way to choose the last values, for values that all differ."""
    values = [3, 1, 4, 15, 9, 2, 6]
    for chosen in combinations(values, 3):
        before = [value for value in values if value not in chosen]
        ranks = {value: rank for rank, value in enumerate(sorted(values))}
        middle = 3 * (len(values) - 1) / 2

        def distance(some: tuple[int, ...], ranks: dict[int, int] = ranks, middle: float = middle) -> float:
            return abs(sum(ranks[value] for value in some) - middle)

        every = list(combinations(values, 3))
        extreme = sum(distance(other) >= distance(chosen) for other in every)
        assert p_value(before, chosen) == pytest.approx(extreme / len(every))
        assert all(p_value(before, order) == p_value(before, chosen) for order in permutations(chosen))


def test_false_alarms_are_as_rare_as_promised() -> None:
    """Draw independent values: more alarms than twice the promise would need luck of one in a million."""
    drawn = random.Random(7)
    alarms, windows = 0, 20_000
    for _ in range(windows):
        values = [drawn.gauss(0, 1) for _ in range(BEFORE + AFTER)]
        alarms += p_value(values[:BEFORE], values[BEFORE:]) <= MAX_P
    assert alarms <= 2 * MAX_P * windows + 8


def run(**values: object) -> PastRun:
    usual = {"start_us": 0, "wall_us": 10_000_000, "tasks": 100, "nbytes": 10**9, "transfer_us": 0, "disk_us": 0}
    known = {**usual, "errors": 0, "threads": 8, "prefixes": {"read": (100, 50_000_000)}, "versions": {"numpy": "2.0"}}
    return PastRun(**{**known, **values})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, []),
        ({"nbytes": 2 * 10**9}, ["The data grew: results of 954 MiB became 1.86 GiB."]),
        ({"tasks": 50, "wall_us": 5_000_000}, ["There are 50 instead of 100 tasks."]),
        ({"prefixes": {"read": (100, 75_000_000)}}, ["Tasks of read take 750 ms instead of 500 ms."]),
        ({"threads": 4}, ["The cluster has 4 instead of 8 threads."]),
        ({"wall_us": 20_000_000, "disk_us": 9_000_000}, ["Thread time on spilled results went from 0 s to 9.00 s."]),
        ({"errors": 3}, ["Failures went from 0 to 3 per run."]),
        ({"versions": {"numpy": "2.1"}}, ["Versions changed: numpy 2.0 → 2.1."]),
    ],
)
def test_the_cause_is_named(changed: dict[str, object], said: list[str]) -> None:
    assert causes([run()] * 5, [run(**{"wall_us": 15_000_000, **changed})] * 5) == said


def test_what_went_the_other_way_is_no_cause() -> None:
    faster = {"nbytes": 10**8, "tasks": 50, "threads": 16, "prefixes": {"read": (50, 20_000_000)}}
    assert causes([run()] * 5, [run(wall_us=15_000_000, **faster)] * 5) == []


def test_failures_of_some_runs_do_not_change_the_median() -> None:
    assert causes([run()] * 3, [run(), run(), run(errors=1), run(errors=1)]) == []


def test_a_change_without_a_level_before_is_infinite() -> None:
    assert ChangePoint(0, 0.0, 1.0).ratio == float("inf")
