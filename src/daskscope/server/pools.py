"""Threads for requests, shared fairly between accounts."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ParamSpec, TypeVar

import anyio
import anyio.to_thread

from daskscope.server.child_processes import take_child_cpu_s
from daskscope.server.cpu_shares import CpuShares
from daskscope.server.errors import too_many

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
