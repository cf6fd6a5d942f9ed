"""What a change saves at most, by a replay of the run with it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.helpers.eight_tasks import MS, S, T, eight_task_rows, row, worker

from daskscope.analysis.summary import extent
from daskscope.analysis.what_if.savings import (
    MAX_TASKS,
    LongestReplay,
    baseline,
    with_durations,
    without_overheads,
    without_spilling,
    without_transfers,
    without_waiting,
)
from daskscope.insights.facts import Facts
from daskscope.model.recording import Recording
from daskscope.testing import make_recording

#: The replay of eight tasks takes 8.5 s and some milliseconds.
ERROR_US = 20 * MS


def eight_tasks(**tables: Any) -> Recording:
    return make_recording({**eight_task_rows(), **tables})


def replayed(recording: Recording) -> LongestReplay:
    found = baseline(recording)
    assert found is not None
    return found


def facts_of(recording: Recording) -> Facts:
    return Facts.of(recording, *extent(recording))


def test_a_shorter_task_saves_its_time_on_a_single_thread() -> None:
    change = with_durations(np.array([2]), np.array([100 * MS]))
    assert replayed(eight_tasks()).saving_us(change, 8500 * MS)[1] == pytest.approx(900 * MS, abs=ERROR_US)


def test_no_task_becomes_longer_and_unknown_rows_change_nothing() -> None:
    change = with_durations(np.array([2, 99]), np.array([5 * S, 0]))
    assert replayed(eight_tasks()).saving_us(change, 8500 * MS)[1] == pytest.approx(0, abs=ERROR_US)


def test_the_time_outside_of_the_computation_may_be_saved() -> None:
    change = with_durations(np.array([2]), np.array([100 * MS]))
    least, most = replayed(eight_tasks()).saving_us(change, 10 * S)
    assert most == pytest.approx(2400 * MS, abs=ERROR_US)
    assert least == pytest.approx(900 * MS, abs=ERROR_US), "the time outside of the computation may stay"


def test_a_saving_is_bounded_by_the_replay() -> None:
    """5 s of thread time could be 5 s of the run, but not if all of it is in a task of half a second."""
    facts = facts_of(eight_tasks())
    saved = facts.thread_time(5 * S, "anything", with_durations(np.array([8]), np.array([0.0])))
    assert saved is not None
    outside_us = facts.run_us - 8500 * MS
    assert saved.wall_high_us == pytest.approx(500 * MS + outside_us, abs=ERROR_US)
    unbounded = facts.thread_time(5 * S, "anything")
    assert unbounded is not None
    assert (unbounded.wall_high_us, saved.us) == (5 * S, 5 * S)


def test_changes_without_effect_on_this_run() -> None:
    base = replayed(eight_tasks())
    waiting = [without_waiting(eight_tasks(), reason) for reason in ("lock", "network", "core", "gil")]
    for change in (without_transfers, without_spilling, *waiting):
        assert change is not None
        assert base.saving_us(change, 8500 * MS)[1] <= ERROR_US


def test_time_of_library_threads_is_spent_otherwise() -> None:
    assert (without_waiting(eight_tasks(), "native"), without_waiting(eight_tasks(), "unknown")) == (None, None)


def test_tasks_that_wait_could_be_shorter() -> None:
    stack = ["/lib/python3.11/socket.py\trecv\t1"]
    profile = {
        "prefix": "load",
        "kind": "compute",
        "source": "daskscope",
        "stack": stack,
        "count": 100,
        "wall_us": 8 * S,
    }
    recording = eight_tasks(profiles=[{**profile, "start_us": T, "stop_us": T + 8 * S, "worker": worker()["worker"]}])
    change = without_waiting(recording, "network")
    assert change is not None
    assert replayed(recording).saving_us(change, 8500 * MS)[1] == pytest.approx(8 * S, abs=100 * MS)


def test_spilled_inputs_could_stay_in_memory() -> None:
    read = {"interval_action": ["disk-read"], "interval_start_us": [T + 8 * S], "interval_stop_us": [T + 8400 * MS]}
    tasks = [*eight_task_rows()["tasks"][:8], {**eight_task_rows()["tasks"][8], **read, "start_us": T + 8400 * MS}]
    tasks[8]["stop_us"] = T + 8900 * MS
    base = replayed(eight_tasks(tasks=tasks))
    assert base.saving_us(without_spilling, 8900 * MS)[1] == pytest.approx(400 * MS, abs=ERROR_US)


def test_overheads_could_be_saved() -> None:
    base = replayed(eight_tasks())
    slow = replace(base.recorded, overheads=replace(base.recorded.overheads, gap_us=100.0 * MS))
    saved = LongestReplay(slow, base.replayed_us + 800 * MS).saving_us(without_overheads, 8500 * MS)[1]
    # Eight gaps, and as much by which this replay differs from the run.
    assert saved == pytest.approx(1600 * MS, abs=2 * ERROR_US)


def test_runs_that_cannot_be_replayed() -> None:
    many = [row(n, n, n + 1) for n in range(MAX_TASKS + 1)]
    assert baseline(eight_tasks(tasks=many)) is None
    assert baseline(eight_tasks(tasks=[])) is None
    assert baseline(eight_tasks(workers=[worker(end_us=T + S, verdict="closed")])) is None


@pytest.mark.parametrize("changed", [{"stop_us": 2**62}, {"nbytes": 2**50}, {"queued_us": 1}])
def test_impossible_times_and_sizes_are_not_replayed(changed: dict[str, int]) -> None:
    tasks = [{**one, **changed} if one["id"] == 3 else one for one in eight_task_rows()["tasks"]]
    assert baseline(eight_tasks(tasks=tasks)) is None


def test_a_saving_has_a_price_if_the_recording_has_prices() -> None:
    rows = eight_task_rows()
    prices = json.dumps({"core_hour": 3600.0, "gib_hour": 0.0})
    facts = facts_of(make_recording({**rows, "clusters": [{**rows["clusters"][0], "prices": prices}]}))
    saved = facts.wall_time(2 * S, "anything")
    assert saved is not None
    # A thread costs a dollar a second.
    assert saved.cost_high == pytest.approx(2.0)
    free = facts_of(eight_tasks()).wall_time(2 * S, "anything")
    assert free is not None
    assert free.cost_high == 0.0
