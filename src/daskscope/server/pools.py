"""Threads for work that takes long, so that it cannot keep everything else waiting.

Handlers run in the web framework's pool of forty threads. Forty reports being rendered, or forty passwords being guessed, would
take them all: each kind of such work has a few threads of its own, and what does not get one waits without a thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import anyio
import anyio.to_thread

from daskscope.server.failure import too_many

P = ParamSpec("P")
T = TypeVar("T")

#: What renders or reads a whole run: hundreds of MB each, so few at once.
HEAVY = "heavy"
#: What decodes batches, on half of the cores: a body may claim 256 MB, and threads that wait for each other's interpreter lock
#: cost the writer's: on two cores, one thread takes 8 % less time for the same batches than two.
PARSE = "parse"
#: What hashes passwords: 19 MiB and 28 ms each.
PASSWORD = "password"
SIZES = {HEAVY: 4, PARSE: max(1, min(4, (os.cpu_count() or 2) // 2)), PASSWORD: 2}
#: Passwords that may wait for a thread; there are more only when somebody guesses.
MOST_PASSWORDS = 32


class Pools:
    """The limits of one server; made where its event loop runs."""

    def __init__(self) -> None:
        self._limits: dict[str, anyio.CapacityLimiter] = {}

    async def run(self, kind: str, function: Callable[P, T], *args: P.args, **_: P.kwargs) -> T:
        limit = self._limits.get(kind)
        if limit is None:
            limit = self._limits[kind] = anyio.CapacityLimiter(SIZES[kind])
        if kind == PASSWORD and limit.statistics().tasks_waiting >= MOST_PASSWORDS:
            raise too_many("Too many people log in at the moment. Try again in a few seconds.", 5)
        return await anyio.to_thread.run_sync(function, *args, limiter=limit)
