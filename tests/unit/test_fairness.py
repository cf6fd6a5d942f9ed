"""Accounts share the writer, the threads and the names they may add: one that sends much delays the others little."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from daskscope.server import pools
from daskscope.server.ingest import writer
from daskscope.server.ingest.limits import MAX_KNOWN, NewNames
from daskscope.server.ingest.writer import FairQueue, Overloaded

LARGE = 1024 * 1024


def request(account: int, nbytes: int = 10) -> Any:
    batch = SimpleNamespace(account=account, frame=bytes(nbytes))
    return writer._Request([batch], Future(), 0.0)  # type: ignore[list-item]


def accounts(group: list[Any]) -> list[int]:
    return [one.account for one in group]


class TestWriter:
    def test_accounts_take_turns(self) -> None:
        queue = FairQueue()
        for account in (1, 1, 1, 1, 1, 2, 2, 3):
            queue.put(request(account))

        assert accounts(queue.group()) == [1, 2, 3]
        assert accounts(queue.group()) == [1, 2]
        # One account alone need not wait for its turn.
        assert accounts(queue.group()) == [1, 1, 1]
        assert len(queue) == 0

    def test_a_large_queue_of_one_account_delays_another_by_one_request(self) -> None:
        queue = FairQueue()
        for _ in range(100):
            queue.put(request(1, LARGE))
        queue.put(request(2))

        assert accounts(queue.group()) == [1, 2]

    def test_one_account_alone_fills_a_group(self) -> None:
        queue = FairQueue()
        for _ in range(100):
            queue.put(request(1, LARGE))

        assert len(queue.group()) == writer.GROUP_NBYTES // LARGE

    def test_one_account_cannot_fill_the_queue(self) -> None:
        queue = FairQueue()
        for _ in range(writer.MAX_WAITING // 2):
            queue.put(request(1))
        with pytest.raises(Overloaded):
            queue.put(request(1))
        queue.put(request(2))

    def test_one_account_cannot_fill_the_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(writer, "MAX_WAITING_NBYTES", 40)
        queue = FairQueue()
        for _ in range(2):
            queue.put(request(1))
        with pytest.raises(Overloaded):
            queue.put(request(1))
        queue.put(request(2, 20))
        with pytest.raises(Overloaded):
            queue.put(request(3))

    def test_a_closed_queue_returns_what_waits_and_takes_nothing(self) -> None:
        queue = FairQueue()
        queue.put(request(1))
        queue.close()
        with pytest.raises(Overloaded):
            queue.put(request(1))

        assert accounts(queue.group()) == [1]
        assert queue.group() == []


class TestNewNames:
    def test_only_new_names_count(self) -> None:
        now = [0.0]
        names = NewNames({"workers": 10}, lambda: now[0])
        first = {"workers": {f"a{number}" for number in range(8)}}
        assert names.spend(1, first) == ("", 0.0)
        for _ in range(100):
            assert names.spend(1, first) == ("", 0.0)

        kind, wait = names.spend(1, {"workers": {"b1", "b2", "b3"}})

        assert kind == "workers"
        assert wait == pytest.approx(6.0)
        # Another account has its own limit, and the refused names come through later.
        assert names.spend(2, {"workers": {"b1", "b2", "b3"}}) == ("", 0.0)
        now[0] += 6.1
        assert names.spend(1, {"workers": {"b1", "b2", "b3"}}) == ("", 0.0)

    def test_a_request_with_more_than_the_limit_passes_once_a_minute(self) -> None:
        now = [0.0]
        names = NewNames({"clusters": 2}, lambda: now[0])
        assert names.spend(1, {"clusters": {"a", "b", "c", "d"}}) == ("", 0.0)
        assert names.spend(1, {"clusters": {"e"}})[0] == "clusters"
        now[0] += 120
        assert names.spend(1, {"clusters": {"e"}}) == ("", 0.0)

    def test_memory_is_bounded(self) -> None:
        names = NewNames({"workers": 10 * MAX_KNOWN})
        for start in range(0, 3 * MAX_KNOWN, MAX_KNOWN // 2):
            names.spend(1, {"workers": set(range(start, start + MAX_KNOWN // 2))})
        assert len(names._known[1]) <= 2 * MAX_KNOWN


class TestThreads:
    def test_one_account_leaves_threads_to_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(pools.SIZES, pools.HEAVY, 4)
        done = threading.Event()
        running: list[int] = []

        async def scenario() -> list[int]:
            threads = pools.Pools()
            loop, three = asyncio.get_running_loop(), asyncio.Event()

            def work(account: int) -> None:
                running.append(account)
                if len(running) == 3:
                    loop.call_soon_threadsafe(three.set)
                assert done.wait(60)

            busy = [asyncio.ensure_future(threads.run(pools.HEAVY, 1, work, 1)) for _ in range(10)]
            other = asyncio.ensure_future(threads.run(pools.HEAVY, 2, work, 2))
            await three.wait()
            seen = sorted(running)
            done.set()
            await asyncio.gather(*busy, other)
            assert not threads._shares, "accounts without requests are forgotten"
            return seen

        # The other account came last and did not wait for the ten requests before it.
        assert asyncio.run(scenario()) == [1, 1, 2]
        assert running.count(1) == 10
