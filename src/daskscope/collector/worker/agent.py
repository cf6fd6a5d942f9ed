"""The agent inside a worker: it collects data and pushes it to the scheduler, every few seconds and when the worker closes.

The recorder on the scheduler calls ``start_agent`` through the ``run`` RPC. Nothing here raises into the worker. If the scheduler
accepts no push for three minutes, the agent removes itself.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from distributed.diagnostics.plugin import WorkerPlugin

from ...wire.encode import encode_body
from ..rows import Columns, checked
from ..versions import installed
from .causes import Record
from .probes import Probes, Settings

NAME = "daskscope-agent"

DEFAULT_PUSH_S = 5.0
#: A recorder asks for at most a second per ten workers: an hour is what 36,000 need.
MAX_PUSH_S = 3_600.0
#: A failure is pushed this soon, together with others that follow at once.
PROMPT_S = 0.2
#: Without new data, push only this often.
QUIET_S = 60.0
RPC_TIMEOUT_S = 10.0
TEARDOWN_S = 2.0
THREAD_END_S = 0.2
#: Factor on the pause after each refusal: the scheduler logs a warning for each call of an RPC it does not have.
BACK_OFF = 3.0
GIVE_UP_S = 180.0
#: Up to this many rows of a table are sent as they are, and the recorder makes one batch of the rows of all workers. A worker has
#: 1 to 12 rows per push, and a batch of its own costs a server as much as 50.
FEW_ROWS = 50

#: A worker in these states has torn its plugins down, so an agent would never be removed.
CLOSED_STATES = frozenset(("closing", "closed", "failed"))
_SWITCHES = ("profile", "transfers", "logs", "causes")


class Agent(WorkerPlugin):
    """One worker's agent. It is registered as a plugin only so that the worker calls ``teardown``."""

    def __init__(self, worker: Any, settings: Settings) -> None:
        self.settings = dict(settings)
        self.is_running = True
        self._worker = worker
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._pushing = asyncio.Lock()
        self._interval = max(float(settings.get("push_interval_s") or DEFAULT_PUSH_S), 0.1)
        #: Seconds between two pushes, as the recorder asked for with its last reply.
        self.push_s = self._interval
        self._pending = Pending()
        self._refused_since: float | None = None
        self._replied_at = 0.0
        #: Versions of packages: None until they are known, empty once they were sent.
        self._versions: dict[str, str] | None = None
        self._probes = Probes(worker, settings, self._notify)
        self._threads: list[threading.Thread] = []
        self._executor = ThreadPoolExecutor(
            1,
            thread_name_prefix="daskscope-agent",
            initializer=lambda: self._threads.append(threading.current_thread()),
        )
        self._task = asyncio.create_task(self._run(), name=NAME)

    async def teardown(self, worker: Any) -> None:
        """Push the remaining data when the worker closes, without delaying it for more than ``TEARDOWN_S``."""
        try:
            # Skip if the scheduler is gone: a signal that arrives while the worker closes would hang it permanently.
            stream = getattr(worker, "batched_stream", None)
            if stream is not None and not stream.closed():
                await asyncio.wait_for(self.push(whole=True), TEARDOWN_S)
        except Exception:  # noqa: BLE001 - a timeout, or the scheduler is gone: the worker closes anyway
            pass
        finally:
            self.close()

    async def push(self, *, whole: bool = False) -> bool:
        """Drain all probes and send the data; return whether the scheduler accepted it."""
        async with self._pushing:
            if not self.is_running:
                return False
            children = await self._loop.run_in_executor(self._executor, self._collect, whole)
            if not self._pending and children is None and self._loop.time() - self._replied_at < QUIET_S and not whole:
                return True
            return await self._send(children)

    async def push_stacks(self, request: int) -> str:
        """Push the stacks of the tasks that run now; return "pushed", or why not."""
        # On the event loop, as the sampler does where it must (see ``must_sample_from_loop``): 50 µs per thread.
        columns = self._probes.stacks_now(request)
        if columns is None:
            return "refused: profiles are switched off"
        if columns["time_us"]:
            async with self._pushing:
                await self._loop.run_in_executor(self._executor, self._encode, "stacks", columns)
        return "pushed" if await self.push() else "refused: the scheduler did not accept the stacks"

    def close(self) -> None:
        """Remove the agent and all its probes from the worker."""
        self.is_running = False
        self._probes.close()
        self._executor.shutdown(wait=False)
        for thread in self._threads:
            # An idle thread ends within microseconds; one that is stuck must not block the worker's event loop.
            thread.join(THREAD_END_S)
        if self._worker.plugins.get(NAME) is self:
            del self._worker.plugins[NAME]
        # The task itself calls this after it gave up; then it ends without being cancelled.
        if asyncio.current_task() is not self._task:
            self._task.cancel()

    def _collect(self, whole: bool) -> dict[str, float] | None:  # noqa: FBT001 - called through an executor
        if self._versions is None:
            self._versions = installed()
        for table, columns in self._probes.tables(whole=whole).items():
            self._encode(table, columns)
        for table, rows in self._probes.losses().items():
            self._pending.count_lost(table, rows)
        self._pending.add_causes(self._probes.causes())
        return self._probes.children()

    def _encode(self, table: str, columns: Columns) -> None:
        """Encode a table's rows unless they are few; if that fails, count them as lost and keep the rows of other tables."""
        rows = max(map(len, columns.values()))
        try:
            scrubbed = self._probes.scrubber.scrub_columns(columns)
            try:
                few = checked(table, scrubbed) if rows <= FEW_ROWS else None
            except ValueError:
                # A body may carry what a message cannot; if it cannot either, these rows are lost and no others.
                few = None
            if few is not None:
                self._pending.add_rows(table, few)
            else:
                self._pending.add_body(encode_body(table, scrubbed))
        except Exception as error:  # noqa: BLE001 - the rows are drained already and cannot be collected again
            self._probes.errors[table] = f"{type(error).__name__}: {error}"[:200]
            self._pending.count_lost(table, rows)

    async def _send(self, children: dict[str, float] | None) -> bool:
        contents = self._pending.contents()
        quality = {**self._probes.quality(), "causes_lost": self._probes.causes_lost + self._pending.causes_lost}
        if self._versions:
            quality["versions"] = self._versions
        try:
            # Not named "op": distributed uses that name for the handler itself.
            call = self._worker.scheduler.daskscope(
                action="push",
                worker=self._worker.address,
                bodies=contents.bodies,
                rows=contents.rows,
                causes=contents.causes,
                dropped=contents.dropped,
                children=children,
                quality=quality,
            )
            reply = await asyncio.wait_for(call, RPC_TIMEOUT_S)
        except Exception:  # noqa: BLE001 - the scheduler is gone or cannot read the push: keep the data and try later
            return False
        # A call of an RPC that the scheduler does not have returns None, not an error.
        if reply is None or (isinstance(reply, Mapping) and reply.get("status") == "refused"):
            return False
        self._pending.mark_sent(contents)
        if isinstance(reply, Mapping):
            self.push_s = push_pause(reply.get("push_s"), self._interval)
        self._versions = {}
        self._replied_at = self._loop.time()
        return True

    async def _run(self) -> None:
        pause = self._interval * random.uniform(0.2, 1.0)
        while self.is_running:
            try:
                await self._wait(pause)
                pause = self._next_pause(pause, accepted=await self.push())
            except asyncio.CancelledError:
                return
            except Exception as error:  # noqa: BLE001 - the top of the task
                self._probes.errors["agent"] = f"{type(error).__name__}: {error}"[:200]
                pause = self._next_pause(pause, accepted=False)
        self.close()

    async def _wait(self, pause: float) -> None:
        """Wait until the next push is due. A failed task shortens the wait, unless the scheduler currently refuses pushes."""
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
            return self.push_s * random.uniform(0.8, 1.2)
        now = self._loop.time()
        self._refused_since = now if self._refused_since is None else self._refused_since
        if now - self._refused_since >= GIVE_UP_S:
            self.is_running = False
        # The last pause ends when the agent gives up, not later.
        return min(max(pause, self._interval) * BACK_OFF, max(self._refused_since + GIVE_UP_S - now, self._interval))

    def _notify(self) -> None:
        """Push soon. Called on the thread of a task that failed."""
        self._loop.call_soon_threadsafe(self._wake.set)


