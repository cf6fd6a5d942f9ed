"""The sampler counts the current line of each thread for its task, within its limits."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from tests.helpers.waiting import until

from daskscope.collector.rows import Columns
from daskscope.collector.worker.sampler import LATE_SLOWDOWN, Pace, Sampler, must_sample_from_loop, sampling_interval
from daskscope.collector.worker.stacks import (
    StackTable,
    awaited_kinds,
    is_backward_jump,
    line_at,
    may_be_in_coroutine,
    rests,
    working_threads,
)
from daskscope.model.tables import OTHER_THREAD, PROFILES

IDENT = 1


class Clock:
    """A clock that advances on request."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Bench:
    """A sampler over frames and tasks that the test provides."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.tasks: dict[int, tuple[str, str, Hashable]] = {IDENT: ("inc", "span-1", "inc-1")}
        self.frames: dict[int, FrameType] = {}
        settings: dict[str, Any] = {"interval": 0.02, "cycle": 1.0, "clock": self.clock, "cpu_clock": lambda: 0.0}
        self.sampler = Sampler(lambda: self.tasks, frames=lambda: self.frames, **{**settings, **options})

    def tick(self, frame: FrameType, times: int = 1, step: float = 0.02) -> None:
        self.frames = {IDENT: frame}
        for _ in range(times):
            self.sampler.tick()
            self.clock.now += step

    def drain(self, *, whole: bool = True) -> Columns:
        return self.sampler.drain("tcp://w", self.clock.now, whole=whole)


def here() -> FrameType:
    return sys._getframe(1)


def leaf(stack: tuple[str, ...]) -> tuple[str, int]:
    _, function, line = stack[-1].split("\t")
    return function, int(line)


def frame_of(source: str, filename: str = "user.py", **names: Any) -> FrameType:
    """Return the frame of a function ``f`` in the source, kept after it returned."""
    space: dict[str, Any] = {"sys": sys, **names}
    exec(compile(source, filename, "exec"), space)
    frame: FrameType = space["f"]()
    return frame


def test_the_innermost_frame_has_the_current_line() -> None:
    bench = Bench()
    bench.tick(frame_of("def f():\n    x = 1\n    return sys._getframe()\n"))
    (stack,) = bench.drain()["stack"]
    assert leaf(stack) == ("f", 3)


def test_two_lines_of_one_function_are_two_stacks() -> None:
    bench = Bench()

    def two() -> None:
        bench.tick(here())
        bench.tick(here())

    two()
    lines = [leaf(stack)[1] for stack in bench.drain()["stack"]]
    assert lines[1] == lines[0] + 1


def test_two_places_in_one_line_are_one_stack() -> None:
    bench = Bench()

    def one() -> None:
        bench.tick(here()), bench.tick(here())  # type: ignore[func-returns-value]

    one()
    assert bench.drain()["count"] == [2]


def test_callers_come_before_the_called() -> None:
    bench = Bench()

    def inner() -> None:
        bench.tick(here())

    def outer() -> None:
        inner()

    outer()
    (stack,) = bench.drain()["stack"]
    assert [frame.split("\t")[1] for frame in stack][-2:] == ["outer", "inner"]


def test_counts_are_kept_apart_by_prefix_and_span() -> None:
    bench = Bench()
    frame = here()
    for task in [("inc", "a", 1), ("inc", "b", 2), ("dec", "a", 3)]:
        bench.tasks = {IDENT: task}
        bench.tick(frame, 2)
    columns = bench.drain()
    assert sorted(zip(columns["prefix"], columns["span"], columns["count"], strict=True)) == [
        ("dec", "a", 2),
        ("inc", "a", 2),
        ("inc", "b", 2),
    ]


def test_threads_without_a_task_are_not_sampled() -> None:
    bench = Bench()
    bench.tasks = {}
    bench.tick(here())
    assert bench.drain()["count"] == []


def test_a_thread_that_is_gone_is_left_out() -> None:
    bench = Bench()
    bench.tasks = {99: ("inc", "", "inc-1")}
    bench.tick(here())
    assert bench.drain()["count"] == []


def test_frames_that_call_the_task_are_cut_off() -> None:
    held = Held()
    space: dict[str, Any] = {"sys": sys, "held": held}
    exec(compile("def f():\n    held.keep(sys._getframe())\n", "user.py", "exec"), space)
    called = space["f"]
    for file in ("x/distributed/worker.py", "x/distributed/_concurrent_futures_thread.py", "lib/threading.py"):
        layer: dict[str, Any] = {"g": called}
        exec(compile("def f():\n    return g()\n", file, "exec"), layer)
        called = layer["f"]
    thread = threading.Thread(target=called)
    thread.start()
    thread.join()
    table = StackTable()
    assert table.stack(table.add(held.frame) or 0) == ("user.py\tf\t2",)


class Held:
    frame: FrameType | None = None

    def keep(self, frame: FrameType) -> None:
        self.frame = frame


def test_a_call_into_the_worker_by_the_user_is_kept() -> None:
    table = StackTable()
    inner = frame_of("def f():\n    return g()\n", "user.py", g=lambda: worker_frame())
    files = [text.split("\t")[0] for text in table.stack(table.add(inner) or 0)]
    assert files[-1] == "x/distributed/worker.py"


def worker_frame() -> FrameType:
    return frame_of("def f():\n    return sys._getframe()\n", "x/distributed/worker.py")


def test_slices_are_as_long_as_dasks_cycle() -> None:
    bench = Bench()
    bench.tick(here(), times=150)
    columns = bench.drain(whole=False)
    assert columns["start_us"] == [1000_000_000, 1001_000_000]
    assert columns["stop_us"] == [1001_000_000, 1002_000_000]
    assert columns["ticks_expected"] == [50, 50]


def test_the_running_slice_waits_for_its_end() -> None:
    bench = Bench()
    bench.tick(here(), times=10)
    assert bench.drain(whole=False)["count"] == []
    bench.tick(here(), times=50)
    assert sum(bench.drain(whole=False)["count"]) == pytest.approx(50, abs=1)


def test_a_whole_drain_includes_the_running_slice() -> None:
    bench = Bench()
    bench.tick(here(), times=10)
    columns = bench.drain(whole=True)
    assert columns["count"] == [10]
    assert columns["stop_us"] == [round(bench.clock.now * 1e6)]
    assert columns["ticks_expected"] == [10]


def test_nothing_is_drained_twice() -> None:
    bench = Bench()
    bench.tick(here(), times=120)
    frame = here()
    first = sum(bench.drain(whole=False)["count"])
    bench.tick(frame, times=10)
    assert first + sum(bench.drain(whole=True)["count"]) == 130


def test_ticks_count_the_samples() -> None:
    bench = Bench()
    bench.tick(here(), times=5, step=0.2)
    columns = bench.drain(whole=False)
    assert (columns["ticks"], columns["ticks_expected"]) == ([5], [50])


def test_a_sample_without_tasks_is_a_tick() -> None:
    bench = Bench()
    frame = here()
    bench.tick(frame)
    bench.tasks = {}
    bench.tick(frame)
    assert bench.drain()["ticks"] == [2]


def test_a_clock_that_steps_back_does_no_harm() -> None:
    bench = Bench()
    bench.tick(here(), times=3)
    bench.clock.now -= 30
    bench.tick(here(), times=3)
    assert sum(bench.drain()["count"]) == 6


def test_more_stacks_than_allowed_are_dropped_and_counted() -> None:
    bench = Bench(max_nodes=50)
    for number in range(100):
        bench.tick(frame_of(f"def f{number}(): pass\ndef f():\n    return sys._getframe()\n"))
    assert bench.sampler.dropped > 0
    assert bench.sampler.dropped + sum(bench.drain()["count"]) == 100


def test_more_rows_than_allowed_are_dropped_and_counted() -> None:
    bench = Bench(max_rows=3)
    frame = here()
    for number in range(10):
        bench.tasks = {IDENT: (f"p{number}", "", number)}
        bench.tick(frame)
    assert bench.sampler.dropped == 7
    assert len(bench.drain()["count"]) == 3


def test_user_functions_are_released() -> None:
    bench = Bench()
    frame: FrameType | None = frame_of("def f():\n    return sys._getframe()\n")
    assert frame is not None
    code = weakref.ref(frame.f_code)
    bench.tick(frame)
    bench.frames = {}
    frame = None
    bench.drain(whole=False)
    bench.clock.now += 61
    bench.drain(whole=False)
    gc.collect()
    assert code() is None


def test_every_column_of_the_table_is_there() -> None:
    assert tuple(Bench().drain()) == PROFILES.names


def test_an_error_ends_the_sampler_and_nothing_else() -> None:
    def broken() -> dict[int, tuple[str, str, Hashable]]:
        raise RuntimeError("no")

    sampler = Sampler(broken, interval=0.001)
    sampler.start()
    assert sampler._thread is not None
    sampler._thread.join(10)
    assert sampler.error == "RuntimeError: no"


def test_expensive_samples_become_rarer() -> None:
    pace = Pace(0.02)
    for _ in range(100):
        pace.note_cost(0.001)
    assert pace.delay == pytest.approx(0.1, rel=0.01)


def test_cheap_samples_keep_their_rate() -> None:
    pace = Pace(0.02)
    for _ in range(100):
        pace.note_cost(0.0001)
        pace.note_delay(0.001)
    assert pace.delay == 0.02


def test_late_samples_become_rarer_and_recover() -> None:
    pace = Pace(0.02)
    for _ in range(50):
        pace.note_delay(0.1)
    assert pace.delay == pytest.approx(0.02 * LATE_SLOWDOWN)
    for _ in range(50):
        pace.note_delay(0.0)
    assert pace.delay == 0.02


def test_dasks_setting_can_only_make_sampling_rarer() -> None:
    assert sampling_interval(0.5, 0.02) == 0.5
    assert sampling_interval(0.010, 0.02) == 0.02
    assert sampling_interval(0.001, 0.0) >= 0.01


@contextmanager
def spinning(task: Callable[[threading.Event], None]) -> Iterator[int]:
    """Run a thread that executes ``task`` until the block ends; yield its ident."""
    stop = threading.Event()
    thread = threading.Thread(target=task, args=(stop,))
    thread.start()
    assert thread.ident is not None
    try:
        yield thread.ident
    finally:
        stop.set()
        thread.join()


def spin(stop: threading.Event) -> None:
    while not stop.is_set():
        sum(range(100))


def test_a_running_thread_is_sampled_by_the_samplers_own_thread() -> None:
    with spinning(spin) as ident:
        sampler = Sampler(lambda: {ident: ("spin", "", "spin-1")}, interval=0.002, cycle=0.01)
        sampler.start()
        while sampler.samples < 5:
            sampler._stop.wait(0.002)
        sampler.stop()
        columns = sampler.drain("w", sampler._clock(), whole=True)
    assert sum(columns["count"]) >= 5
    assert any(frame.split("\t")[1] == "spin" for frame in columns["stack"][0])


@pytest.mark.parametrize(
    ("version", "expected"), [((3, 10), False), ((3, 11), True), ((3, 12), True), ((3, 13), False), ((3, 14), False)]
)
def test_interpreters_that_crash_are_sampled_from_their_own_event_loop(
    version: tuple[int, int], expected: bool
) -> None:
    assert must_sample_from_loop(version) is expected


def test_a_sampler_on_an_event_loop_needs_no_thread() -> None:
    async def run() -> tuple[int, int]:
        looked = asyncio.Event()

        def active() -> dict[int, tuple[str, str, Hashable]]:
            looked.set()
            return {}

        sampler = Sampler(active, interval=0.001, loop=asyncio.get_running_loop())
        sampler.start()
        await asyncio.wait_for(looked.wait(), 10)
        sampler.stop()
        ticks = sampler.ticks
        sampler._tick_from_loop(0.0)
        return ticks, sampler.ticks

    ticks, ticks_after = asyncio.run(run())
    assert 1 <= ticks == ticks_after


def loop(rounds: int) -> int:
    total = 0
    for number in range(rounds):
        total += number
    return total


def test_positions_at_the_end_of_a_loop_are_known() -> None:
    code = loop.__code__
    jumps = [at for at in range(0, len(code.co_code), 2) if is_backward_jump(code, at)]
    assert [line_at(code, at) - code.co_firstlineno for at in jumps] == [3]
    assert not is_backward_jump(code, len(code.co_code))
    assert not is_backward_jump(code, -1)


def test_the_current_stacks_are_returned_without_counting_a_sample() -> None:
    bench = Bench()
    bench.tasks[2] = ("dec", "", "dec-1")
    bench.frames = {IDENT: frame_of("def f():\n    x = 1\n    return sys._getframe()\n")}
    # The second task has no frame: its thread has just ended.
    ((thread, prefix, key, stack),) = bench.sampler.stacks_now()
    assert (thread, prefix, key, leaf(stack)) == (IDENT, "inc", "inc-1", ("f", 3))
    assert not any(bench.drain().values())
    assert (bench.sampler.ticks, bench.sampler.samples) == (0, 0)
    bench.tasks.clear()
    assert bench.sampler.stacks_now() == []


def test_the_current_stacks_keep_no_frame_alive() -> None:
    bench = Bench()
    frame = frame_of("class Large: pass\ndef f():\n    large = Large()\n    return sys._getframe()\n")
    large = weakref.ref(frame.f_locals["large"])
    bench.frames = {IDENT: frame}
    found = bench.sampler.stacks_now()
    bench.frames = {}
    del frame
    gc.collect()
    assert len(found) == 1
    assert large() is None


class Large:
    """A result that must not stay in memory."""


@pytest.mark.parametrize("look", [Sampler.tick, Sampler.stacks_now], ids=["sample", "request"])
def test_locals_of_running_tasks_are_freed_without_the_garbage_collector(look: Callable[[Sampler], object]) -> None:
    made, end = list[weakref.ref[Large]](), threading.Event()

    def task() -> None:
        large = Large()
        made.append(weakref.ref(large))
        end.wait()

    thread = threading.Thread(target=task)
    thread.start()
    until(lambda: made)
    sampler = Sampler(lambda: {thread.ident or 0: ("task", "", "task-1")}, interval=0.02, cycle=1.0)
    gc.disable()
    try:
        look(sampler)
        assert made[0]() is not None
        end.set()
        thread.join()
        assert made[0]() is None
    finally:
        gc.enable()


class Waiting:
    """A thread that waits for a future of a pool. The only thread of the pool runs a function."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.future = self.pool.submit(work)
        self.thread = threading.Thread(target=self.future.result, name="Dask-Default-Threads-1", daemon=True)

    def __enter__(self) -> int:
        self.thread.start()
        assert self.thread.ident is not None
        until(lambda: awaited_kinds(sys._current_frames()[self.thread.ident or 0]) == ("futures", "loop"))
        return self.thread.ident

    def __exit__(self, *_: object) -> None:
        self.thread.join()
        self.pool.shutdown()


