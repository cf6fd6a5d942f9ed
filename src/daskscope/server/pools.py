"""Threads for requests, shared fairly between accounts."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import anyio
import anyio.to_thread

from daskscope.server.errors import too_many
from daskscope.server.processes.child import take_child_cpu_s

# CPU time of the server by account. While others are active, requests of an account that needs much more than they do wait.
#
# The server's threads share one interpreter lock. An account that keeps them busy makes every statement of the others wait for
# the lock: with four senders and two readers at full speed, acknowledgements of another account took ten times as long. So
# while other accounts are active, an account uses at most what they leave of ``limit``, or ``FACTOR`` times as much as the
# busiest of them: accounts that need about the same do not slow each other down. A request above that waits before anything is
# done for it. An account alone is never limited.

#: An account may use this many times as much as the busiest of the others.
FACTOR = 1.25
#: CPU seconds per second that every account gets.
MIN_RATE = 0.05
#: An account is active for this long after a request.
ACTIVE_S = 3.0
#: CPU time that an account may use at once.
BURST_S = 0.1
MAX_DELAY_S = 2.0
#: What a request costs besides the work in threads that is measured: the event loop and the protocol.
REQUEST_S = 0.0015
#: Time over which usage is averaged.
MEMORY_S = 2.0
#: The weight of a request in the mean cost of the requests of an account.
WEIGHT = 0.05


@dataclass
class _Usage:
    """What an account uses."""

    seen: float
    #: CPU seconds per second, averaged, at ``seen``.
    rate: float = 0.0
    #: Mean CPU seconds of a request, and those charged since the last request began.
    cost: float = REQUEST_S
    charged: float = 0.0
    #: When the next request may begin.
    next_at: float = 0.0


class CpuShares:
    """Delays requests of accounts that use too much. Thread-safe."""

    def __init__(self, limit: float, clock: Callable[[], float] = time.monotonic) -> None:
        #: CPU seconds per second for an account and those beside it; 0 for no limit.
        self.limit = limit
        self.clock = clock
        self._lock = threading.Lock()
        self._accounts: dict[int, _Usage] = {}

    def charge(self, account: int, seconds: float) -> None:
        """Note CPU time of an account."""
        with self._lock:
            usage = self._accounts.get(account)
            if usage is not None:
                usage.charged += seconds

    def begin(self, account: int) -> float:
        """Note a request, and return the seconds for which it must wait."""
        with self._lock:
            now = self.clock()
            usage = self._accounts.setdefault(account, _Usage(now))
            self._settle(usage, now)
            others = [other for other in self._accounts.values() if other is not usage and self._is_active(other, now)]
            if not others or not self.limit:
                self._accounts = {account: usage}
                usage.next_at = now
                return 0.0
            used = [_faded(other, now) for other in others]
            rate = max(MIN_RATE, FACTOR * max(used), self.limit - sum(used))
            begins = max(usage.next_at, now - BURST_S / rate)
            usage.next_at = begins + usage.cost / rate
            return min(max(0.0, begins - now), MAX_DELAY_S)

    def is_alone(self, account: int) -> bool:
        """Return whether no other account is active."""
        with self._lock:
            now = self.clock()
            return not any(number != account and self._is_active(one, now) for number, one in self._accounts.items())

    def _is_active(self, usage: _Usage, now: float) -> bool:
        return now - usage.seen < ACTIVE_S

    def _settle(self, usage: _Usage, now: float) -> None:
        """Add the CPU time since the last request to the averages."""
        spent, usage.charged = usage.charged + REQUEST_S, 0.0
        usage.rate = _faded(usage, now) + spent / MEMORY_S
        usage.cost += WEIGHT * (spent - usage.cost)
        usage.seen = now


def _faded(usage: _Usage, now: float) -> float:
    return float(usage.rate * 0.5 ** ((now - usage.seen) / MEMORY_S))


P = ParamSpec("P")
T = TypeVar("T")

#: Reading lists and single records.
READ = "read"
#: Rendering or reading whole runs: hundreds of MB each, so few at once.
HEAVY = "heavy"
#: Decoding batches, on half of the cores. A body may claim 256 MB, and threads that contend for the interpreter lock
#: slow down the writer: on two cores, one thread takes 8 % less time for the same batches than two.
PARSE = "parse"
PARSERS = max(1, min(4, (os.cpu_count() or 2) // 2))
#: Decoding batches in other processes. Each has a second request waiting, so that it is never idle on a busy server.
APART = "apart"
#: Hashing passwords: 19 MiB and 28 ms each.
PASSWORD = "password"
SIZES = {READ: 20, HEAVY: 4, PARSE: PARSERS, APART: 2 * PARSERS, PASSWORD: 2}
#: Maximum passwords waiting for a thread. More only come from guessing.
MAX_PASSWORDS = 32
#: The account of requests that name none.
NO_ACCOUNT = 0


class Pools:
    """The thread limits of one server. Create it in its event loop.

    An account uses at most half of the threads of a kind, and at least one. Its other requests wait outside the queue, so
    that the requests of other accounts do not wait behind them.
    """

    def __init__(self, busy_account_limit: float = 0.0) -> None:
        self.shares = CpuShares(busy_account_limit)
        self._limits: dict[str, anyio.CapacityLimiter] = {}
        self._shares: dict[tuple[str, int], anyio.CapacityLimiter] = {}

    async def turn(self, account: int) -> None:
        """Wait until the account may use the server again. A request without an account never waits."""
        delay_s = self.shares.begin(account) if account != NO_ACCOUNT else 0.0
        if delay_s:
            await anyio.sleep(delay_s)

    async def run(self, kind: str, account: int, function: Callable[P, T], *args: P.args, **_: P.kwargs) -> T:
        """Call a function in a thread of a kind."""
        limit = self._limit(kind)
        if kind == PASSWORD and limit.statistics().tasks_waiting >= MAX_PASSWORDS:
            raise too_many("Too many sign-ins at the moment. Try again in a few seconds.", 5)

        def measured() -> T:
            began = time.thread_time()
            take_child_cpu_s()
            try:
                return function(*args)  # type: ignore[call-arg]
            finally:
                self.shares.charge(account, time.thread_time() - began + take_child_cpu_s())

        async with self._share(kind, account):
            return await anyio.to_thread.run_sync(measured, limiter=limit)

    @asynccontextmanager
    async def hold(self, kind: str, account: int) -> AsyncIterator[None]:
        """Occupy a place of a kind that is not a thread."""
        async with self._share(kind, account), self._limit(kind):
            yield

    def _limit(self, kind: str) -> anyio.CapacityLimiter:
        limit = self._limits.get(kind)
        if limit is None:
            limit = self._limits[kind] = anyio.CapacityLimiter(SIZES[kind])
        return limit

    @asynccontextmanager
    async def _share(self, kind: str, account: int) -> AsyncIterator[None]:
        """Occupy one of the places of a kind that an account may use at once."""
        key = kind, account
        share = self._shares.get(key)
        if share is None:
            share = self._shares[key] = anyio.CapacityLimiter(max(1, SIZES[kind] // 2))
        try:
            async with share:
                yield
        finally:
            if not share.borrowed_tokens and not share.statistics().tasks_waiting:
                # Accounts come and go. A request that holds this share already is counted above.
                self._shares.pop(key, None)