def push_pause(asked: object, interval_s: float) -> float:
    """Return the seconds between two pushes that a reply asks for; the configured interval if it asks for nothing sensible."""
    if not isinstance(asked, int | float) or not interval_s <= asked < float("inf"):
        return interval_s
    # With a longer pause the agent would look dead, and all rows of the run would wait for it.
    return float(min(asked, MAX_PUSH_S))


def start_agent(dask_worker: Any, settings: Settings) -> str:
    """Start the agent of a worker, on its event loop; return "running", "off" or "refused: reason". Never raises."""
    try:
        present = dask_worker.plugins.get(NAME)
        if present is not None:
            if present.is_running and present.settings == dict(settings):
                return "running"
            present.close()
        if getattr(getattr(dask_worker, "status", None), "name", "running") in CLOSED_STATES:
            return "refused: the worker is closing"
        if not any(settings.get(name, True) for name in _SWITCHES) and not settings.get("children", False):
            return "off"
        dask_worker.plugins[NAME] = Agent(dask_worker, settings)
    except Exception as error:  # noqa: BLE001 - the worker must keep running without an agent
        return f"refused: {type(error).__name__}: {error}"[:300]
    return "running"


def stop_agent(dask_worker: Any) -> str:
    """Remove the agent from a worker without a last push (see ``flush_agent``). Never raises."""
    try:
        present = dask_worker.plugins.get(NAME)
        if present is not None:
            present.close()
    except Exception as error:  # noqa: BLE001 - the worker must keep running
        return f"refused: {type(error).__name__}: {error}"[:300]
    return "off"


