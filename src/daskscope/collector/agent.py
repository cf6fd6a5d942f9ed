"""The agent inside a worker: it watches and pushes what it saw to the scheduler, every few seconds and on its way out.

The recorder on the scheduler calls ``start_agent`` through the ``run`` RPC. Nothing in here raises into the worker, and when
nobody listens any more the agent takes itself out.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from distributed.diagnostics.plugin import WorkerPlugin

from ..wire.encode import encode_body
from .columns import Columns
from .pending import Pending
from .probes import Probes, Settings

NAME = "daskscope-agent"

DEFAULT_PUSH_S = 5.0
#: A failure is pushed this soon, and others of the same moment with it.
PROMPT_S = 0.2
#: Nothing new: say so this often, no more.
QUIET_S = 60.0
RPC_TIMEOUT_S = 10.0
TEARDOWN_S = 2.0
#: The scheduler logs a warning for each call it does not know: three times the pause after each refusal keeps them few.
BACK_OFF = 3.0
GIVE_UP_S = 180.0

#: A worker in these states has torn its plugins down: an agent would never be taken out again.
GONE = frozenset(("closing", "closed", "failed"))
_SWITCHES = ("profile", "transfers", "logs", "causes")


class Agent(WorkerPlugin):
    """One worker's agent. It sits among the worker's plugins for ``teardown`` only."""

    def __init__(self, worker: Any, settings: Settings) -> None:
        self.settings = dict(settings)
        self.running = True
        self._worker = worker
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._pushing = asyncio.Lock()
        self._interval = max(float(settings.get("push_interval_s") or DEFAULT_PUSH_S), 0.1)
        self._pending = Pending()
        self._refused_since: float | None = None
        self._said = 0.0
        self._probes = Probes(worker, settings, self._notify)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="daskscope-agent")
        self._task = asyncio.create_task(self._run(), name=NAME)

    async def teardown(self, worker: Any) -> None:
        """Called and awaited by the worker when it closes: push the last of it, but do not keep the worker waiting."""
        try:
            # A worker whose scheduler has gone is not kept: a signal that arrives while it closes would hang it for good.
            stream = getattr(worker, "batched_stream", None)
            if stream is not None and not stream.closed():
                await asyncio.wait_for(self.push(whole=True), TEARDOWN_S)
        except Exception:  # noqa: BLE001 - late, or the scheduler has gone: the worker closes anyway
            pass
        finally:
            self.close()

    async def push(self, *, whole: bool = False) -> bool:
        """Drain everything and send it; True if the scheduler took it."""
        async with self._pushing:
            if not self.running:
                return False
            children = await self._loop.run_in_executor(self._executor, self._collect, whole)
            if not self._pending and children is None and self._loop.time() - self._said < QUIET_S and not whole:
                return True
            return await self._send(children)

    def close(self) -> None:
        """Take everything out of the worker again."""
        self.running = False
        self._probes.close()
        self._executor.shutdown(wait=False)
        if self._worker.plugins.get(NAME) is self:
            del self._worker.plugins[NAME]
        # The task itself may be what closes us, after it gave up: then it ends by itself.
        if asyncio.current_task() is not self._task:
            self._task.cancel()

    def _collect(self, whole: bool) -> dict[str, float] | None:  # noqa: FBT001 - called through an executor
        for table, columns in self._probes.tables(whole=whole).items():
            self._encode(table, columns)
        for table, rows in self._probes.losses().items():
            self._pending.lose(table, rows)
        self._pending.add_causes(self._probes.causes())
        return self._probes.children()

    def _encode(self, table: str, columns: Columns) -> None:
        """Rows that cannot be encoded are lost, and counted; those of the other tables are not."""
        try:
            self._pending.add_body(encode_body(table, columns))
        except Exception as error:  # noqa: BLE001 - they are drained, and cannot be had again
            self._probes.errors[table] = f"{type(error).__name__}: {error}"[:200]
            self._pending.lose(table, max(map(len, columns.values())))

    async def _send(self, children: dict[str, float] | None) -> bool:
        contents = self._pending.contents()
        quality = {**self._probes.quality(), "causes_lost": self._probes.causes_lost + self._pending.causes_lost}
        try:
            # Not named "op": distributed has that name for the handler itself.
            call = self._worker.scheduler.daskscope(
                action="push",
                worker=self._worker.address,
                bodies=contents.bodies,
                causes=contents.causes,
                dropped=contents.dropped,
                children=children,
                quality=quality,
            )
            reply = await asyncio.wait_for(call, RPC_TIMEOUT_S)
        except Exception:  # noqa: BLE001 - a scheduler that has gone or cannot read us: keep what we have, try later
            return False
        # A handler the scheduler does not know gives None, not an error.
        if reply is None or (isinstance(reply, Mapping) and reply.get("status") == "refused"):
            return False
        self._pending.sent(contents)
        self._said = self._loop.time()
        return True

    async def _run(self) -> None:
        pause = self._interval * random.uniform(0.2, 1.0)
        while self.running:
            try:
                await self._rest(pause)
                pause = self._next_pause(pause, accepted=await self.push())
            except asyncio.CancelledError:
                return
            except Exception as error:  # noqa: BLE001 - the top of our own task
                self._probes.errors["agent"] = f"{type(error).__name__}: {error}"[:200]
                pause = self._next_pause(pause, accepted=False)
        self.close()

    async def _rest(self, pause: float) -> None:
        """Wait for the next push; a failure shortens it, unless the scheduler refuses us at the moment."""
        if self._refused_since is not None:
            await asyncio.sleep(pause)
            return
        try:
            await asyncio.wait_for(self._wake.wait(), pause)
            await asyncio.sleep(PROMPT_S)
        except asyncio.TimeoutError:
            pass
        self._wake.clear()

    def _next_pause(self, pause: float, *, accepted: bool) -> float:
        if accepted:
            self._refused_since = None
            return self._interval * random.uniform(0.8, 1.2)
        now = self._loop.time()
        self._refused_since = now if self._refused_since is None else self._refused_since
        if now - self._refused_since >= GIVE_UP_S:
            self.running = False
        # The last pause ends with the patience, not after it.
        return min(max(pause, self._interval) * BACK_OFF, max(self._refused_since + GIVE_UP_S - now, self._interval))

    def _notify(self) -> None:
        """Called from the thread of a task that failed."""
        self._loop.call_soon_threadsafe(self._wake.set)


def start_agent(dask_worker: Any, settings: Settings) -> str:
    """Start the agent of a worker, on its event loop: "running", "off", or "refused: why". Never raises."""
    try:
        present = dask_worker.plugins.get(NAME)
        if present is not None:
            if present.running and present.settings == dict(settings):
                return "running"
            present.close()
        if getattr(getattr(dask_worker, "status", None), "name", "running") in GONE:
            return "refused: the worker is closing"
        if not any(settings.get(name, True) for name in _SWITCHES) and not settings.get("children", False):
            return "off"
        dask_worker.plugins[NAME] = Agent(dask_worker, settings)
    except Exception as error:  # noqa: BLE001 - the worker must run on without us
        return f"refused: {type(error).__name__}: {error}"[:300]
    return "running"


def stop_agent(dask_worker: Any) -> str:
    """Take the agent out of a worker without a last push (see ``flush_agent``). Never raises."""
    try:
        present = dask_worker.plugins.get(NAME)
        if present is not None:
            present.close()
    except Exception as error:  # noqa: BLE001 - the worker must run on
        return f"refused: {type(error).__name__}: {error}"[:300]
    return "off"


async def flush_agent(dask_worker: Any, timeout: float = 5.0) -> bool:
    """Bring everything known so far to the scheduler: a heartbeat for Dask's own metrics, then our deltas."""
    try:
        # Waited for, not cancelled: a heartbeat cut off in the middle could lose the metrics it had taken.
        await asyncio.wait([asyncio.ensure_future(dask_worker.heartbeat())], timeout=timeout)
        present = dask_worker.plugins.get(NAME)
        return present is not None and await asyncio.wait_for(present.push(whole=True), timeout)
    except Exception:  # noqa: BLE001 - asked by the scheduler; "no" is an answer, an exception would only be logged
        return False
