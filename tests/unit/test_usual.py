"""How long a computation usually takes, judged from earlier runs with realistic durations."""

from __future__ import annotations

from random import Random

import pytest

from daskscope.analysis.compare.history import RunSoFar, Usual, judge_duration
from daskscope.analysis.running.progress import EarlierRun

S = 1_000_000
#: Nightly runs of one job, in seconds: some noise, and one that met a busy cluster.
NIGHTLY = [412.0, 398.0, 405.0, 431.0, 402.0, 399.0, 418.0, 604.0, 407.0, 411.0, 395.0, 420.0]
#: A job on a shared cluster: the slowest takes nine times as long as the fastest.
NOISY = [61.0, 240.0, 88.0, 47.0, 310.0, 150.0, 35.0, 95.0]


def runs(*seconds: float, tasks: int = 200) -> list[EarlierRun]:
    return [EarlierRun(round(value * S), tasks) for value in seconds]


def judged(earlier: list[EarlierRun], elapsed_s: float, done: int = 0, tasks: int = 200) -> Usual:
    found = judge_duration(earlier, RunSoFar(tasks, done, elapsed_s * S, elapsed_s * S))
    assert found is not None
    return found


def left_s(found: Usual) -> tuple[float, float] | None:
    return None if found.left is None else (found.left.low_us / S, found.left.high_us / S)


def test_without_earlier_runs_nothing_is_said() -> None:
    now = RunSoFar(200, 10, 5 * S, 5 * S)
    assert judge_duration([], now) is None
    assert judge_duration([EarlierRun(0, 200)], now) is None


@pytest.mark.parametrize(
    ("seconds", "sentence"),
    [
        ([4.0], "The earlier run took 4.00 s."),
        ([4.0, 5.0], "2 earlier runs took 4.00 s to 5.00 s."),
        ([4.0, 5.0, 4.5, 4.2], "4 earlier runs took 4.00 s to 5.00 s."),
    ],
)
def test_fewer_than_five_runs_are_no_usual_duration(seconds: list[float], sentence: str) -> None:
    for elapsed in (1, 1000):
        found = judged(runs(*seconds), elapsed, 100)
        assert (found.state, found.left, found.sentence) == ("", None, sentence)


def test_the_usual_duration_is_the_median_with_the_middle_80_percent() -> None:
    found = judged(runs(*NIGHTLY), 0)
    assert (found.runs, found.median_us, found.low_us, found.high_us) == (12, 409 * S, 398 * S, 431 * S)
    assert found.sentence == "Usually takes 6 min 49 s (6 min 38 s to 7 min 11 s); about 6 to 8 min left."


def test_only_the_last_twenty_runs_count() -> None:
    found = judged(runs(*[10.0] * 20, *[1000.0] * 30), 5, 100)
    assert (found.runs, found.high_us) == (20, 10 * S)


def test_a_run_within_the_usual_range_or_slightly_above_it_is_not_slower() -> None:
    # 431 s is the end of the range, 474 s a tenth above it.
    for elapsed in (100, 409, 431, 470):
        assert judged(runs(*NIGHTLY), elapsed, 150).state == ""
    assert judged(runs(*NIGHTLY), 475, 150).sentence == (
        "Slower than usual: 7 min 55 s so far, usually 6 min 49 s (6 min 38 s to 7 min 11 s)."
    )


def test_a_noisy_history_needs_a_clear_excess() -> None:
    # The range ends at 310 s, 218.5 s above the median.
    assert judged(runs(*NOISY), 520, 150).state == ""
    assert judged(runs(*NOISY), 530, 150).state == "slower"
    # Earlier runs predict nothing here: 40 to 250 s would be left.
    assert judged(runs(*NOISY), 60, 100).left is None


def test_more_tasks_than_usual_are_said_instead_of_slower() -> None:
    found = judged(runs(*NIGHTLY), 3_000, 300, tasks=600)
    assert (found.state, found.left) == ("more tasks", None)
    assert (
        found.sentence
        == "More tasks than usual: 600 instead of 200. Usually it takes 6 min 49 s (6 min 38 s to 7 min 11 s)."
    )
    fewer = judged(runs(*NIGHTLY), 3_000, 10, tasks=20)
    assert (fewer.state, fewer.sentence[:43]) == ("fewer tasks", "Fewer tasks than usual: 20 instead of 200. ")


