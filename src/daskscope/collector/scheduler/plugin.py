"""The scheduler plugin: timers, threads and handlers around the recorder.

The plugin runs in the user's scheduler, so it must do no harm: ``start`` never raises, no hook awaits an RPC, closing takes at
most three seconds, and ``valid_workers_downscaling`` is not overridden because an exception there breaks scale-down.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import dask.config
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.versions import get_versions

from ..bundle import NAME
from ..delivery.encoder import Encoder
from ..delivery.outbox import FrameQueue, Outbox
from ..delivery.pace import HANDOVER_S, Pace
from ..delivery.poster import Post, poster
from ..delivery.sender import Sender
from ..delivery.spool import Spool, spool_directory
from ..guard import Guard, guarded, guarded_async
from ..logs import LogCapture, shared
from ..privacy import Scrubber
from ..profiles import LoopProfile, dask_timing
from ..rows import Columns
from ..settings import Settings
from ..versions import find_in_thread
from .agents import Agents
from .claims import Claims
from .earlier import recall, remember
from .executions import FULL_CHUNK, edge_columns, task_columns
from .patches import Patches
from .recorder import CONFIG_KEYS, Recorder
from .rpc import RecorderRpc, StackAnswers, is_recorded, say_farewell
from .workload import Work

logger = logging.getLogger("daskscope")

TICK = 0.25
#: A tick that takes longer than this doubles the time until the next one.
TICK_BUDGET = 0.005
SLOWEST_TICK = 2.0
#: 5,000 executions with many dependencies can have more edges than fit into one batch.
EDGES_PER_BATCH = 100_000
#: Total time for everything that happens on close.
CLOSE_TIMEOUT = 2.5


def create(settings: dict[str, Any]) -> ClusterPlugin:
    """Create the plugin from a plain dict; a shipped bundle calls this."""
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
        self.pace: Pace | None = None
        #: Posts frames to the server, if not with the token in the settings.
        self.post: Post | None = None
        self.claims = Claims()
        self.is_closed = False
        self.problem = ""
        self.logs: LogCapture | None = None
        self.loop_profile: LoopProfile | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._finding: threading.Thread | None = None
        self._stopper: threading.Thread | None = None
        self.stack_answers = StackAnswers(self)

    # -- lifecycle -------------------------------------------------------------------------------------------------

    async def start(self, scheduler: Any) -> None:
        """Start recording. Never raises: a preloaded plugin's exception would end the scheduler's process."""
        if self.scheduler is not None or is_recorded(scheduler):
            return
        try:
            self._set_up(scheduler)
        except Exception as error:  # noqa: BLE001 (see above)
            self.problem = repr(error)
            logger.warning("daskscope: this cluster is not recorded (%r)", error)
            # Stop the parts that were already set up, including their threads.
            self.guard.is_open = self.is_closed = True
            self.transition = _do_nothing  # type: ignore[method-assign]
            scheduler.plugins.pop(NAME, None)
            self._shut_down()
            if self.scheduler is not None:
                scheduler.handlers.pop(NAME, None)
                self.scheduler = None

    def take_over(self, scheduler: Any) -> None:
        """Replace the shipped stand-in in the scheduler's plugins."""
        if not self.is_closed and NAME in scheduler.plugins:
            scheduler.plugins[NAME] = self

    def _set_up(self, scheduler: Any) -> None:
        settings = self.settings
        scrubber = Scrubber.gather(os.environ, dask.config.config)
        earlier = recall(scheduler, settings)
        self.recorder = Recorder(scheduler, settings, scrubber, time.time_ns, self.guard.caught, earlier)
        self.outbox = Outbox(scheduler.id, self.recorder.now_us())
        self.recorder.dropped = self.outbox.dropped
        self.encoder = Encoder(self.outbox, self.guard.caught)
        self.subscribe()
        versions = get_versions()
        packages = {k: v for k, v in versions["packages"].items() if v is not None}
        config = {key: dask.config.get(key, None) for key in CONFIG_KEYS}
        self.patches = Patches(scheduler, self.recorder, self.guard)
        self.work = Work(scheduler, self.recorder.executions.total)
        self.scheduler = scheduler
        self.transition = self.recorder.executions.transition  # type: ignore[method-assign]
        self.agents = Agents(scheduler, self.recorder, settings.for_agent())
        self.rpc = RecorderRpc(self)
        self.recorder.begin(packages, config)
        self.recorder.continue_recording(earlier)
        self.patches.install()
        scheduler.handlers[NAME] = self.rpc.handle
        if settings.logs:
            self.logs = shared.acquire(
                lambda: LogCapture(
                    scrubber,
                    exception_text=settings.exception_text,
                    aliases=self.recorder.aliases,
                    user_loggers=settings.logs == "all",
                ),
                loop_stalls=True,
            )
        if settings.profile:
            self.loop_profile = LoopProfile(
                getattr(scheduler, "io_loop", None),
                "scheduler",
                interval=dask_timing("interval", 0.010),
                cycle=dask_timing("cycle", 1.0),
            )
        self.encoder.start()
        self._finding = find_in_thread(asyncio.get_running_loop(), self.add_versions)
        self._task = asyncio.get_running_loop().create_task(self._ticks())
        for address in list(scheduler.workers):
            self.agents.add(address)

    @guarded
    def add_versions(self, versions: dict[str, str]) -> None:
        if not self.is_closed:
            self.recorder.add_versions(versions)

    def subscribe(self) -> None:
        """Send frames to the directory and the server in the settings."""
        settings = self.settings
        name = f"{self.outbox.cluster}-{self.outbox.epoch}"
        if settings.directory:
            self.spool = Spool(settings.directory, name, settings.spool_limit)
            self.outbox.subscribe("directory", self.spool.put)
        if settings.server:
            queue = FrameQueue(settings.queue_limit)
            directory = spool_directory(settings.spool)
            spool = Spool(directory, name, settings.spool_limit, destination=settings.server.rstrip("/"))
            self.pace = Pace()
            self.sender = Sender(self.post or poster(settings.server, settings.token), queue, spool, pace=self.pace)
            self.sender.posts = getattr(self.post, "posts", self.sender.posts)
            self.outbox.subscribe("server", queue.put)
            if settings.close:
                self.sender.on_close = partial(_call_soon, asyncio.get_running_loop(), self._close_scheduler)
            loop = asyncio.get_running_loop()
            self.sender.on_stacks = lambda asked: _call_soon(loop, partial(self.stack_answers.answer, asked))
            self.sender.start()

    def _close_scheduler(self) -> None:
        """Close the scheduler because a user asked the server to. Only once: replies repeat the request while it closes."""
        if not self.is_closed and self._closing is None:
            logger.warning("daskscope: shutting down this cluster, as requested at %s", self.settings.server)
            self._closing = asyncio.get_running_loop().create_task(self.scheduler.close())

    def disable(self, reason: str) -> None:
        """Stop recording immediately and permanently, because the breaker opened."""
        self.transition = _do_nothing  # type: ignore[method-assign]
        if self.scheduler is not None:
            self.patches.remove()
            self.recorder.rows.add(
                "events", time_us=self.recorder.now_us(), topic=NAME, kind="collector-disabled", detail=reason
            )

    async def settle(self) -> None:
        """Write all changes, a few milliseconds at a time."""
        self.recorder.begin_round(self.recorder.now_us())
        await self._finish_round()
        # The first round may already have been under way and passed entities that changed since.
        self.recorder.begin_round(self.recorder.now_us())
        await self._finish_round()

    async def _finish_round(self) -> None:
        """Finish the round, letting the scheduler run in between."""
        while self.recorder.advance():
            await asyncio.sleep(0)

    async def remove(self) -> None:
        """Stop recording and remove everything the recorder added to the scheduler."""
        if not self.is_closed:
            await self.finish("recording ended", agents=True)
            self.scheduler.plugins.pop(NAME, None)

    async def finish(self, reason: str, *, agents: bool) -> None:
        """Write the end of the recording, deliver everything and stop. Happens once, in limited time."""
        if self.is_closed or self.scheduler is None:
            return
        self.is_closed = True
        self.transition = _do_nothing  # type: ignore[method-assign]
        try:
            if agents:
                await self.agents.stop()
            await self.settle()
            if reason == "closed":
                self.recorder.begin_last_round(self.recorder.now_us())
                await self._finish_round()
            self.recorder.end(reason)
            self.flush_rows()
            if reason != "closed":
                remember(self.scheduler, self.settings, self.recorder.ended())
        except Exception as error:  # noqa: BLE001 (closing a scheduler must not fail because of the recorder)
            logger.warning("daskscope: the last rows of the recording are missing (%r)", error)
        finally:
            stopped = self._shut_down()
            # The handler stays until the end: it replies "leaving" to a client that wants to start the next recording.
            try:
                # A disk that hangs blocks the encoder thread, but must not block the scheduler.
                await asyncio.wait({stopped}, timeout=CLOSE_TIMEOUT)
                if stopped.done() and self._stopper is not None:
                    # Its last statement set the future. Wait for it, so that none of our threads outlives the recording.
                    self._stopper.join(0.1)
            finally:
                # A closing scheduler keeps it: without it, distributed would log a traceback if a client asks once more.
                if reason != "closed":
                    say_farewell(self.scheduler)

    def _shut_down(self) -> asyncio.Future[None]:
        """Stop patches, agents and the tick task; return a future that is set once the threads have stopped."""
        loop = asyncio.get_running_loop()
        stopped: asyncio.Future[None] = loop.create_future()
        parts = [part for part in map(vars(self).get, ("patches", "agents", "_task")) if part is not None]
        for end in (getattr(part, "remove", None) or part.cancel for part in parts):
            try:
                end()
            except Exception as error:  # noqa: BLE001 (one failure must not keep the other parts running)
                logger.debug("daskscope: %r", error)
        if self.loop_profile is not None:
            self.loop_profile.close()
        if self.logs is not None:
            self.logs = None
            shared.release()

        def stop_threads() -> None:
            try:
                self._stop_threads()
            except Exception as error:  # noqa: BLE001 (the top of a thread)
                logger.warning("daskscope: the end of the recording may be missing (%r)", error)
            finally:
                _set_result(loop, stopped)

        # Not the loop's executor: the interpreter waits for that on exit, and a disk may hang.
        self._stopper = threading.Thread(target=stop_threads, name="daskscope-stop", daemon=True)
        self._stopper.start()
        return stopped

    def _stop_threads(self) -> None:
        deadline = time.monotonic() + CLOSE_TIMEOUT
        encoder: Encoder | None = vars(self).get("encoder")
        if encoder is not None:
            encoder.stop(CLOSE_TIMEOUT / 2)
        if self.sender is not None:
            self.sender.stop(max(0.2, deadline - time.monotonic()))
        if self.spool is not None:
            self.spool.close()
        if self._finding is not None:
            self._finding.join(max(0.2, deadline - time.monotonic()))

    # -- hooks -----------------------------------------------------------------------------------------------------

    def transition(self, *args: Any, **kwargs: Any) -> None:
        """Replaced by the recorder's closure once recording begins."""

    @guarded
    def update_graph(self, scheduler: Any, *, client: str = "", tasks: Any = (), **kwargs: Any) -> None:  # noqa: ARG002
        # A list of keys; older versions of distributed pass a mapping by key.
        self.recorder.graph(client, tasks if isinstance(tasks, list) else list(tasks))

    @guarded
    def add_worker(self, scheduler: Any, worker: str) -> None:  # noqa: ARG002
        self.recorder.members.add_worker(worker, self.recorder.now_us())
        self.agents.add(worker)

    @guarded
    def remove_worker(self, scheduler: Any, worker: str, *, stimulus_id: str = "", **kwargs: Any) -> None:  # noqa: ARG002
        self.recorder.remove_worker(worker, stimulus_id)

    @guarded
    def add_client(self, scheduler: Any, client: str) -> None:  # noqa: ARG002
        self.recorder.members.add_client(client, self.recorder.now_us())

    def remove_client(self, scheduler: Any, client: str) -> None:  # noqa: ARG002
        self.record_client_left(client)
        # Also after the breaker opened: release the frames the client will not fetch.
        if self.scheduler is not None and not self.is_closed:
            self.rpc.client_left(client)

    @guarded
    def record_client_left(self, client: str) -> None:
        self.recorder.members.remove_client(client, self.recorder.now_us())

    @guarded
    def restart(self, scheduler: Any) -> None:  # noqa: ARG002
        self.recorder.rows.add("events", time_us=self.recorder.now_us(), topic="scheduler", kind="restart")

    @guarded
    def log_event(self, topic: str, msg: Any) -> None:
        self.recorder.event(topic, msg)

    @guarded_async
    async def before_close(self) -> None:
        if self.scheduler is not None:
            self.recorder.note_closing()
            await asyncio.wait_for(self.finish("closed", agents=False), CLOSE_TIMEOUT + 0.4)

    # -- ticks -----------------------------------------------------------------------------------------------------

    async def _ticks(self) -> None:
        period, flushed, handed, sampled, stated, profiled = TICK, 0.0, 0.0, 0.0, 0.0, 0.0
        settings = self.settings
        while not self.guard.is_open:
            asleep = time.monotonic()
            await asyncio.sleep(period)
            now = time.monotonic()
            lag_us = max(0, int((now - asleep - period) * 1e6))
            self.note_work()
            rest = self.rest_s
            if now - sampled >= max(settings.sample_interval, rest):
                sampled = now
                self.sample(lag_us)
            if now - stated >= max(settings.state_interval, rest):
                stated = now
                self.state()
            self.advance()
            executions = self.recorder.executions.rows()
            # A task that ends after a quiet moment is shown at once, even if a sample was handed over just before.
            if self.is_flush_due(now - (flushed if executions else handed), executions):
                handed, flushed = now, now if executions else flushed
                has_rested = now - profiled >= rest
                profiled = now if has_rested else profiled
                self.flush(profile=has_rested)
            spent = time.monotonic() - now
            tick = min(HANDOVER_S if self.is_followed else TICK, settings.flush_interval)
            period = min(2 * period, SLOWEST_TICK) if spent > TICK_BUDGET else max(tick, period / 2)
        # The breaker opened: deliver the rows collected until then.
        try:
            self.flush_rows()
        except Exception as error:  # noqa: BLE001 (the end of the task, where an exception would only be logged)
            logger.debug("daskscope: %r", error)

    @property
    def is_followed(self) -> bool:
        """Whether somebody has the live view of the cluster open."""
        return self.pace is not None and self.pace.is_followed

    def is_flush_due(self, since_s: float, executions: int) -> bool:
        """Return whether rows are handed over now: soon while somebody follows the cluster live."""
        if since_s >= self.settings.flush_interval or executions >= FULL_CHUNK:
            return True
        return self.is_followed and Pace.is_handover_due(since_s, executions)

    @property
    def rest_s(self) -> float:
        """Return the seconds between two looks at an idle cluster: one per post, because its values hardly change.

        0 if the cluster has work, somebody watches it, or its rows are also written elsewhere.
        """
        if self.pace is None or self.settings.directory or self.rpc.readers or not self.pace.is_idle:
            return 0.0
        return self.pace.interval_s

    @guarded
    def note_work(self) -> None:
        """Tell the sender whether the cluster works, which decides how often it posts."""
        if self.pace is not None and self.work.is_under_way():
            self.pace.note_work()

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
    def flush(self, *, profile: bool = True) -> None:
        self.recorder.failures.flush_ready(self.recorder.now_us())
        self.flush_rows(profile=profile)

    def flush_rows(self, *, profile: bool = True) -> None:
        """Hand all rows collected so far to the encoder thread, with the profile of the event loop unless that can wait."""
        self.flush_executions()
        if profile:
            self.flush_loop_profile()
        self.flush_other_rows()

    def flush_executions(self) -> None:
        chunk = self.recorder.rotate()
        if chunk.rows:
            aliases, scrubber = self.recorder.aliases, self.recorder.scrubber
            self.encoder.write("tasks", lambda: task_columns(chunk, scrubber, aliases), chunk.rows)
            for first in range(0, len(chunk.dependencies), EDGES_PER_BATCH):
                part = slice(first, first + EDGES_PER_BATCH)
                self.encoder.write("edges", partial(edge_columns, chunk, part), len(chunk.dependencies[part]))
            if chunk.edges_dropped:
                self.outbox.count_dropped("edges", chunk.edges_dropped)

    def flush_loop_profile(self) -> None:
        buckets = self.loop_profile.new_buckets() if self.loop_profile is not None else []
        if self.loop_profile is not None and buckets:
            # Resolving a tree may take a millisecond, so the encoder's thread does it.
            self.encoder.write("profiles", partial(self.loop_profile.columns, buckets, "scheduler"), len(buckets))

    def flush_other_rows(self) -> None:
        if self.logs is not None:
            lost = self.logs.pop_dropped()
            if lost:
                self.outbox.count_dropped("logs", lost)
            logs = self.logs.drain("scheduler")
            if logs["time_us"]:
                self.encoder.write("logs", lambda: logs, len(logs["time_us"]))
        for table, columns, rows, dropped in self.recorder.rows.drain():
            if dropped:
                self.outbox.count_dropped(table, dropped)
            self.encoder.write(table, partial(_scrubbed, self.recorder.scrubber, columns), rows)
        for table, pushed, rows, dropped in self.rpc.worker_rows.drain():
            if dropped:
                self.outbox.count_dropped(table, dropped)
            self.encoder.write(table, partial(dict, pushed), rows)


def _scrubbed(scrubber: Scrubber, columns: Callable[[], Columns]) -> Columns:
    """Return columns without secrets. All rows pass here except the table ``tasks`` and rows that agents have scrubbed."""
    return scrubber.scrub_columns(columns())


def _call_soon(loop: asyncio.AbstractEventLoop, action: Callable[[], None]) -> None:
    """Run ``action`` on the event loop, from another thread."""
    loop.call_soon_threadsafe(action)


def _set_result(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    """Set a future from another thread, unless its loop is closed."""

    def set_result() -> None:
        if not future.done():
            future.set_result(None)

    try:
        loop.call_soon_threadsafe(set_result)
    except RuntimeError:
        pass


def _do_nothing(*args: Any, **kwargs: Any) -> None:
    """No-op that replaces a hook after recording stopped."""
