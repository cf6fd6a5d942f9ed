"""The sums that a server stores of a batch."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskscope.analysis.running.rollup import RollUp, Sums, durations, roll_up, roll_up_all
from daskscope.model.recording import Table
from daskscope.model.untrusted import (
    LARGEST,
    MAX_BUCKETS,
    MAX_ENTITIES,
    MAX_PAIRS,
    NAME_NBYTES,
    OTHER,
    clean,
    clean_name,
    clean_text,
)
from daskscope.server.views import prefix_views
from daskscope.testing import make_recording

T = 1_800_000_000_000_000


def table(name: str, rows: list[dict[str, Any]]) -> Table:
    return make_recording({name: rows})[name]


def task(**values: Any) -> dict[str, Any]:
    return {"prefix": "inc", "computation": "c", "status": "ok", "start_us": T, "stop_us": T + 5, **values}


def test_a_batch_of_tasks_is_summed_by_computation_and_prefix() -> None:
    intervals = {"interval_action": ["transfer", "disk-read", "disk-write", "deserialize", "else"],
                 "interval_start_us": [T] * 5, "interval_stop_us": [T + 1, T + 20, T + 300, T + 4000, T + 9]}  # fmt: skip
    result = roll_up(table("tasks", [
        task(nbytes=7, **intervals),
        task(status="error", stop_us=T + 50),
        task(prefix="sum", status="retried"),
        task(prefix="sum", status="killed", start_us=0, stop_us=T + 20_000_000),
    ]))  # fmt: skip
    inc, add = result.prefixes["c", "inc"], result.prefixes["c", "sum"]
    assert (inc.tasks, inc.errors, inc.compute_us, inc.nbytes) == (2, 1, 55, 7)
    assert (inc.transfer_us, inc.disk_us, inc.deserialize_us) == (1, 320, 4000)
    assert (inc.first_us, inc.last_us, inc.longest_us) == (T, T + 50, 50)
    # A task that never started has no duration and no start.
    assert (add.retried, add.killed, add.compute_us, add.first_us) == (1, 1, 5, T)
    assert result.total().tasks == result.rows == 4
    assert {bucket - T: values[0] for bucket, values in result.timeline.items()} == {0: 3, 20_000_000: 1}


def test_intervals_whose_columns_disagree_are_left_out() -> None:
    result = roll_up(table("tasks", [task(interval_action=["transfer"], interval_start_us=[T], interval_stop_us=[])]))
    assert result.prefixes["c", "inc"].transfer_us == 0


@pytest.mark.parametrize("rows", [1, 3])
def test_durations_are_between_zero_and_a_year(rows: int) -> None:
    extremes = np.array([-(2**63), 2**63 - 1, 10], dtype=np.int64)[:rows]
    for start in extremes:
        lengths = durations(np.full(rows, start), extremes)
        assert ((lengths >= 0) & (lengths <= 366 * 24 * 3600 * 1e6)).all()


def test_a_batch_with_too_many_steps_has_sums_but_no_timeline() -> None:
    rows = [task(stop_us=T + n * 10_000_000) for n in range(MAX_BUCKETS + 1)]
    result = roll_up(table("tasks", rows))
    assert (result.timeline, result.total().tasks) == ({}, MAX_BUCKETS + 1)
    everything = roll_up_all(table("tasks", rows))
    assert (len(everything.timeline), everything.total().tasks) == (MAX_BUCKETS + 1, MAX_BUCKETS + 1)


def test_too_many_pairs_are_summed_by_prefix_only() -> None:
    rows = [task(computation=f"c{n % 100}", prefix=f"p{n // 100}") for n in range(MAX_PAIRS + 100)]
    result = roll_up(table("tasks", rows))
    assert {computation for computation, _ in result.prefixes} == {OTHER}
    assert (len(result.prefixes), result.total().tasks) == (51, MAX_PAIRS + 100)
    assert len(roll_up_all(table("tasks", rows)).prefixes) == MAX_PAIRS + 100


def test_surplus_entities_are_dropped() -> None:
    rows = [{"client": f"c{n}", "seen_us": T} for n in range(MAX_ENTITIES + 5)]
    assert len(roll_up(table("clients", rows)).entities["clients"]) == MAX_ENTITIES


def test_the_last_sample_of_each_worker_is_kept() -> None:
    rows = [{"time_us": T + n % 3, "worker": f"w{n % 2}", "memory": n, "cpu_percent": float("nan")} for n in range(6)]
    assert roll_up(table("samples", rows)).memories == {"w0": (T + 2, 2, 0.0), "w1": (T + 2, 5, 0.0)}


rows_of_tasks = st.lists(
    st.builds(
        task,
        prefix=st.sampled_from(["a", "b"]),
        computation=st.sampled_from(["", "x"]),
        start_us=st.sampled_from([0, T, T + 7, T - 10**10]),
        stop_us=st.integers(T, T + 10**11),
        nbytes=st.integers(0, 10**12),
    ),
    min_size=1,
    max_size=8,
)


@given(st.lists(rows_of_tasks, min_size=1, max_size=5), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_roll_ups_add_up_in_any_order_and_grouping(parts: list[list[dict[str, Any]]], random: Any) -> None:
    whole = roll_up(table("tasks", [row for part in parts for row in part]))
    shuffled = [roll_up(table("tasks", part)) for part in parts]
    random.shuffle(shuffled)
    left, right = RollUp(), RollUp()
    for number, part in enumerate(shuffled):
        (left if number % 2 else right).add(copy.deepcopy(part))
    left.add(right)
    assert left == whole == roll_up_all(table("tasks", [row for part in parts for row in part]))


@given(st.text(max_size=700))
def test_a_cleaned_name_can_be_stored_and_is_a_prefix(text: str) -> None:
    cleaned = clean_name(text)
    assert len(cleaned.encode()) <= NAME_NBYTES
    assert "\0" not in cleaned
    assert clean_name(cleaned) == cleaned
    if "\0" not in text:
        assert text.startswith(cleaned)


def test_cleaned_values_can_be_stored_in_any_database() -> None:
    assert clean_text("a\0b\ud800c\n🦆", 100) == "a\ufffdb?c\n🦆"
    assert clean_text("abcdef", 3) == "abc"
    assert [clean(value) for value in (2**63, -5, 7, float("nan"), float("inf"), 1e300)] == [
        LARGEST,
        0,
        7,
        0.0,
        0.0,
        LARGEST,
    ]
    assert clean(-5, signed=True) == -5


def test_a_task_that_failed_because_of_a_dependency_is_not_counted() -> None:
    rows = [
        {"type": "E", "key": "a", "count": 1},
        *({"type": "E", "key": f"b{n}", "blamed_key": "a", "count": 1} for n in range(3)),
    ]
    total = roll_up(make_recording({"exceptions": rows})["exceptions"])
    assert ([row["key"] for row in total.exceptions], total.uncounted) == (["a"], 0)
    assert roll_up(make_recording({"exceptions": rows[1:]})["exceptions"]).exceptions == []


def test_a_computation_lists_its_prefixes_in_the_order_of_the_cluster() -> None:
    cluster = [("sum", Sums(first_us=30)), ("read", Sums(first_us=10)), ("merge", Sums(first_us=20))]
    views = prefix_views([*cluster[:1], ("new", Sums(first_us=40))], cluster)
    assert [(view["prefix"], view["order"]) for view in views] == [("sum", 2), ("new", 3)]
