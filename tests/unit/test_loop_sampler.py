"""Samples of a thread, taken as text: its stack, and no frame objects."""

from __future__ import annotations

import tempfile
import threading
from types import SimpleNamespace

import pytest

from daskscope.collector.profiles import LoopSampler, is_needed, loop_thread, read_stack


def outer(begun: threading.Event, end: threading.Event) -> None:
    inner(begun, end)


def inner(begun: threading.Event, end: threading.Event) -> None:
    begun.set()
    end.wait()


@pytest.fixture
def thread() -> threading.Thread:
    begun, end = threading.Event(), threading.Event()
    thread = threading.Thread(target=outer, args=(begun, end), daemon=True)
    thread.start()
    begun.wait()
    return thread


def names(stack: tuple[str, ...]) -> list[str]:
    return [frame.split("\t")[1] for frame in stack]


def test_the_stack_of_another_thread(thread: threading.Thread) -> None:
    assert thread.ident is not None
    with tempfile.TemporaryFile() as file:
        # The file is used again: a shorter text must not keep the end of a longer one.
        file.write(b"x" * 100_000)
        for _ in range(2):
            stack = read_stack(file.fileno(), thread.ident)
            found = names(stack)
            assert found.index("outer") + 1 == found.index("inner")
            file_name, _, line = stack[found.index("inner")].split("\t")
            assert file_name == __file__
            assert int(line) in (20, 21)
        assert names(read_stack(file.fileno(), threading.get_ident()))[-1] == "read_stack"
        assert read_stack(file.fileno(), 12345) == ()


def test_buckets_are_returned_once(thread: threading.Thread) -> None:
    assert thread.ident is not None
    sampler = LoopSampler(thread.ident)
    found: list[tuple[float, dict[str, dict[tuple[str, ...], int]]]] = []
    while not found:
        found = sampler.drain()
    sampler.stop()
    ((_, bucket),) = found
    (stack,) = bucket["stacks"]
    assert "inner" in names(stack)
    assert sampler.cpu_s > 0


def test_the_thread_of_an_event_loop() -> None:
    assert loop_thread(SimpleNamespace(asyncio_loop=SimpleNamespace(_thread_id=7))) == 7
    assert loop_thread(SimpleNamespace()) is None
    assert loop_thread(None) is None


def test_only_python_3_11_needs_it() -> None:
    assert [is_needed(version) for version in ((3, 10), (3, 11), (3, 12), (3, 13))] == [False, True, False, False]