async def flush_agent(dask_worker: Any, timeout: float = 5.0) -> bool:
    """Bring all data to the scheduler, first Dask's metrics by a heartbeat, then the agent's; return whether it arrived."""
    try:
        # Not cancelled on timeout: a heartbeat cut off halfway could lose the metrics it carries.
        await asyncio.wait([asyncio.ensure_future(dask_worker.heartbeat())], timeout=timeout)
        present = dask_worker.plugins.get(NAME)
        return present is not None and await asyncio.wait_for(present.push(whole=True), timeout)
    except Exception:  # noqa: BLE001 - the scheduler can use False, but would only log an exception
        return False


async def push_stacks(dask_worker: Any, request: int, timeout: float = 5.0) -> str:
    """Push the stacks of the tasks that run now to the scheduler; return "pushed", or why not. Never raises."""
    try:
        present = dask_worker.plugins.get(NAME)
        if present is None:
            return "refused: the worker has no agent"
        return str(await asyncio.wait_for(present.push_stacks(request), timeout))
    except Exception as error:  # noqa: BLE001 - the scheduler can use a text, but would only log an exception
        return f"refused: {type(error).__name__}: {error}"[:300]


MAX_BYTES = 4_000_000
MAX_CAUSES = 500
#: Tables of few rows that wait: 3 minutes of pushes, after which the agent gives up, have at most 250.
MAX_PENDING = 250


@dataclass(frozen=True)
class Contents:
    """One push: encoded batches, rows of tables with few of them, causes of failures, rows lost by table."""

    bodies: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    causes: list[Record]
    dropped: dict[str, int]


class Pending:
    """Data waiting to be sent. Above its limits the oldest bodies, rows and causes are dropped and counted."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_rows: int = MAX_PENDING, max_causes: int = MAX_CAUSES) -> None:
        self._bodies: deque[dict[str, Any]] = deque()
        self._rows: deque[dict[str, Any]] = deque()
        self._max_rows = max_rows
        self._causes: deque[Record] = deque()
        self._max_bytes = max_bytes
        self._max_causes = max_causes
        #: Lost rows by table that have not been reported to the scheduler.
        self._lost: dict[str, int] = {}
        #: Not counted as rows: a failure whose cause is lost still has its row.
        self.causes_lost = 0

    def __bool__(self) -> bool:
        return bool(self._bodies or self._rows or self._causes or self._lost)

    def add_body(self, body: Any) -> None:
        names = ("table", "rows", "t0", "t1", "raw", "data")
        self._bodies.append({name: getattr(body, name) for name in names})
        while sum(len(waiting["data"]) for waiting in self._bodies) > self._max_bytes:
            oldest = self._bodies.popleft()
            self.count_lost(oldest["table"], oldest["rows"])

    def add_rows(self, table: str, columns: Columns) -> None:
        self._rows.append({"table": table, "columns": columns})
        while len(self._rows) > self._max_rows:
            oldest = self._rows.popleft()
            self.count_lost(oldest["table"], max(map(len, oldest["columns"].values())))

    def add_causes(self, causes: list[Record]) -> None:
        self._causes.extend(causes)
        while len(self._causes) > self._max_causes:
            self._causes.popleft()
            self.causes_lost += 1

    def count_lost(self, table: str, rows: int) -> None:
        """Count lost rows of a table; the next push reports them, even if it has no body of that table."""
        self._lost[table] = self._lost.get(table, 0) + rows

    def contents(self) -> Contents:
        """Return all waiting data."""
        return Contents(list(self._bodies), list(self._rows), list(self._causes), dict(self._lost))

    def mark_sent(self, contents: Contents) -> None:
        """Remove data that the scheduler accepted; data that arrived meanwhile stays."""
        for _ in contents.bodies:
            self._bodies.popleft()
        for _ in contents.rows:
            self._rows.popleft()
        for _ in contents.causes:
            self._causes.popleft()
        left = {table: rows - contents.dropped.get(table, 0) for table, rows in self._lost.items()}
        self._lost = {table: rows for table, rows in left.items() if rows}
