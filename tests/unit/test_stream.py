"""The task stream of a report has every execution with its thread and time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskscope.model.recording import Recording
from daskscope.report import stream as module
from daskscope.report.blocks import Blocks, decode
from daskscope.report.stream import edges, sample, stream
from daskscope.testing import make_recording

T = 1_700_000_000_000_000
WORKERS = ["tcp://a:1", "tcp://b:1"]
PREFIXES = ["inc", "sum"]


def task(number: int, **more: Any) -> dict[str, Any]:
    start = T + 1_000 * number
    defaults = {
        "id": number,
        "key": f"inc-{number}",
        "prefix": "inc",
        "worker": WORKERS[0],
        "thread": 1,
        "status": "ok",
    }
    return {**defaults, "start_us": start, "stop_us": start + 500, **more}


def bars(recording: Recording, stop_us: int = T + 10_000_000) -> list[tuple[str, int, int, int, str, str]]:
    """Return every bar as a browser decodes it: worker, thread, start, stop, action, key."""
    blocks = Blocks()
    found = stream(recording, T, stop_us, PREFIXES, WORKERS, blocks).stream
    column = {name: decode(block, blocks.data[block["block"]]) for name, block in found["columns"].items()}
    result, number, others, tick = [], 0, 0, found["tick_us"]
    for lane in found["lanes"]:
        at = 0
        for bar in range(lane["first"], lane["first"] + lane["count"]):
            at += _signed(int(column["gap"][bar]))
            start, lasts = at, int(column["duration"][bar])
            at += (2 * lasts + tick) // (2 * tick)
            action = found["actions"][int(column["action"][bar])]
            owner = number
            if action == "compute":
                number += 1
            else:
                owner += _signed(int(column["owner"][others]))
                others += 1
            where = WORKERS[lane["worker"]], lane["thread"]
            result.append((*where, T + start * tick, T + start * tick + lasts, action, key(found, column, owner)))
    assert number == found["tasks"] and len(result) == found["bars"]
    return result


def key(found: Any, column: dict[str, Any], task: int) -> str:
    """Return the key of a task as a browser decodes it."""
    if not found["templates"]:
        return str(column["key"][task])
    text: str = found["templates"][int(column.get("template", column["prefix"])[task])]
    for i in range(text.count("\0")):
        text = text.replace("\0", str(int(column[f"number{i}"][task])), 1)
    return text


def _signed(code: int) -> int:
    return (code >> 1) ^ -(code & 1)


def test_bars_have_the_thread_and_time_of_their_executions() -> None:
    recording = make_recording(
        {
            "tasks": [
                task(0, worker=WORKERS[1], thread=7),
                task(
                    1,
                    interval_action=["transfer", "disk-read"],
                    interval_start_us=[T + 100, T + 300],
                    interval_stop_us=[T + 200, T + 900],
                    interval_source=["", ""],
                ),
                task(2, prefix="sum", status="error"),
            ]
        }
    )
    assert bars(recording, T + 4_000_000) == [
        (WORKERS[0], 1, T + 100, T + 200, "transfer", "inc-1"),
        (WORKERS[0], 1, T + 300, T + 900, "disk-read", "inc-1"),
        (WORKERS[0], 1, T + 1_000, T + 1_500, "compute", "inc-1"),
        (WORKERS[0], 1, T + 2_000, T + 2_500, "compute", "inc-2"),
        (WORKERS[1], 7, T, T + 500, "compute", "inc-0"),
    ]


def test_executions_of_a_killed_worker_are_on_its_threads() -> None:
    """Their thread is not known; a lane of their own would be a thread that the worker does not have."""
    rows = [
        task(0, thread=7, start_us=T, stop_us=T + 500),
        task(1, thread=8, start_us=T, stop_us=T + 900),
        task(2, thread=0, start_us=T + 600, stop_us=T + 2_000, status="killed"),
        task(3, thread=0, start_us=T + 1_000, stop_us=T + 2_000, status="killed"),
        task(4, worker=WORKERS[1], thread=0, start_us=T + 1_000, stop_us=T + 2_000, status="killed"),
        task(5, worker=WORKERS[1], thread=0, start_us=T + 1_500, stop_us=T + 3_000, status="killed"),
        task(6, worker=WORKERS[1], thread=0, start_us=T + 2_500, stop_us=T + 3_000, status="killed"),
    ]
    workers = [{"worker": address, "nthreads": 2} for address in WORKERS]
    recording = make_recording({"tasks": rows, "workers": workers})
    found = {key: (worker, thread) for worker, thread, _, _, _, key in bars(recording)}
    # Whatever a hostile recorder calls the number of threads.
    assert bars(make_recording({"tasks": rows, "workers": [{**workers[0], "nthreads": 2**62}]}))
    assert (found["inc-2"], found["inc-3"]) == ((WORKERS[0], 7), (WORKERS[0], 8))
    assert found["inc-4"] == found["inc-6"] != found["inc-5"], "two lanes, as it has two threads"


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3), st.integers(0, 10**7), st.integers(0, 10**6)), min_size=1)
)
def test_every_execution_round_trips(rows: list[tuple[int, int, int, int]]) -> None:
    tasks = [
        task(i, worker=WORKERS[w], thread=thread, start_us=T + start, stop_us=min(T + start + length, T + 10**7))
        for i, (w, thread, start, length) in enumerate(rows)
    ]
    expected = [(t["worker"], t["thread"], t["start_us"], t["stop_us"], "compute", t["key"]) for t in tasks]
    # By key: within one tick, bars may begin in another order than the executions.
    number = {t["key"]: i for i, t in enumerate(tasks)}
    found = sorted(bars(make_recording({"tasks": tasks})), key=lambda row: number[row[5]])
    assert [(*row[:2], row[5]) for row in found] == [(*row[:2], row[5]) for row in expected]
    for (_, _, start, stop, _, _), (_, _, real_start, real_stop, _, _) in zip(found, expected, strict=True):
        # A tick is 3 µs; durations have three digits.
        assert 0 <= real_start - start < 3
        assert abs((stop - start) - (real_stop - real_start)) <= 0.002 * (real_stop - real_start)


def test_a_long_run_has_coarser_ticks() -> None:
    hours = T + 6 * 3_600_000_000
    recording = make_recording({"tasks": [task(0, start_us=hours - 5_000_000, stop_us=hours - 1_000_000)]})
    ((_, _, start, stop, _, _),) = bars(recording, hours)
    assert abs(start - (hours - 5_000_000)) < 6_000 and abs(stop - start - 4_000_000) < 8_000


def test_times_outside_the_report_are_clipped() -> None:
    recording = make_recording({"tasks": [task(0, start_us=T - 5_000, stop_us=T + 20), task(1, start_us=5, stop_us=3)]})
    assert {(start, stop) for _, _, start, stop, _, _ in bars(recording)} == {(T, T + 20), (T, T)}


def test_an_empty_stream() -> None:
    assert bars(make_recording({})) == []


def test_a_key_with_line_breaks_stays_on_its_line() -> None:
    recording = make_recording({"tasks": [task(0, key="a\nb"), task(1)]})
    assert [key for *_, key in bars(recording)] == ['"a\\nb"', "inc-1"]


def test_edges_refer_to_tasks_by_number() -> None:
    recording = make_recording(
        {
            "tasks": [task(5, start_us=T + 9_000, stop_us=T + 9_500), task(6), task(7)],
            "edges": [{"task": 5, "dependency": 6}, {"task": 5, "dependency": 7}, {"task": 7, "dependency": -1}],
        }
    )
    blocks = Blocks()
    placed = stream(recording, T, T + 10**7, PREFIXES, WORKERS, blocks)
    found = edges(recording, placed.numbers, blocks)
    assert (found["rows"], found["of"]) == (2, 3)
    tasks = np.cumsum(np.asarray(decode(found["tasks"], blocks.data["edges.tasks"]), dtype=np.int64))
    back = [_signed(int(code)) for code in decode(found["dependencies"], blocks.data["edges.dependencies"])]
    assert sorted(zip(tasks.tolist(), (tasks - np.array(back)).tolist(), strict=True)) == [(2, 0), (2, 1)]


def test_a_sample_keeps_failures_and_the_longest_executions() -> None:
    rows = [task(i, stop_us=T + 1_000 * i + i) for i in range(100)]
    rows[3]["status"] = "error"
    table = make_recording({"tasks": rows})["tasks"]
    kept = sample(table, 20).tolist()
    assert len(kept) == 20 and 3 in kept and set(range(91, 100)) <= set(kept)
    assert min(kept) < 10 and kept == sorted(set(kept))


def test_a_stream_counts_the_tasks_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TASKS", 4)
    recording = make_recording({"tasks": [task(i) for i in range(9)]})
    found = stream(recording, T, T + 10**7, PREFIXES, WORKERS, Blocks()).stream
    assert (found["tasks"], found["of"]) == (4, 9)


def test_intervals_whose_columns_disagree_are_left_out() -> None:
    rows = [
        task(0, interval_action=["transfer", "disk-read"], interval_start_us=[T], interval_stop_us=[T, T + 1]),
        task(1),
    ]
    assert {bar[4] for bar in bars(make_recording({"tasks": rows}))} == {"compute"}


def test_executions_whose_result_was_lost_are_marked() -> None:
    """The worker left with its result, and the task ran again: both pictures of the time call the first run lost."""
    rows = [task(0, key="same"), task(1, key="same", worker=WORKERS[1]), task(2)]
    recording = make_recording({"tasks": rows, "workers": [{"worker": address, "nthreads": 1} for address in WORKERS]})
    blocks = Blocks()
    placed = stream(recording, T, T + 10**7, PREFIXES, WORKERS, blocks)
    lost = decode(placed.stream["columns"]["lost"], blocks.data["stream.lost"])
    assert [bool(lost[placed.numbers[row]]) for row in range(3)] == [True, False, False]
