"""The probes of a worker's agent, built from its settings and drained together.

``Probes`` owns the profiler, the transfer log, the actor calls, the chunks of coffea, the log capture, the causes of failures,
the reader of the process and, in this module, ``ActiveTasks`` (which task each thread executes) and ``ChildWatcher`` (CPU and
memory of child processes).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import dask.config
import psutil
from dask.utils import key_split, parse_timedelta
from distributed.metrics import time

from ...model.tables import STACKS
from ..aliases import PLAIN, Aliases
from ..logs import LogCapture
from ..logs import shared as shared_logs
from ..privacy import Scrubber
from ..profiles import DaskProfile, LoopProfile, dask_timing
from ..rows import Columns, empty
from .actors import ActorCalls
from .causes import CauseLog, Record, hook
from .chunks import ChunkLog
from .chunks import hook as chunk_hook
from .kernel import ProcessReader
from .sampler import MIN_INTERVAL_S, Sampler, current_frames, must_sample_from_loop, sampling_interval
from .transfers import TransferLog

Settings = Mapping[str, Any]

INTERVAL = "distributed.worker.profile.interval"
#: Transfers this long before the agent's start are recorded: a worker may fetch data before its agent starts.
TRANSFERS_BEFORE_S = 5.0
#: Stacks of one worker that answer a request.
MAX_STACKS = 500


class Probes:
    """The probes that are switched on. An error in one does not affect the others."""

    def __init__(self, worker: Any, settings: Settings, notify: Callable[[], None]) -> None:
        self.errors: dict[str, str] = {}
        #: Values of the configuration that are not used, and why.
        self.refused: list[str] = []
        self.sampler: Sampler | None = None
        self.dask_profile: DaskProfile | None = None
        self._worker = worker
        self._closed = False
        self._logs: LogCapture | None = None
        self._causes: CauseLog | None = None
        self._transfers: TransferLog | None = None
        self._children: ChildWatcher | None = None
        self._actors: ActorCalls | None = None
        self._chunks: ChunkLog | None = None
        self._loop_profile: LoopProfile | None = None
        self._process = ProcessReader()
        self._lost_before: dict[str, int] = {}
        try:
            self._open(settings, notify)
        except BaseException:
            self.close()
            raise

    def _open(self, settings: Settings, notify: Callable[[], None]) -> None:
        scrubber = self.scrubber = Scrubber.gather(os.environ, dask.config.config)
        texts = bool(settings.get("exception_text", True))
        aliases = self._aliases = Aliases(keys=bool(settings.get("keys", True)), account=settings.get("account") or "")
        if settings.get("transfers", True):
            self._transfers = TransferLog(self._worker, since=self.clock() - TRANSFERS_BEFORE_S, aliases=aliases)
        if settings.get("actors", True):
            self._actors = self._guarded("actors", lambda: ActorCalls(self._worker, clock=self.clock, aliases=aliases))
        if settings.get("chunks", True):
            files = bool(settings.get("files", False))
            self._chunks = ChunkLog(self._worker, clock=self.clock, files=files, aliases=aliases)
            chunk_hook.add(self._chunks)
        if settings.get("children", False):
            self._children = ChildWatcher()
        if settings.get("logs", True):
            self._logs = shared_logs.acquire(
                lambda: LogCapture(
                    scrubber,
                    delay=self.delay,
                    exception_text=texts,
                    aliases=aliases,
                    user_loggers=settings.get("logs") == "all",
                ),
                loop_stalls=True,
            )
        if settings.get("causes", True):
            self._causes = CauseLog(
                self._worker, scrubber, clock=self.clock, exception_text=texts, aliases=aliases, notify=notify
            )
            hook.add(self._causes)
        if settings.get("profile", True) and profiling_enabled():
            self._start_profile(settings.get("profile_floor_s"))
            self._loop_profile = LoopProfile(
                getattr(self._worker, "io_loop", None),
                "worker event loop",
                interval=dask_timing("interval", 0.010),
                cycle=dask_timing("cycle", 1.0),
            )

    def delay(self) -> float:
        """Return the scheduler's clock minus this worker's."""
        return float(getattr(self._worker, "scheduler_delay", 0.0))

    def clock(self) -> float:
        return float(time()) + self.delay()

    def tables(self, *, whole: bool) -> dict[str, Columns]:
        """Return new rows by table. Slow, so call it off the event loop."""
        worker = self._worker.address
        drains: dict[str, Callable[[], Columns]] = {
            "profiles": lambda: self._drain_profile(worker, whole=whole),
            "processes": lambda: self._read_process(worker, whole=whole),
        }
        if self._transfers is not None:
            drains["transfers"] = partial(self._transfers.drain, worker)
        if self._actors is not None:
            drains["actor_calls"] = partial(self._actors.drain, worker)
        if self._chunks is not None:
            drains["chunks"] = partial(self._chunks.drain, worker)
        if self._logs is not None:
            drains["logs"] = partial(self._logs.drain, worker)
        found = {}
        for table, drain in drains.items():
            columns = self._guarded(table, drain)
            if columns and any(columns.values()):
                found[table] = columns
        self._add_loop_profile(found, worker)
        return found

    def _add_loop_profile(self, found: dict[str, Columns], worker: str) -> None:
        profile = self._loop_profile
        if profile is None:
            return
        rows = self._guarded("event loop", lambda: profile.columns(profile.new_buckets(), worker, self.delay()))
        if rows and rows["count"]:
            known = found.get("profiles", {})
            found["profiles"] = {name: [*known.get(name, ()), *values] for name, values in rows.items()}

    def _read_process(self, worker: str, *, whole: bool) -> Columns:
        read = self._process.read(whole=whole)
        row = {} if read is None else {"time_us": round(self.clock() * 1e6), "worker": worker, **read}
        return {name: [value] for name, value in row.items()}

    def stacks_now(self, request: int) -> Columns | None:
        """Return the rows of ``stacks`` for the tasks that run now; None without profiles. Call it on the event loop."""
        if self.sampler is None:
            return None
        worker, now_us, tasks = self._worker, round(self.clock() * 1e6), self._worker.state.tasks
        columns = empty(STACKS)
        for thread, prefix, key, stack in self.sampler.stacks_now()[:MAX_STACKS]:
            began = getattr(tasks.get(key), "start_time", None)
            row = {
                "time_us": now_us,
                "request": request,
                "worker": worker.address,
                "key": self._aliases.key(key),
                "prefix": prefix,
                "thread": thread,
                "start_us": round((began + self.delay()) * 1e6) if began else 0,
                "stack": stack,
                "note": "",
            }
            for name, values in columns.items():
                values.append(row[name])
        return columns

    def causes(self) -> list[Record]:
        return self._causes.drain() if self._causes is not None else []

    def children(self) -> dict[str, float] | None:
        """Return the ``children`` columns of a sample with its time; None unless child processes are watched."""
        if self._children is None:
            return None
        sample = self._guarded("children", self._children.sample)
        return None if sample is None else {"time_us": round(self.clock() * 1e6), **sample}

    def losses(self) -> dict[str, int]:
        """Return the rows lost since the last call, by table."""
        parts = {
            "profiles": self.sampler,
            "transfers": self._transfers,
            "actor_calls": self._actors,
            "chunks": self._chunks,
        }
        totals = {table: part.dropped for table, part in parts.items() if part is not None}
        if self._loop_profile is not None:
            totals["profiles"] = totals.get("profiles", 0) + self._loop_profile.dropped
        lost = {table: total - self._lost_before.get(table, 0) for table, total in totals.items()}
        self._lost_before = totals
        if self._logs is not None:
            lost["logs"] = self._logs.pop_dropped()
        return {table: rows for table, rows in lost.items() if rows}

    @property
    def causes_lost(self) -> int:
        return self._causes.dropped if self._causes is not None else 0

    def quality(self) -> dict[str, Any]:
        """Return the quality of the data: the source of profiles, its rate and cost, and errors by probe."""
        quality: dict[str, Any] = {"profile": self.profile_source, "errors": dict(self.errors)}
        if self.refused:
            quality["refused"] = list(self.refused)
        if self.sampler is not None:
            quality["sampler"] = {
                "interval_s": self.sampler.interval,
                "ticks": self.sampler.ticks,
                "samples": self.sampler.samples,
                "cpu_s": self.sampler.cpu_s,
            }
        return quality

    @property
    def profile_source(self) -> str:
        if self.dask_profile is not None:
            return "dask"
        return "daskscope" if self.sampler is not None else "off"

    def close(self) -> None:
        """Stop and remove all probes."""
        if self._closed:
            return
        self._closed = True
        if self.sampler is not None:
            self.sampler.stop(timeout=0)
        if self._actors is not None:
            self._actors.close()
        if self._loop_profile is not None:
            self._loop_profile.close()
        if self._logs is not None:
            shared_logs.release()
        if self._causes is not None:
            hook.remove(self._causes)
        if self._chunks is not None:
            chunk_hook.remove(self._chunks)

    def _start_profile(self, floor: Any) -> None:
        asked = self._interval(INTERVAL, dask.config.get(INTERVAL, None), "ms")
        floor = self._interval("daskscope.analytics.profile.floor", floor, "s")
        cycle = dask_timing("cycle", 1.0)
        if current_frames() is None:
            self.dask_profile = DaskProfile(self._worker, interval=asked, cycle=cycle, aliases=self._aliases)
            return
        interval = sampling_interval(asked, floor)
        loop = asyncio.get_running_loop() if must_sample_from_loop(sys.version_info[:2]) else None
        self.sampler = Sampler(
            ActiveTasks(self._worker, self._aliases), interval=interval, cycle=cycle, clock=self.clock, loop=loop
        )
        self.sampler.start()

    def _interval(self, name: str, value: Any, unit: str) -> float:
        """Return a configured interval in seconds; the shortest if it is not set, or refused."""
        try:
            seconds = float(parse_timedelta(value, default=unit)) if value else MIN_INTERVAL_S
        except (ValueError, KeyError, TypeError):
            self.refused.append(f"{name} is {str(value)[:50]!r}, which is not a duration")
            return MIN_INTERVAL_S
        # A duration such as 10ms is parsed with a rounding error.
        if not seconds > MIN_INTERVAL_S - 1e-9:
            self.refused.append(f"{name} is {str(value)[:50]}, shorter than {1000 * MIN_INTERVAL_S:.0f} ms")
        return seconds if seconds > MIN_INTERVAL_S else MIN_INTERVAL_S

    def _drain_profile(self, worker: str, *, whole: bool) -> Columns:
        if self.sampler is not None and self.sampler.error and self.dask_profile is None:
            self.errors["profiles"] = self.sampler.error
            self.dask_profile = DaskProfile(
                self._worker,
                interval=dask_timing("interval", 0.010),
                cycle=dask_timing("cycle", 1.0),
                aliases=self._aliases,
            )
            return self.sampler.drain(worker, self.clock(), whole=True)
        if self.dask_profile is not None:
            return self.dask_profile.drain(worker)
        return {} if self.sampler is None else self.sampler.drain(worker, self.clock(), whole=whole)

    def _guarded(self, part: str, drain: Callable[[], Any]) -> Any:
        try:
            return drain()
        except Exception as error:  # noqa: BLE001 - one failing probe must not affect the others
            self.errors[part] = f"{type(error).__name__}: {error}"[:200]
            return None


class ActiveTasks:
    """Returns the (prefix, span, key) of the task that each thread of a worker executes."""

    def __init__(self, worker: Any, aliases: Aliases = PLAIN) -> None:
        self._worker = worker
        self._aliases = aliases

    def __call__(self) -> dict[int, tuple[str, str, Any]]:
        # Copying a dict is atomic in the interpreter, so the worker's lock is not needed; its threads would wait for it.
        running = self._worker.active_threads.copy()
        return {ident: (self._prefix(key), self._span(key), key) for ident, key in running.items()} if running else {}

    def _prefix(self, key: Any) -> str:
        if self._aliases.keys:
            return str(key_split(key))
        # While a method of an actor runs, Dask has the actor's prefix and the method here instead of a key.
        actor, _, method = str(key).rpartition(".")
        if actor and key not in self._worker.state.tasks:
            for other in self._worker.state.actors.copy():
                self._aliases.note(other)
            return f"{self._aliases.group(actor)}.{method}"
        return self._aliases.key_prefix(key)

    def _span(self, key: Any) -> str:
        task = self._worker.state.tasks.get(key)
        return getattr(task, "span_id", None) or ""


def profiling_enabled() -> bool:
    return bool(dask.config.get("distributed.worker.profile.enabled", True))


class ChildWatcher:
    """Measures child processes. It reads /proc for each of them, so call it off the event loop."""

    def __init__(self, pid: int | None = None) -> None:
        self._parent: Any = psutil.Process(pid)
        # psutil returns the CPU usage since the previous call on the same object, so keep the objects.
        self._known: dict[tuple[int, float], Any] = {}

    def sample(self) -> dict[str, float]:
        """Return the ``children`` columns of a sample; a child's CPU usage is included from its second sample on."""
        self._refresh()
        count, cpu, memory = 0, 0.0, 0
        for child in self._known.values():
            try:
                with child.oneshot():
                    usage, rss = child.cpu_percent(None), child.memory_info().rss
            except psutil.Error:  # ended, a zombie, or no longer accessible
                continue
            count, cpu, memory = count + 1, cpu + usage, memory + rss
        return {"children": count, "children_cpu_percent": cpu, "children_memory": memory}

    def _refresh(self) -> None:
        try:
            found = self._parent.children(recursive=True)
        except psutil.Error:
            found = []
        present = {identity: child for child in found if (identity := _identity(child)) is not None}
        self._known = {identity: self._known.get(identity, child) for identity, child in present.items()}


def _identity(child: Any) -> tuple[int, float] | None:
    """Return process ID and start time: the ID alone may be reused."""
    try:
        return child.pid, child.create_time()
    except psutil.Error:
        return None
