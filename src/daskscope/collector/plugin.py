"""The scheduler plugin: a thin shell of timers, threads and handlers around the recorder.

It is someone else's scheduler. ``start`` never raises, no RPC is awaited in a hook, closing is bounded to three seconds, and
``valid_workers_downscaling`` is not overridden because an exception there breaks scale-down.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import dask.config
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.versions import get_versions

from .agents import Agents
from .bundle import NAME
from .executions import FULL, edge_columns, task_columns
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
        self.owners: set[str] = set()
        self.closed = False

    # -- life ------------------------------------------------------------------------------------------------------

    async def start(self, scheduler: Any) -> None:
        """Called by the scheduler, in an unguarded gather when preloaded: an exception here would end the process."""
        if self.scheduler is not None or NAME in scheduler.handlers:
            return
        try:
            self._set_up(scheduler)
        except Exception as error:  # noqa: BLE001 (see above)
            self.scheduler = None
            scheduler.plugins.pop(NAME, None)
            logger.warning("daskscope: this cluster is not recorded (%r)", error)

    def take_over(self, scheduler: Any) -> None:
        """Sit where the shipped stand-in sits now."""
        if not self.closed and NAME in scheduler.plugins:
            scheduler.plugins[NAME] = self

    def _set_up(self, scheduler: Any) -> None:
        settings = self.settings
        scrubber = Scrubber.gather(os.environ, dask.config.config)
        self.recorder = Recorder(scheduler, settings, scrubber, time.time_ns, self.guard.caught)
        self.outbox = Outbox(scheduler.id, self.recorder.now_us())
        self.writer = Writer(self.outbox, self.guard.caught)
        self.sender: Sender | None = None
        self.spool: Spool | None = None
        self._subscribe()
        self.logs: LogCapture | None = None
        versions = get_versions()
        packages = {k: v for k, v in versions["packages"].items() if v is not None}
        config = {key: dask.config.get(key, None) for key in CONFIG_KEYS}
        self.scheduler = scheduler
        self.transition = self.recorder.executions.transition  # type: ignore[method-assign]
        self.hooks = Hooks(scheduler, self.recorder, self.guard)
        self.agents = Agents(scheduler, self.recorder, settings.agent())
        self.handler = Handler(self)
        self.recorder.begin(packages, config)
        self.hooks.install()
        scheduler.handlers[NAME] = self.handler.handle
        if settings.logs:
            self.logs = shared.acquire(
                lambda: LogCapture(scrubber, exception_text=settings.exception_text), loop_stalls=True
            )
        self.writer.start()
        if self.sender is not None:
            self.sender.start()
        self._task = asyncio.get_running_loop().create_task(self._ticks())
        for address in list(scheduler.workers):
            self.agents.add(address)

    def _subscribe(self) -> None:
        settings = self.settings
        name = f"{self.outbox.cluster}-{self.outbox.epoch}"
        if settings.directory:
            self.spool = Spool(settings.directory, name, settings.spool_limit)
            self.outbox.subscribe("directory", self.spool.put)
        if settings.server:
            directory = settings.spool or Path(tempfile.gettempdir()) / f"daskscope-{os.getuid()}"
            queue = FrameQueue(settings.queue_limit)
            self.sender = Sender(
                poster(settings.server, settings.token), queue, Spool(directory, name, settings.spool_limit)
            )
            self.outbox.subscribe("server", queue.put)

    def disable(self, reason: str) -> None:
        """The breaker opened: out of the scheduler's way, at once and for good."""
        self.transition = _nothing  # type: ignore[method-assign]
        if self.scheduler is not None:
            self.hooks.remove()
            self.recorder.rows.add(
                "events", time_us=self.recorder.now_us(), topic=NAME, kind="collector-disabled", detail=reason
            )

    async def remove(self) -> None:
        """Leave nothing behind."""
        await self.finish("recording ended", agents=True)
        self.scheduler.plugins.pop(NAME, None)

    async def finish(self, reason: str, *, agents: bool) -> None:
        """Write the end, hand everything over, stop. Bounded in time; happens once."""
        if self.closed or self.scheduler is None:
            return
        self.closed = True
        self.transition = _nothing  # type: ignore[method-assign]
        self._task.cancel()
        self.hooks.remove()
        if self.logs is not None:
            shared.release()
        if agents:
            await self.agents.stop()
        self.scheduler.handlers.pop(NAME, None)
        try:
            self.recorder.end(reason)
            self.flush_rows()
        except Exception as error:  # noqa: BLE001 (closing a scheduler must not fail because of us)
            logger.warning("daskscope: the last rows of the recording are missing (%r)", error)
        await asyncio.get_running_loop().run_in_executor(None, self._stop_threads)

    def _stop_threads(self) -> None:
        deadline = time.monotonic() + CLOSE_TIMEOUT
        self.writer.stop(CLOSE_TIMEOUT / 2)
        if self.sender is not None:
            self.sender.stop(max(0.2, deadline - time.monotonic()))
        if self.spool is not None:
            self.spool.close()

    # -- hooks -----------------------------------------------------------------------------------------------------

    def transition(self, *args: Any, **kwargs: Any) -> None:
        """Replaced by the recorder's closure once recording begins."""

    @guarded
    def update_graph(self, scheduler: Any, *, client: str = "", **kwargs: Any) -> None:  # noqa: ARG002
        self.recorder.graph(client)

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

    @guarded
    def remove_client(self, scheduler: Any, client: str) -> None:  # noqa: ARG002
        self.recorder.members.disconnected(client, self.recorder.now_us())
        self.handler.client_left(client)

    @guarded
    def restart(self, scheduler: Any) -> None:  # noqa: ARG002
        self.recorder.rows.add("events", time_us=self.recorder.now_us(), topic="scheduler", kind="restart")

    @guarded
    def log_event(self, topic: str, msg: Any) -> None:
        self.recorder.event(topic, msg)

    @guarded_async
    async def before_close(self) -> None:
        if self.scheduler is not None:
            self.recorder.members.closing = True
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
            if now - flushed >= settings.flush_interval or self.recorder.executions.rows() >= FULL:
                flushed = now
                self.flush()
            spent = time.monotonic() - now
            period = min(2 * period, SLOWEST_TICK) if spent > TICK_BUDGET else max(TICK, period / 2)

    @guarded
    def sample(self, lag_us: int) -> None:
        self.recorder.tick_samples(self.recorder.now_us(), lag_us)

    @guarded
    def state(self) -> None:
        self.recorder.tick_state(self.recorder.now_us())

    @guarded
    def flush(self) -> None:
        self.recorder.failures.ripen(self.recorder.now_us())
        self.flush_rows()

    def flush_rows(self) -> None:
        """Hand everything collected so far to the writer thread."""
        chunk = self.recorder.rotate()
        if chunk.rows:
            keys = self.settings.keys
            self.writer.write("tasks", lambda: task_columns(chunk, keys=keys), chunk.rows)
            if chunk.dependents:
                self.writer.write("edges", lambda: edge_columns(chunk), len(chunk.dependents))
            if chunk.edges_dropped:
                self.outbox.count_dropped("edges", chunk.edges_dropped)
        if self.logs is not None:
            logs = self.logs.drain("scheduler")
            if logs["time_us"]:
                self.writer.write("logs", lambda: logs, len(logs["time_us"]))
        for table, columns, dropped in self.recorder.rows.take():
            if dropped:
                self.outbox.count_dropped(table, dropped)
            self.writer.write(table, partial(dict, columns), len(next(iter(columns.values()))))


def _nothing(*args: Any, **kwargs: Any) -> None:
    """What a hook becomes once we are out."""
