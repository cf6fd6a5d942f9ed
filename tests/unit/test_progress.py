"""The progress of running computations: counts, time left, and causes of a standstill."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from daskscope import units
from daskscope.analysis.running.progress import (
    Counts,
    EarlierRun,
    Progress,
    RunningComputation,
    RunningTask,
    TimeLeft,
    needs_earlier,
    parse_running,
    track,
)
from daskscope.analysis.running.rollup import Sums
from daskscope.analysis.running.still_running import RunStatus

NOW = 1_800_000_000_000_000
S = 1_000_000
MIN = 60 * S


def run(**values: Any) -> RunStatus:
    present = RunStatus(start_us=NOW - 60 * MIN, seen_us=NOW, workers=2, threads=4, tasks_executing=4, last_work_us=NOW)
    return replace(present, **values)


def computation(states: dict[str, dict[str, int]], **values: Any) -> RunningComputation:
    return RunningComputation(
        **{
            "id": "c",
            "start_us": NOW - 50 * S,
            "tasks": sum(sum(part.values()) for part in states.values()),
            "erred": 0,
            "unfinished": 0,
            "prefix_states": json.dumps(states),
            **values,
        }
    )


def sums(tasks: int, mean_s: float, began_s: float = 50.0, **values: int) -> Sums:
    compute = {"compute_us": round(tasks * mean_s * S), "longest_us": round(mean_s * S)}
    return Sums(tasks=tasks, first_us=round(NOW - began_s * S), last_us=NOW, **{**compute, **values})


def only(one: RunningComputation, status: RunStatus | None = None, *tasks: RunningTask, failed: int = 0) -> Progress:
    (found,) = track(status or run(), [one], tasks, NOW, failed)
    return found


# ---------------------------------------------------------------- counts


def test_tasks_are_counted_by_prefix() -> None:
    found = only(
        computation({
            "load": {"memory": 5, "released": 3, "processing": 2, "queued": 10},
            "sum": {"waiting": 4, "erred": 1, "no-worker": 2},
        })
    )  # fmt: skip
    assert found.prefixes == {
        "load": Counts(done=8, running=2, waiting=10),
        "sum": Counts(waiting=6, failed=1, unrunnable=2),
    }
    assert found.counts == Counts(done=8, running=2, waiting=16, failed=1, unrunnable=2)
    assert found.counts.total == 27


def test_no_more_tasks_run_than_there_are_threads() -> None:
    one = computation({"a": {"processing": 30}, "b": {"processing": 10, "waiting": 1}})
    found = only(one)
    assert found.prefixes == {"a": Counts(running=3, waiting=27), "b": Counts(running=1, waiting=10)}


def test_executions_that_arrived_after_the_states_count() -> None:
    states = {"a": {"memory": 10, "processing": 4, "queued": 20}}
    newer = only(computation(states, sums={"a": sums(16, 1.0)}))
    assert newer.counts == Counts(done=16, running=4, waiting=14)
    last = only(computation({"a": {"memory": 10, "processing": 4}}, sums={"a": sums(13, 1.0)}))
    assert last.counts == Counts(done=13, running=1)


def test_executions_count_only_as_far_as_the_threads_can_have_run_them_since() -> None:
    # 40 executions and 10 results: a worker was lost, and its results are computed again.
    states = {"a": {"memory": 10, "processing": 4, "queued": 86}}

    def done(seen_us: int) -> int:
        return only(computation(states, sums={"a": sums(40, 1.0)}, seen_us=seen_us)).counts.done

    assert done(NOW) == 10
    # Two seconds on four threads.
    assert done(NOW - 2 * S) == 18
    assert done(NOW - 20 * S) == 40


@pytest.mark.parametrize("more", [{"killed": 1}, {"retried": 1}, {"tasks": 40}])
def test_executions_do_not_count_if_some_tasks_ran_twice(more: dict[str, int]) -> None:
    states = {"a": {"memory": 10, "processing": 4, "queued": 20}}
    assert only(computation(states, sums={"a": replace(sums(16, 1.0), **more)})).counts.done == 10


def test_an_older_recorder_sends_no_states_by_prefix() -> None:
    found = only(RunningComputation("c", NOW - S, tasks=10, erred=1, unfinished=6))
    assert (found.counts, found.prefixes, found.left) == (Counts(3, 4, 2, 1), {}, None)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 3}', '{"a": {"memory": "x", "processing": -4}}', "[" * 9000])
def test_invalid_states_count_nothing(text: str) -> None:
    found = only(RunningComputation("c", NOW, tasks=0, erred=0, unfinished=0, prefix_states=text))
    assert found.counts.total == 0


@pytest.mark.parametrize("text", ["", "{}", "[", "[[]]", '[["a","b","c","d","e"]]', '[["a","b","c","d",true]]', "3"])
def test_invalid_lists_of_running_tasks_are_ignored(text: str) -> None:
    assert parse_running(text) == []


def test_running_tasks_are_parsed() -> None:
    assert parse_running('[["k", "p", "c", "tcp://w", 5]]') == [RunningTask("k", "p", "c", "tcp://w", 5)]


# ---------------------------------------------------------------- time left


def test_the_time_left_contains_the_truth_of_equal_tasks() -> None:
    # 100 of 200 tasks of 2 s on 4 threads: 50 s have passed, 50 s are left.
    found = only(computation({"a": {"memory": 100, "processing": 4, "queued": 96}}, sums={"a": sums(100, 2.0)}))
    assert found.left is not None
    assert found.left.low_us < 50 * S < found.left.high_us
    assert found.left.high_us < 1.5 * found.left.low_us
    assert found.summary == "100 of 200 tasks, about 40 to 60 s left"


def test_tasks_that_are_all_done_are_called_done() -> None:
    found = only(computation({"a": {"released": 120}, "b": {"memory": 60}}))
    assert (found.counts.is_done, found.summary) == (True, "all 180 tasks done")
    failed = only(computation({"a": {"memory": 170, "erred": 10}}))
    assert (failed.counts.is_done, failed.summary) == (True, "170 of 180 tasks done")
    assert only(computation({"a": {"memory": 1}})).summary == "1 of 1 task done"
    assert not only(computation({"a": {"memory": 1, "processing": 1}})).counts.is_done
    assert not only(computation({})).counts.is_done


def test_the_time_left_adds_prefixes_with_different_durations() -> None:
    # 5 s of short tasks and 30 s of long ones are left on 4 threads.
    states = {"short": {"memory": 900, "processing": 4, "queued": 198}, "long": {"memory": 10, "waiting": 40}}
    found = only(computation(states, sums={"short": sums(900, 0.1), "long": sums(10, 3.0)}, start_us=NOW - 30 * S))
    assert found.left is not None
    assert found.left.low_us < 35 * S < found.left.high_us


def test_nothing_is_said_before_a_few_tasks_have_finished() -> None:
    one = computation({"a": {"memory": 4, "processing": 4, "queued": 96}}, start_us=NOW - 4 * S)
    assert only(replace(one, sums={"a": sums(4, 2.0, 4)})).left is None
    assert only(replace(one, sums={"a": sums(5, 2.0, 4)})).left is not None


def test_nothing_is_said_if_many_tasks_left_have_not_run_yet() -> None:
    states = {"a": {"memory": 90, "processing": 4, "queued": 6}, "b": {"waiting": 100}}
    one = computation(states, sums={"a": sums(90, 2.0)})
    assert only(one).left is None
    assert needs_earlier(one)


def test_a_few_final_tasks_do_not_prevent_an_estimate() -> None:
    states = {"a": {"memory": 100, "processing": 4, "queued": 96}, "b": {"waiting": 2}}
    assert only(computation(states, sums={"a": sums(100, 2.0)})).left is not None


@pytest.mark.parametrize(
    ("prefix", "age_s", "is_said"), [("a", 3, True), ("a", 20, False), ("new", 4, True), ("new", 20, False)]
)
def test_nothing_is_said_while_a_task_runs_for_much_longer_than_usual(prefix: str, age_s: int, is_said: bool) -> None:
    states = {"a": {"memory": 100, "processing": 4, "queued": 96}, "new": {"processing": 1}}
    one = computation(states, sums={"a": sums(100, 2.0)})
    task = RunningTask("key", prefix, one.id, "tcp://w:1", NOW - age_s * S)
    assert (only(one, None, task).left is not None) == is_said


def test_earlier_runs_give_the_durations_of_prefixes_that_have_not_run() -> None:
    # 100 tasks of 4 s on 4 threads are left, after some seconds of the others.
    states = {"a": {"memory": 96, "processing": 4}, "b": {"waiting": 100}}
    earlier = [EarlierRun(150 * S, 200, {"a": 2.0 * S, "b": 4.0 * S})]
    found = only(computation(states, sums={"a": sums(96, 2.0)}, earlier=earlier))
    assert found.left is not None
    assert found.left.low_us < 101 * S < found.left.high_us


def test_earlier_runs_tell_the_time_left_at_the_start() -> None:
    states = {"a": {"memory": 1, "processing": 4, "queued": 95}}

    def left(*earlier: EarlierRun) -> TimeLeft | None:
        return only(computation(states, earlier=earlier)).left

    found = left(EarlierRun(200 * S, 100), EarlierRun(220 * S, 100))
    assert found is not None
    assert (found.low_us, round(found.high_us)) == (130 * S, 192 * S)
    # One run proves nothing, and neither do two that differ, had other tasks, or were over by now.
    assert left(EarlierRun(200 * S, 100)) is None
    assert left(EarlierRun(200 * S, 100), EarlierRun(400 * S, 100)) is None
    assert left(EarlierRun(200 * S, 50), EarlierRun(220 * S, 50)) is None
    assert left(EarlierRun(40 * S, 100), EarlierRun(42 * S, 100)) is None


def test_a_range_that_is_too_wide_is_not_shown() -> None:
    # In 50 min the computation used a hundredth of the cluster: it may speed up, or not.
    one = computation({"a": {"memory": 60, "processing": 4, "queued": 6000}}, sums={"a": sums(60, 2.0, 3000)})
    assert only(replace(one, start_us=NOW - 3000 * S), run(threads=100)).left is None


def test_two_computations_share_the_threads() -> None:
    one = computation({"a": {"memory": 100, "processing": 4, "queued": 96}}, sums={"a": sums(100, 2.0)})
    alone, (first, second) = only(one), track(run(), [one, replace(one, id="d")], [], NOW)
    assert alone.left is not None and first.left is not None
    assert first.left == second.left
    assert first.left.high_us > 1.5 * alone.left.high_us


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0, 9.9, "less than 10 s"),
        (21, 24, "20 to 25 s"),
        (4, 12, "less than 15 s"),
        (50, 61, "less than 2 min"),
        (125, 170, "2 to 3 min"),
        (120, 120, "2 min"),
        (100 * 60, 110 * 60, "1.5 to 2 h"),
        (40 * 3600, 41 * 3600, "40 to 41 h"),
    ],
)
def test_a_range_is_rounded_outwards(low: float, high: float, text: str) -> None:
    assert units.duration_range(low * S, high * S) == text


# ---------------------------------------------------------------- stuck


WAITING = {"a": {"memory": 5, "processing": 3, "queued": 2}}


def test_a_cluster_without_workers_is_stuck() -> None:
    found = only(computation(WAITING), run(workers=0, threads=0, tasks_queued=5, tasks_executing=0))
    assert (found.stuck, found.left) == ("the cluster has no workers", None)


def test_paused_workers_are_a_cause() -> None:
    paused = {"tasks_processing": 5, "tasks_executing": 0}
    assert only(computation(WAITING), run(workers_paused=2, **paused)).stuck == (
        "all 2 workers are paused, because their memory is nearly full"
    )
    assert only(computation(WAITING), run(workers=1, workers_paused=1, **paused)).stuck == (
        "the only worker is paused, because its memory is nearly full"
    )


def test_a_stalled_cluster_is_stuck_and_nothing_runs() -> None:
    found = only(
        computation(WAITING), run(stalled_since_us=NOW - 42 * S, tasks_processing=3, tasks_queued=2, tasks_executing=0)
    )
    assert found.stuck == "no worker has executed anything for 42.0 s"
    assert found.counts == Counts(done=5, waiting=5)


def test_tasks_that_no_worker_fits() -> None:
    needs = {"tasks_unrunnable": 3, "unrunnable_needs": '{"GPU=1": 3}'}
    blocked = computation({"a": {"memory": 5, "no-worker": 3}})
    assert only(blocked, run(**needs)).stuck == "no worker fits 3 tasks: none offers GPU=1 (3)"
    # Another computation goes on, this one cannot.
    busy = replace(computation(WAITING), id="d")
    first, second = track(run(tasks_processing=3, **needs), [blocked, busy], [], NOW)
    assert (first.stuck, second.stuck) == ("no worker fits 3 tasks: none offers GPU=1 (3)", "")
    partly = computation({"a": {"processing": 4, "no-worker": 3}})
    found = only(partly, run(tasks_processing=4, **needs))
    assert (found.stuck, found.note) == ("", "no worker fits 3 tasks: none offers GPU=1 (3)")


def test_a_task_that_runs_twenty_times_as_long_as_usual() -> None:
    usual = {"a": sums(9, 1.0)}
    long = RunningTask("a-7", "a", "c", "tcp://w", NOW - 21 * S)
    text = "a-7 has been running for 21.0 s, a usually takes 1.00 s"
    last = computation({"a": {"memory": 9, "processing": 1}, "b": {"waiting": 1}}, sums=usual)
    assert only(last, run(), long).stuck == text
    among = computation({"a": {"memory": 9, "processing": 3}}, sums=usual)
    assert (only(among, run(), long).stuck, only(among, run(), long).note) == ("", text)
    assert only(last, run(), replace(long, start_us=NOW - 19 * S)).stuck == ""
    assert only(last, run(), replace(long, computation="other")).stuck == ""
    # One earlier straggler does not change what is usual.
    straggler = {"a": replace(sums(9, 1.0), tasks=10, compute_us=1009 * S, longest_us=1000 * S)}
    assert only(replace(last, sums=straggler), run(), long).stuck == text
    # Too few have finished to tell.
    assert only(replace(last, sums={"a": sums(4, 1.0)}), run(), long).stuck == ""


def test_short_tasks_are_not_called_long() -> None:
    quick = computation({"a": {"memory": 9, "processing": 1}}, sums={"a": sums(9, 0.01)})
    assert only(quick, run(), RunningTask("a-7", "a", "c", "tcp://w", NOW - 9 * S)).stuck == ""


def test_failing_transfers_are_a_cause_if_no_task_runs() -> None:
    idle = run(tasks_processing=3, tasks_executing=0, last_work_us=NOW - 40 * S)
    assert only(computation(WAITING), idle, failed=7).stuck == "transfers between workers fail (7 in the last minute)"
    assert only(computation(WAITING), idle, failed=0).stuck == ""
    stalled = replace(idle, stalled_since_us=NOW - 20 * S, last_work_us=NOW - 21 * S)
    assert (
        only(computation(WAITING), stalled, failed=1).stuck == "transfers between workers fail (1 in the last minute)"
    )
    assert only(computation(WAITING), run(tasks_processing=3), failed=7).stuck == ""
