"""A large value is read once however many threads need it, and shared while one of them uses it."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from daskscope.server.caches import OneAtATime, Shared
from daskscope.server.processes.child import MemoryBudget


@dataclass(frozen=True)
class Value:
    """A value that claims a size."""

    nbytes: int


def test_many_threads_read_a_value_once() -> None:
    shared: Shared[Value] = Shared(100)
    barrier, reads = threading.Barrier(8), list[int]()

    def read() -> Value:
        reads.append(1)
        return Value(10)

    def reader(_: int) -> Value:
        barrier.wait(30)
        return shared.load("path", read)

    with ThreadPoolExecutor(8) as threads:
        values = list(threads.map(reader, range(8)))

    assert len(reads) == 1
    assert len({id(value) for value in values}) == 1


def test_a_value_above_the_limit_is_shared_while_it_is_used() -> None:
    shared: Shared[Value] = Shared(100)
    large = shared.load("large", lambda: Value(1_000))
    assert shared.load("large", lambda: Value(1)) is large

    del large
    gc.collect()
    assert shared.get("large") is None


def test_the_least_recently_used_values_are_dropped() -> None:
    shared: Shared[Value] = Shared(100)
    for name in ("a", "b"):
        shared.put(name, Value(40))
    shared.get("a")
    shared.put("c", Value(40))
    gc.collect()

    assert [shared.get(name) is not None for name in ("a", "b", "c")] == [True, False, True]


def test_a_failed_read_is_repeated() -> None:
    shared: Shared[Value] = Shared(100)
    try:
        shared.load("path", lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    except ZeroDivisionError:
        pass
    assert shared.load("path", lambda: Value(7)).nbytes == 7


def test_locks_by_name_are_forgotten() -> None:
    once = OneAtATime()
    inside, seen = threading.Event(), list[str]()

    def second() -> None:
        with once("same"):
            seen.append("second")

    other = threading.Thread(target=second)
    with once("same"), once("another"):
        other.start()
        assert not inside.wait(0.01)
        seen.append("first")
    other.join(30)

    assert seen == ["first", "second"]
    assert once._locks == {}


def test_work_waits_for_memory() -> None:
    budget = MemoryBudget(100)
    order: list[str] = []
    started = threading.Event()

    def large() -> None:
        started.set()
        # More than there is: it runs alone.
        with budget.reserve(1_000, 1):
            order.append("large")

    thread = threading.Thread(target=large)
    with budget.reserve(60, 1), budget.reserve(40, 2):
        thread.start()
        assert started.wait(30)
        order.append("small")
    thread.join(30)

    assert order == ["small", "large"]
    with budget.reserve(100, 1):
        pass


def test_an_account_leaves_half_of_the_memory_to_others() -> None:
    budget, began, order = MemoryBudget(100), threading.Event(), list[int]()

    def reserve_more() -> None:
        began.set()
        with budget.reserve(40, 1):
            order.append(1)

    with budget.reserve(40, 1):
        more = threading.Thread(target=reserve_more)
        more.start()
        began.wait()
        with budget.reserve(40, 2):
            order.append(2)
    more.join()
    assert order == [2, 1]
