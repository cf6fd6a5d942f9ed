"""Workers and busy threads over time."""

from __future__ import annotations

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskscope.analysis.timeline import Life, Steps, busy_threads, present, steps_of, wanted_workers

SECOND = 1_000_000


def steps(count: int, step_us: int = 10 * SECOND) -> Steps:
    return Steps(0, step_us, count, 0, count * step_us)


def test_steps_cover_the_whole_time_and_are_limited() -> None:
    few = steps_of(5 * SECOND, 95 * SECOND, 10 * SECOND)
    assert (few.start_us, few.step_us, few.count) == (0, 10 * SECOND, 10)
    assert few.widths.tolist() == [5 * SECOND, *[10 * SECOND] * 8, 5 * SECOND]
    many = steps_of(0, 30 * 24 * 3600 * SECOND, 10 * SECOND)
    assert many.count <= 240
    assert many.step_us % (10 * SECOND) == 0


@given(st.integers(0, 10**15), st.integers(0, 10**13))
def test_any_time_range_is_covered_by_a_limited_number_of_steps(start: int, length: int) -> None:
    found = steps_of(start, start + length, 10 * SECOND)
    assert 1 <= found.count <= 240
    assert found.edges[0] <= start
    assert found.edges[-1] >= start + length
    assert found.widths.sum() in (length, length + 1)


def test_a_worker_counts_while_it_is_connected() -> None:
    lives = [Life(0, 20 * SECOND, 2), Life(5 * SECOND, 10 * SECOND, 4)]
    workers, threads = present(lives, steps(3))
    assert workers.tolist() == [1.5, 1.0, 0.0]
    assert threads.tolist() == [4.0, 2.0, 0.0]


def test_a_permanent_worker_counts_as_one_in_partial_steps() -> None:
    workers, _ = present([Life(3 * SECOND, 14 * SECOND, 1)], steps_of(3 * SECOND, 14 * SECOND, 10 * SECOND))
    assert workers.tolist() == [1.0, 1.0]


def test_a_hundred_thousand_workers_are_processed_in_chunks() -> None:
    lives = [Life(n, 100 * SECOND - n, 2) for n in range(20_000)]
    tracemalloc.start()
    workers, threads = present(lives, steps(200, SECOND // 2))
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All of them at once would take several arrays of 32 MB.
    assert held < 10_000_000
    assert workers[1:-1].tolist() == [20_000.0] * 198
    assert threads[1:-1].tolist() == [40_000.0] * 198
    assert 0 < workers[0] < 20_000


def test_without_workers_all_counts_are_zero() -> None:
    workers, threads = present([], steps(2))
    assert workers.tolist() == [0.0, 0.0]
    assert threads.tolist() == [0.0, 0.0]


def test_a_long_execution_is_spread_over_earlier_steps() -> None:
    compute = np.array([0, 0, 25.0 * SECOND])
    busy = busy_threads(compute, np.array([1.0, 1.0, 1.0]), steps(3))
    assert busy.tolist() == [0.5, 1.0, 1.0]


@given(st.lists(st.floats(0, 1e9, allow_subnormal=False), min_size=1, max_size=20), st.floats(0, 64))
def test_busy_threads_never_exceed_the_threads_present(compute: list[float], threads: float) -> None:
    busy = busy_threads(np.array(compute), np.full(len(compute), threads), steps(len(compute), SECOND))
    assert (busy <= threads * (1 + 1e-9)).all()
    # Values below 1e-300 round by more than their own size.
    assert busy.sum() <= sum(compute) / SECOND * (1 + 1e-9) + 1e-300


def test_a_request_holds_until_the_next_one() -> None:
    assert wanted_workers([12 * SECOND, 31 * SECOND, 15 * SECOND], [4, 1, 8], steps(4)) == [None, 8, 8, 8]
    assert wanted_workers([12 * SECOND, 31 * SECOND], [4, 1], steps(5)) == [None, 4, 4, 4, 1]
    assert wanted_workers([], [], steps(4)) == [None] * 4
