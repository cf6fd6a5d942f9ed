"""Check and roll up the frames of requests: in a thread, or in other processes while that takes much of a core.

The server's threads share one interpreter lock, so that checking and adding up batches, half of the work for a post, would delay
everything else. A small server does not need the processes: each takes 40 MB.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence

import msgspec
from starlette.concurrency import run_in_threadpool

from daskscope.analysis.running.rollup import RollUp
from daskscope.server.pools import APART, PARSE, PARSERS, Pools
from daskscope.server.processes.child import ENVIRONMENT
from daskscope.server.processes.parse import LENGTH_NBYTES, Reply, roll_up_frames
from daskscope.wire.decode import Frame

logger = logging.getLogger("daskscope.server")

MODULE = "daskscope.server.processes.parse"
#: The only variables of the environment that a process gets. Others may be credentials.
INHERITED = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR")
#: Processes are started when threads used this share of a core, averaged over ``MEMORY_S``.
BUSY_RATE = 0.15
MEMORY_S = 10.0
#: Seconds until processes that ended are replaced.
RESTART_S = 30.0
#: A process that takes longer for a request is ended. The largest body takes 5 s, and two may wait for one process.
REPLY_S = 15.0

_REPLY = msgspec.msgpack.Decoder(Reply)


class ProcessEnded(Exception):
    """A process ended before it replied."""


class ParseProcess:
    """A running process, and the requests it has not answered yet."""

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.process = process
        self.is_alive = True
        self._reader = reader
        self._writer = writer
        self._waiting: deque[asyncio.Future[Reply]] = deque()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls) -> ParseProcess:
        ours, theirs = socket.socketpair()
        # Without threads of OpenBLAS: they reserve 40 MB per core, which count towards the limit.
        environment = {name: os.environ[name] for name in INHERITED if name in os.environ} | ENVIRONMENT

        def launch() -> subprocess.Popen[bytes]:
            with theirs:
                return subprocess.Popen([sys.executable, "-m", MODULE], stdin=theirs.fileno(), env=environment)

        try:
            process = await run_in_threadpool(launch)
        except BaseException:
            ours.close()
            raise
        return cls(process, *await asyncio.open_connection(sock=ours))

    @property
    def waiting(self) -> int:
        """The number of requests that the process has not answered yet."""
        return len(self._waiting)

    async def roll_up(self, frames: Sequence[Frame]) -> Reply:
        """Return the reply for the given frames. Raise ``ProcessEnded`` if the process ends before it replies."""
        if not self.is_alive:
            raise ProcessEnded
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        parts = [frame.data for frame in frames]
        length = sum(len(part) for part in parts).to_bytes(LENGTH_NBYTES, "little")
        self._writer.write(b"".join((length, *parts)))
        try:
            return await asyncio.wait_for(answer, REPLY_S)
        except asyncio.TimeoutError:
            self.end()
            raise ProcessEnded from None

    async def _read(self) -> None:
        """Pass replies on until the process ends. They have the order of the requests."""
        with contextlib.suppress(OSError, EOFError, msgspec.DecodeError):
            while True:
                length = int.from_bytes(await self._reader.readexactly(LENGTH_NBYTES), "little")
                reply = _REPLY.decode(await self._reader.readexactly(length))
                answer = self._waiting.popleft()
                if not answer.done():
                    answer.set_result(reply)
        self.end()
        self._writer.close()
        for answer in self._waiting:
            if not answer.done():
                answer.set_exception(ProcessEnded())
        await run_in_threadpool(self.process.wait)

    def end(self) -> None:
        """End the process; from any thread."""
        self.is_alive = False
        self.process.kill()


class Parsing:
    """Rolls up the frames of one server's requests. Use it in the server's event loop."""

    def __init__(self, pools: Pools, clock: Callable[[], float] = time.monotonic) -> None:
        self.pools = pools
        self.clock = clock
        self.processes: list[ParseProcess] = []
        #: CPU seconds of threads per second, averaged, at ``_at``.
        self._rate = 0.0
        self._at = clock()
        self._started = float("-inf")
        self._starting: asyncio.Task[None] | None = None
        self._is_closed = False

    async def roll_up(self, account: int, frames: Sequence[Frame]) -> list[RollUp]:
        """Return the roll-ups of the given frames of an account. Raise an error if one of them is invalid."""
        if self._alive():
            async with self.pools.hold(APART, account):
                reply = await self._reply(account, frames)
            if reply is not None:
                return reply.result()
        roll_ups, seconds = await self.pools.run(PARSE, account, _measured, frames)
        self._count(seconds)
        return roll_ups

    async def _reply(self, account: int, frames: Sequence[Frame]) -> Reply | None:
        """Ask the process with the fewest requests; None if it ended."""
        alive = self._alive()
        if len(alive) < PARSERS:
            self._start()
        if not alive:
            return None
        began = self.clock()
        try:
            reply = await min(alive, key=lambda process: process.waiting).roll_up(frames)
        except ProcessEnded:
            self.pools.shares.charge(account, self.clock() - began)
            return None
        self.pools.shares.charge(account, reply.cpu_s)
        return reply

    def _alive(self) -> list[ParseProcess]:
        return [process for process in self.processes if process.is_alive]

    def _count(self, seconds: float) -> None:
        """Add the CPU time of a thread to the average, and start processes if it is too high."""
        now = self.clock()
        self._rate = self._rate * 0.5 ** ((now - self._at) / MEMORY_S) + seconds / MEMORY_S
        self._at = now
        if self._rate > BUSY_RATE:
            self._start()

    def _start(self) -> None:
        # Passing a socket as standard input works on POSIX only; elsewhere threads do all of it.
        is_soon = self.clock() - self._started < RESTART_S
        if os.name == "posix" and not (self._is_closed or is_soon):
            self._started = self.clock()
            self._starting = asyncio.create_task(self._start_missing())

    async def _start_missing(self) -> None:
        self.processes = self._alive()
        try:
            while len(self.processes) < PARSERS:
                self.processes.append(await ParseProcess.start())
        except OSError as error:
            logger.warning("processes that check batches cannot be started: %s", error)
        if self._is_closed:
            self.close()

    def close(self) -> None:
        """End the processes, and start no more; from any thread."""
        self._is_closed = True
        for process in self.processes:
            process.end()


def _measured(frames: Sequence[Frame]) -> tuple[list[RollUp], float]:
    began = time.thread_time()
    return roll_up_frames(frames), time.thread_time() - began
