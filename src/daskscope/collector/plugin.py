"""The scheduler plugin: a thin shell of timers, threads and handlers around the recorder.

It is someone else's scheduler. ``start`` never raises, no RPC is awaited in a hook, closing is bounded to three seconds, and
``valid_workers_downscaling`` is not overridden because an exception there breaks scale-down.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dask.config
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.versions import get_versions

from .agents import Agents
from .bundle import NAME
from .execution_columns import edge_columns, task_columns
from .executions import FULL
from .guard import Guard, guarded, guarded_async
from .handler import Handler
from .hooks import Hooks
from .logcapture import LogCapture, shared
from .outbox import FrameQueue, Outbox
from .privacy import Scrubber
from .recorder import CONFIG_KEYS, Recorder
from .sender import Sender, poster
from .settings import Settings
from .spool import Spool
from .writer import Writer

logger = logging.getLogger("daskscope")

TICK = 0.25
#: A tick that takes longer than this makes the next ones rarer.
TICK_BUDGET = 0.005
SLOWEST_TICK = 2.0
#: A batch has a limit that 5,000 executions with many dependencies exceed.
EDGES_PER_BATCH = 100_000
#: Everything that happens on close, together.
CLOSE_TIMEOUT = 2.5


def create(settings: dict[str, Any]) -> ClusterPlugin:
    """The plugin from plain settings; what a shipped bundle calls."""
    return ClusterPlugin(Settings.of(settings))


class ClusterPlugin(SchedulerPlugin):
    """Records one scheduler."""

    name = NAME
    idempotent = True

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.guard = Guard(time.monotonic, self.disable)
        self.scheduler: Any = None
        self.spool: Spool | None = None
        self.sender: Sender | None = None
        self.owners: set[str] = set()
        self.closed = False
        self.problem = ""
        self.logs: LogCapture | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    # -- life ------------------------------------------------------------------------------------------------------

    async def start(self, scheduler: Any) -> None:
        """Called by the scheduler, in an unguarded gather when preloaded: an exception here would end the process."""
        if self.scheduler is not None or NAME in scheduler.handlers:
            return
        try:
            self._set_up(scheduler)
        except Exception as error:  # noqa: BLE001 (see above)
            self.problem = repr(error)
            logger.warning("daskscope: this cluster is not recorded (%r)", error)
            # Whatever half of us is there must not act any more, nor keep threads.
            self.guard.open = self.closed = True
            self.transition = _nothing  # type: ignore[method-assign]
            scheduler.plugins.pop(NAME, None)
            self._take_down()
            if self.scheduler is not None:
                scheduler.handlers.pop(NAME, None)
                self.scheduler = None

    def take_over(self, scheduler: Any) -> None:
        """Sit where the shipped stand-in sits now."""
        if not self.closed and NAME in scheduler.plugins:
            scheduler.plugins[NAME] = self

    def _set_up(self, scheduler: Any) -> None:
        settings = self.settings
        scrubber = Scrubber.gather(os.environ, dask.config.config)
        self.recorder = Recorder(scheduler, settings, scrubber, time.time_ns, self.guard.caught)
        self.outbox = Outbox(scheduler.id, self.recorder.now_us())
        self.recorder.dropped = self.outbox.dropped
        self.writer = Writer(self.outbox, self.guard.caught)
        self.subscribe()
        versions = get_versions()
        packages = {k: v for k, v in versions["packages"].items() if v is not None}
        config = {key: dask.config.get(key, None) for key in CONFIG_KEYS}
        self.hooks = Hooks(scheduler, self.recorder, self.guard)
        self.scheduler = scheduler
        self.transition = self.recorder.executions.transition  # type: ignore[method-assign]
        self.agents = Agents(scheduler, self.recorder, settings.agent())
        self.handler = Handler(self)
        self.recorder.begin(packages, config)
        self.hooks.install()
        scheduler.handlers[NAME] = self.handler.handle
        if settings.logs:
            self.logs = shared.acquire(
                lambda: LogCapture(scrubber, exception_text=settings.exception_text, keys=settings.keys),
                loop_stalls=True,
            )
        self.writer.start()
        self._task = asyncio.get_running_loop().create_task(self._ticks())
        for address in list(scheduler.workers):
            self.agents.add(address)

    def subscribe(self) -> None:
        """Send to where the settings say."""
        settings = self.settings
        name = f"{self.outbox.cluster}-{self.outbox.epoch}"
        if settings.directory:
            self.spool = Spool(settings.directory, name, settings.spool_limit)
            self.outbox.subscribe("directory", self.spool.put)
        if settings.server:
            directory = settings.spool or Path(tempfile.gettempdir()) / f"daskscope-{_user_id()}"
            queue = FrameQueue(settings.queue_limit)
            spool = Spool(directory, name, settings.spool_limit, destination=settings.server.rstrip("/"))
            self.sender = Sender(poster(settings.server, settings.token), queue, spool)
            self.outbox.subscribe("server", queue.put)
            if settings.close:
                self.sender.on_close = partial(_soon, asyncio.get_running_loop(), self._close_scheduler)
            self.sender.start()

    def _close_scheduler(self) -> None:
        """Somebody asked at the server that this cluster be shut down. Once: closing takes a while, and batches go on."""
        if not self.closed and self._closing is None:
            logger.warning("daskscope: shutting down, as asked at %s", self.settings.server)
            self._closing = asyncio.get_running_loop().create_task(self.scheduler.close())

    def disable(self, reason: str) -> None:
        """The breaker opened: out of the scheduler's way, at once and for good."""
        self.transition = _nothing  # type: ignore[method-assign]
        if self.scheduler is not None:
            self.hooks.remove()
            self.recorder.rows.add(
                "events", time_us=self.recorder.now_us(), topic=NAME, kind="collector-disabled", detail=reason
            )

    async def settle(self) -> None:
        """Write everything that changed, a few milliseconds at a time."""
        self.recorder.begin_round(self.recorder.now_us())
        await self._go_on()
        # The first may have been half through with what has changed since.
        self.recorder.begin_round(self.recorder.now_us())
        await self._go_on()

    async def _go_on(self) -> None:
        """Finish the round; the scheduler gets its turn in between."""
        while self.recorder.advance():
            await asyncio.sleep(0)

    async def remove(self) -> None:
        """Leave nothing behind."""
        if not self.closed:
            await self.finish("recording ended", agents=True)
            self.scheduler.plugins.pop(NAME, None)

    async def finish(self, reason: str, *, agents: bool) -> None:
        """Write the end, hand everything over, stop. Bounded in time; happens once."""
        if self.closed or self.scheduler is None:
            return
        self.closed = True
        self.transition = _nothing  # type: ignore[method-assign]
        try:
            if agents:
                await self.agents.stop()
            await self.settle()
            if reason == "closed":
                self.recorder.begin_last_round(self.recorder.now_us())
                await self._go_on()
            self.recorder.end(reason)
            self.flush_rows()
        except Exception as error:  # noqa: BLE001 (closing a scheduler must not fail because of us)
            logger.warning("daskscope: the last rows of the recording are missing (%r)", error)
        finally:
            stopped = self._take_down()
            # The handler stays until the end: it tells a client that comes now to wait until the next recorder can begin.
            try:
                # A disk that hangs keeps the writer, but not the scheduler.
                await asyncio.wait({stopped}, timeout=CLOSE_TIMEOUT)
            finally:
                self.scheduler.handlers.pop(NAME, None)

    def _take_down(self) -> asyncio.Future[None]:
        """Everything that acts by itself ends, as far as there is any; the result is set once the threads have."""
        loop = asyncio.get_running_loop()
        stopped: asyncio.Future[None] = loop.create_future()
        parts = [part for part in map(vars(self).get, ("hooks", "agents", "_task")) if part is not None]
        for end in (getattr(part, "remove", None) or part.cancel for part in parts):
            try:
                end()
            except Exception as error:  # noqa: BLE001 (one that fails must not keep the others)
                logger.debug("daskscope: %r", error)
        if self.logs is not None:
            self.logs = None
            shared.release()

        def stop_threads() -> None:
            try:
                self._stop_threads()
            except Exception as error:  # noqa: BLE001 (the top of a thread)
                logger.warning("daskscope: the end of the recording may be missing (%r)", error)
            finally:
                _tell(loop, stopped)

        # A thread of our own: the loop's executor is waited for when the interpreter ends, and a disk may hang.
        threading.Thread(target=stop_threads, name="daskscope-stop", daemon=True).start()
        return stopped

    def _stop_threads(self) -> None:
        deadline = time.monotonic() + CLOSE_TIMEOUT
        writer: Writer | None = vars(self).get("writer")
        if writer is not None:
            writer.stop(CLOSE_TIMEOUT / 2)
        if self.sender is not None:
            self.sender.stop(max(0.2, deadline - time.monotonic()))
        if self.spool is not None:
            self.spool.close()

    # -- hooks -----------------------------------------------------------------------------------------------------

    def transition(self, *args: Any, **kwargs: Any) -> None:
        """Replaced by the recorder's closure once recording begins."""

    @guarded
    def update_graph(self, scheduler: Any, *, client: str = "", tasks: Any = (), **kwargs: Any) -> None:  # noqa: ARG002
        # A list of keys now, a mapping by key in older versions.
        self.recorder.graph(client, tasks if isinstance(tasks, list) else list(tasks))

    @guarded
    def add_worker(self, scheduler: Any, worker: str) -> None:  # noqa: ARG002
        self.recorder.members.joined(worker, self.recorder.now_us())
        self.agents.add(worker)

    @guarded
    def remove_worker(self, scheduler: Any, worker: str, *, stimulus_id: str = "", **kwargs: Any) -> None:  # noqa: ARG002
        self.recorder.members.left(worker, stimulus_id, self.recorder.now_us())
        self.recorder.children.pop(worker, None)

    @guarded
    def add_client(self, scheduler: Any, client: str) -> None:  # noqa: ARG002
        self.recorder.members.connected(client, self.recorder.now_us())

    def remove_client(self, scheduler: Any, client: str) -> None:  # noqa: ARG002
        self.client_gone(client)
        # Also after the breaker opened: the frames it will not fetch any more are let go.
        if self.scheduler is not None and not self.closed:
            self.handler.client_left(client)

    @guarded
    def client_gone(self, client: str) -> None:
        self.recorder.members.disconnected(client, self.recorder.now_us())

    @guarded
    def restart(self, scheduler: Any) -> None:  # noqa: ARG002
        self.recorder.rows.add("events", time_us=self.recorder.now_us(), topic="scheduler", kind="restart")

    @guarded
    def log_event(self, topic: str, msg: Any) -> None:
        self.recorder.event(topic, msg)

    @guarded_async
    async def before_close(self) -> None:
        if self.scheduler is not None:
            self.recorder.closing()
            await asyncio.wait_for(self.finish("closed", agents=False), CLOSE_TIMEOUT + 0.4)

    # -- ticks -----------------------------------------------------------------------------------------------------

    async def _ticks(self) -> None:
        period, flushed, sampled, stated = TICK, 0.0, 0.0, 0.0
        settings = self.settings
        while not self.guard.open:
            asleep = time.monotonic()
            await asyncio.sleep(period)
            now = time.monotonic()
            lag_us = max(0, int((now - asleep - period) * 1e6))
            if now - sampled >= settings.sample_interval:
                sampled = now
                self.sample(lag_us)
            if now - stated >= settings.state_interval:
                stated = now
                self.state()
            self.advance()
            if now - flushed >= settings.flush_interval or self.recorder.executions.rows() >= FULL:
                flushed = now
                self.flush()
            spent = time.monotonic() - now
            period = min(2 * period, SLOWEST_TICK) if spent > TICK_BUDGET else max(TICK, period / 2)
        # The breaker opened: what was collected until then is still worth having.
        try:
            self.flush_rows()
        except Exception as error:  # noqa: BLE001 (the last line of a task of ours)
            logger.debug("daskscope: %r", error)

    @guarded
    def advance(self) -> None:
        self.recorder.advance()

    @guarded
    def sample(self, lag_us: int) -> None:
        self.recorder.tick_samples(self.recorder.now_us(), lag_us)

    @guarded
    def state(self) -> None:
        self.recorder.begin_round(self.recorder.now_us())

    @guarded
    def flush(self) -> None:
        self.recorder.failures.ripen(self.recorder.now_us())
        self.flush_rows()

    def flush_rows(self) -> None:
        """Hand everything collected so far to the writer thread."""
        self.flush_executions()
        self.flush_other_rows()

    def flush_executions(self) -> None:
        chunk = self.recorder.rotate()
        if chunk.rows:
            keys = self.settings.keys
            self.writer.write("tasks", lambda: task_columns(chunk, keys=keys), chunk.rows)
            for first in range(0, len(chunk.dependencies), EDGES_PER_BATCH):
                part = slice(first, first + EDGES_PER_BATCH)
                self.writer.write("edges", partial(edge_columns, chunk, part), len(chunk.dependencies[part]))
            if chunk.edges_dropped:
                self.outbox.count_dropped("edges", chunk.edges_dropped)

    def flush_other_rows(self) -> None:
        if self.logs is not None:
            lost = self.logs.take_dropped()
            if lost:
                self.outbox.count_dropped("logs", lost)
            logs = self.logs.drain("scheduler")
            if logs["time_us"]:
                self.writer.write("logs", lambda: logs, len(logs["time_us"]))
        for table, columns, rows, dropped in self.recorder.rows.take():
            if dropped:
                self.outbox.count_dropped(table, dropped)
            self.writer.write(table, columns, rows)


def _soon(loop: asyncio.AbstractEventLoop, action: Callable[[], None]) -> None:
    """Have the event loop do something, from another thread."""
    loop.call_soon_threadsafe(action)


def _user_id() -> int:
    """Tells the temporary directories of users apart; 0 where the system has no such numbers."""
    getuid = getattr(os, "getuid", None)
    return getuid() if getuid is not None else 0


def _tell(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    """Set a future from another thread; nobody waits where its loop is closed."""

    def set_result() -> None:
        if not future.done():
            future.set_result(None)

    try:
        loop.call_soon_threadsafe(set_result)
    except RuntimeError:
        pass


def _nothing(*args: Any, **kwargs: Any) -> None:
    """What a hook becomes once we are out."""