def test_data_that_grows_a_little_is_still_the_same() -> None:
    assert judged(runs(*NIGHTLY), 3_000, 100, tasks=240).state == "slower"


def test_a_run_is_compared_with_runs_of_its_size_if_there_are_enough() -> None:
    mixed = runs(*[10.0] * 6) + runs(*[100.0] * 6, tasks=2_000)
    small, large = judged(mixed, 15, 100), judged(mixed, 15, 100, tasks=2_000)
    assert (small.state, small.median_us, small.runs) == ("slower", 10 * S, 6)
    assert (large.state, large.median_us, large.runs) == ("", 100 * S, 6)


def test_the_time_left_contains_what_earlier_runs_and_the_pace_say() -> None:
    # Halfway by the clock and by tasks: both say about 205 s.
    assert left_s(judged(runs(*NIGHTLY), 205, 100)) == (193, 226)
    # 80 of 200 tasks: at this pace 307 s are left.
    assert left_s(judged(runs(*NIGHTLY), 205, 80)) == (193, 307.5)
    assert judged(runs(*NIGHTLY), 205, 80).sentence.endswith("; about 3 to 6 min left.")
    # At the start, only earlier runs say something.
    assert left_s(judged(runs(*NIGHTLY), 40, 1)) == (358, 391)


def test_a_run_that_took_longer_than_most_is_compared_with_those_that_took_longer() -> None:
    quiet = runs(*(value for value in NIGHTLY if value < 500))
    # 407, 411, 412, 418, 420 and 431 s are still possible; the pace says 6 s.
    assert left_s(judged(quiet, 406, 197)) == (1, 25)
    # With the one of 604 s, the range is too wide.
    assert left_s(judged(runs(*NIGHTLY), 406, 197)) is None


def test_the_pace_is_that_of_the_time_when_tasks_were_counted() -> None:
    # 80 of 200 tasks 160 s after the start: 400 s in total.
    found = judge_duration(runs(*NIGHTLY), RunSoFar(200, 80, 160 * S, 205 * S))
    assert found is not None
    assert left_s(found) == (193, 226)
    late = judge_duration(runs(*NIGHTLY), RunSoFar(200, 80, 180 * S, 205 * S))
    assert late is not None
    assert left_s(late) == (193, 245)


def test_few_tasks_have_no_pace() -> None:
    found = judged(runs(*NIGHTLY, tasks=4), 205, 0, tasks=4)
    assert left_s(found) == (193, 226)


def test_a_run_that_is_stuck_has_no_time_left_and_becomes_slower() -> None:
    """Ten tasks finished in the first half minute, and none since."""
    found = [judged(runs(*NIGHTLY), elapsed, 10) for elapsed in (30, 120, 300, 450, 500, 5_000)]
    assert [one.left is None for one in found] == [False, True, True, True, True, True]
    assert [one.state for one in found] == ["", "", "", "", "slower", "slower"]
    # Nothing has finished at all.
    assert judged(runs(*NIGHTLY), 200, 0).left is None


def test_short_runs_have_a_rounded_range() -> None:
    found = judged(runs(2.1, 2.0, 2.2, 2.4, 2.0), 1, 100)
    assert left_s(found) == pytest.approx((1.0, 1.4))
    assert found.sentence == "Usually takes 2.10 s (2.00 s to 2.40 s); less than 10 s left."


@pytest.mark.parametrize(
    ("count", "noise", "unchanged", "slowed"),
    [
        (5, 0.1, (0.0, 0.05), (0.8, 1.0)),
        (20, 0.1, (0.0, 0.05), (0.9, 1.0)),
        (5, 0.6, (0.0, 0.12), (0.1, 0.3)),
        (20, 0.6, (0.0, 0.1), (0.1, 0.3)),
    ],
)
def test_few_unchanged_runs_are_called_slower(
    count: int, noise: float, unchanged: tuple[float, float], slowed: tuple[float, float]
) -> None:
    """The shares that the limit was chosen for, for unchanged runs and those that take 1.5 times as long."""
    random = Random(count)

    def slower_share(factor: float) -> float:
        found = 0
        for _ in range(500):
            history = runs(*(60 * random.lognormvariate(0.0, noise) for _ in range(count)))
            found += judged(history, factor * 60 * random.lognormvariate(0.0, noise), 200).state == "slower"
        return found / 500

    assert unchanged[0] <= slower_share(1.0) <= unchanged[1]
    assert slowed[0] <= slower_share(1.5) <= slowed[1]