def test_a_task_that_waits_for_a_pool_is_followed_to_its_thread() -> None:
    done, began = threading.Event(), threading.Event()

    def fetch_part() -> None:
        began.set()
        done.wait()

    with Waiting(fetch_part) as ident:
        began.wait()
        tasks: dict[int, tuple[str, str, Hashable]] = {ident: ("load", "", "load-1")}
        sampler = Sampler(lambda: tasks)
        sampler.tick()
        (stack,) = sampler.drain("tcp://w", time.time(), whole=True)["stack"]
        done.set()
        sampler.stop()
    marker = next(number for number, frame in enumerate(stack) if frame.startswith(OTHER_THREAD))
    assert any(frame.split("\t")[1] == "result" for frame in stack[:marker])
    # The frames of the pool itself, which call its work, are left out.
    assert [frame.split("\t")[1] for frame in stack[marker : marker + 2]] == ["waiting", "fetch_part"]


def test_an_event_loop_without_connections_rests() -> None:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="storage", daemon=True)
    thread.start()
    assert thread.ident is not None
    until(lambda: rests(sys._current_frames()[thread.ident or 0]))
    assert working_threads(sys._current_frames(), ())["loop"] == [thread.ident]
    near, far = socket.socketpair()
    loop.call_soon_threadsafe(loop.add_reader, near.fileno(), lambda: None)
    until(lambda: not rests(sys._current_frames()[thread.ident or 0]) and len(sys._current_frames()) > 1)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    near.close()
    far.close()


