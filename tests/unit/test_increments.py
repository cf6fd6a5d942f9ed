"""Increments add up to the whole, whatever is in which of them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from daskscope.analysis.running import increments
from daskscope.analysis.running.increments import CATEGORIES, Increment, make_increment
from daskscope.testing import make_recording

#: An arbitrary time.
T = 1_800_000_000_000_000
SECOND = 1_000_000


def execution(number: int, start_s: float, length_s: float, **more: Any) -> dict[str, Any]:
    start = T + int(start_s * SECOND)
    return {
        "id": number,
        "key": f"inc-{number}",
        "prefix": "inc",
        "worker": "tcp://a:1",
        "thread": 7,
        "status": "ok",
        "start_us": start,
        "stop_us": start + int(length_s * SECOND),
        **more,
    }


def increment(tables: dict[str, list[dict[str, Any]]], now_s: float = 100.0, **more: Any) -> Increment:
    return make_increment(make_recording(tables), T, T, T + int(now_s * SECOND), **more)


def rows(made: Increment, part: str) -> list[tuple[Any, ...]]:
    return list(zip(*(values.tolist() for values in made.parts[part].values()), strict=True))


def sums(made: Increment) -> Counter[tuple[int, str, str]]:
    """Return microseconds by second, prefix and category."""
    found: Counter[tuple[int, str, str]] = Counter()
    for second, prefix, category, us, _ in rows(made, "busy"):
        found[second, made.names["prefixes"][prefix], CATEGORIES[category]] += round(us)
    return +found


def test_prefixes_come_in_the_order_in_which_they_first_ran() -> None:
    """The page takes colours in this order, and the document of the run, too."""
    names = ["late", "early", "between"]
    tasks = [execution(i, start, 1.0, prefix=names[i], key=names[i]) for i, start in enumerate((50.0, 10.0, 20.0))]
    made = increment({"tasks": tasks})
    assert made.names["prefixes"] == ["early", "between", "late"]
    assert [made.names["prefixes"][row[3]] for row in rows(made, "bars")] == made.keys == made.names["prefixes"]


def test_an_execution_is_a_bar_and_thread_time_by_second() -> None:
    made = increment({"tasks": [execution(1, 10.5, 2.0)]})
    assert rows(made, "bars") == [(10.5 * SECOND, 2.0 * SECOND, 0, 0, 0)]
    assert made.keys == ["inc-1"]
    assert made.names["lanes"] == [("tcp://a:1", 7)]
    assert sums(made) == {
        (10, "inc", "compute"): SECOND // 2,
        (11, "inc", "compute"): SECOND,
        (12, "inc", "compute"): SECOND // 2,
    }
    assert [count for *_, count in rows(made, "busy")] == [0, 0, 1]


def test_other_activities_are_bars_without_a_key() -> None:
    transfer = {
        "interval_action": ["transfer", "disk-read"],
        "interval_start_us": [T + 4 * SECOND, T + 5 * SECOND],
        "interval_stop_us": [T + 5 * SECOND, T + 6 * SECOND],
        "interval_source": ["tcp://b:1", ""],
    }
    made = increment({"tasks": [execution(1, 6, 1, **transfer)]})
    assert [CATEGORIES[category] for *_, category in rows(made, "bars")] == ["transfer", "disk", "compute"]
    assert made.keys == ["", "", "inc-1"]


@pytest.mark.parametrize("status", ["error", "retried", "killed", "cancelled"])
def test_executions_without_a_result_are_failed(status: str) -> None:
    made = increment({"tasks": [execution(1, 1, 1, status=status)]})
    assert sums(made) == {(1, "inc", "failed"): SECOND}


def test_increments_add_up_to_the_whole() -> None:
    rng = random.Random(3)
    tasks = [
        execution(
            n,
            rng.uniform(0, 80),
            rng.expovariate(1),
            prefix=rng.choice(["inc", "add", "sum"]),
            thread=rng.randint(1, 4),
        )
        for n in range(400)
    ]
    whole = increment({"tasks": tasks})
    parts = [increment({"tasks": tasks[first : first + 37]}) for first in range(0, len(tasks), 37)]
    assert sum((sums(part) for part in parts), Counter()) == sums(whole)
    assert sorted(key for part in parts for key in part.keys) == sorted(whole.keys)
    truth = Counter[str]()
    for task in tasks:
        truth[task["prefix"]] += task["stop_us"] - task["start_us"]
    found = Counter[str]()
    for (_, prefix, _), us in sums(whole).items():
        found[prefix] += us
    assert found == truth


def test_only_tasks_of_a_computation() -> None:
    tasks = [execution(1, 1, 1, computation="a"), execution(2, 2, 1, computation="b")]
    assert increment({"tasks": tasks}, computation="b").keys == ["inc-2"]


def test_rows_outside_the_window_are_left_out() -> None:
    tasks = [execution(1, 1, 1), execution(2, 700, 1), execution(3, 2_000, 1)]
    made = increment({"tasks": tasks}, now_s=900)
    assert made.keys == ["inc-2"]


def test_an_execution_that_began_before_the_window_is_cut() -> None:
    made = increment({"tasks": [execution(1, 100, 700)]}, now_s=900)
    assert rows(made, "bars")[0][:2] == (300 * SECOND, 500 * SECOND)


def test_of_too_many_executions_the_latest_have_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(increments, "MAX_BARS", 3)
    made = increment({"tasks": [execution(n, n, 0.5) for n in range(10)]})
    assert (made.keys, made.left_out) == (["inc-7", "inc-8", "inc-9"], 7)
    assert sum(count for *_, count in rows(made, "busy")) == 10


def test_names_beyond_the_limit_become_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(increments, "MAX_NAMES", 3)
    made = increment({"tasks": [execution(n, n, 1, prefix=f"p{n}") for n in range(5)]})
    assert made.names["prefixes"] == ["p0", "p1", "(other)"]
    assert sum(sums(made).values()) == 5 * SECOND


def test_each_worker_has_one_sample_per_second() -> None:
    samples = [
        {"time_us": T + int(at * SECOND), "worker": worker, "memory": memory, "status": status}
        for at, worker, memory, status in [
            (1.1, "a", 10, "running"),
            (1.6, "a", 20, "paused"),
            (1.2, "b", 5, "running"),
            (2.0, "a", 30, "running"),
            (2.5, "scheduler", 99, ""),
        ]
    ]
    made = increment({"samples": samples})
    found = [
        (second, made.names["workers"][worker], memory, paused)
        for second, worker, memory, *_, paused in rows(made, "samples")
    ]
    assert sorted(found) == [(1, "a", 20, 1), (1, "b", 5, 0), (2, "a", 30, 0)]


def test_many_samples_are_thinned_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(increments, "MAX_SAMPLES", 10)
    samples = [{"time_us": T + n * SECOND, "worker": "a", "memory": n} for n in range(50)]
    made = increment({"samples": samples})
    assert len(rows(made, "samples")) <= 11
    assert rows(made, "samples")[-1][2] == 49


def test_stacks_are_a_tree() -> None:
    profiles = [
        {"start_us": T + 3 * SECOND, "kind": "compute", "stack": stack, "count": count}
        for stack, count in [
            (["f.py\touter\t1", "f.py\tinner\t2"], 5),
            (["f.py\touter\t1"], 2),
            (["f.py\tother\t9"], 1),
        ]
    ] + [{"start_us": T, "kind": "scheduler", "stack": ["s.py\tloop\t1"], "count": 9}]
    made = increment({"profiles": profiles})
    frames = [function for _, function, *_ in made.names["frames"]]
    nodes = rows(made, "nodes")

    def path(node: int) -> list[str]:
        parent, frame = nodes[node]
        return [*(path(parent - 1) if parent else []), frames[frame]]

    found = {tuple(path(node)): count for _, node, count in rows(made, "stacks")}
    assert found == {("outer", "inner"): 5, ("outer",): 2, ("other",): 1}


def test_failures_are_grouped_without_those_of_dependents() -> None:
    failure = {"fingerprint": "f", "cause_type": "ValueError", "cause_message": "no", "prefix": "inc", "count": 1}
    exceptions = [
        {**failure, "time_us": T + SECOND, "key": "one"},
        {**failure, "time_us": T + 2 * SECOND, "key": "two"},
        {**failure, "time_us": T + 3 * SECOND, "key": "dependent", "blamed_key": "one"},
    ]
    (error,) = increment({"exceptions": exceptions}).errors
    assert (error["type"], error["count"], error["key"]) == ("ValueError", 2, "two")


def test_invalid_numbers_do_no_harm() -> None:
    tables = {
        "tasks": [
            execution(1, 1, 1, thread=-5),
            execution(2, 2, 1, start_us=-(2**62)),
            execution(3, 3, 1, stop_us=2**62),
            execution(4, 5, -2),
        ],
        "samples": [{"time_us": T, "worker": "a", "memory": -1, "spilled": 2**63 - 1}],
        "profiles": [{"start_us": T, "kind": "compute", "stack": [], "count": 2**62}],
        "workers": [{"worker": "a", "server_id": "1", "nthreads": -1, "memory_limit": 2**63 - 1}],
    }
    made = increment(tables)
    for part in made.parts.values():
        assert all(np.isfinite(values).all() for values in part.values())
    assert made.workers[0]["threads"] == 0