def test_frames_of_coroutines_are_not_read_where_that_crashes() -> None:
    loop, began, done = asyncio.new_event_loop(), threading.Event(), threading.Event()
    thread = threading.Thread(target=loop.run_forever, name="storage", daemon=True)
    thread.start()
    until(lambda: rests(sys._current_frames()[thread.ident or 0]))
    assert not may_be_in_coroutine(sys._current_frames()[thread.ident or 0], (3, 11))

    async def decode() -> None:
        began.set()
        done.wait()

    future = asyncio.run_coroutine_threadsafe(decode(), loop)
    task = threading.Thread(target=future.result, name="Dask-Default-Threads-1", daemon=True)
    task.start()
    began.wait()
    until(lambda: awaited_kinds(sys._current_frames()[task.ident or 0]) == ("futures", "loop"))
    frame = sys._current_frames()[thread.ident or 0]
    versions = [may_be_in_coroutine(frame, version) for version in ((3, 10), (3, 11), (3, 12), (3, 13))]
    assert versions == [False, True, True, False]
    tasks: dict[int, tuple[str, str, Hashable]] = {task.ident or 0: ("load", "", "load-1")}
    sampler = Sampler(lambda: tasks)
    sampler.tick()
    (stack,) = sampler.drain("tcp://w", time.time(), whole=True)["stack"]
    done.set()
    sampler.stop()
    task.join()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    # The coroutine waits for a lock, or only that there is a thread is known.
    functions = [text.split("\t")[1] for text in stack]
    assert functions[-1] == ("waiting" if must_sample_from_loop(sys.version_info[:2]) else "wait")


def test_idle_threads_of_a_pool_and_of_dask_work_for_nobody() -> None:
    with ThreadPoolExecutor(1) as idle, ThreadPoolExecutor(1, thread_name_prefix="Dask-Offload") as own:
        done = threading.Event()
        idle.submit(int).result()
        own.submit(done.wait)
        until(lambda: working_threads(sys._current_frames(), ()).get("futures", []) == [])
        done.set()
