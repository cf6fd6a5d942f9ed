"""Everything the agent of one worker watches, built from its settings and drained together."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import dask.config
from dask.utils import key_split, parse_timedelta
from distributed.metrics import time

from .causes import CauseLog, Record, hook
from .children import ChildWatcher
from .columns import Columns
from .currentframes import current_frames
from .daskprofile import DaskProfile
from .logcapture import LogCapture
from .logcapture import shared as shared_logs
from .privacy import Scrubber
from .sampler import DEFAULT_FLOOR_S, Sampler, looks_from_loop, sampling_interval
from .transferlog import TransferLog

Settings = Mapping[str, Any]

#: A worker may have fetched data before we got to it; what is older belongs to no recording of ours.
TRANSFERS_BEFORE_S = 5.0


class Probes:
    """The parts that are switched on. Draining one never fails because of another."""

    def __init__(self, worker: Any, settings: Settings, notify: Callable[[], None]) -> None:
        self.errors: dict[str, str] = {}
        self.sampler: Sampler | None = None
        self.dask_profile: DaskProfile | None = None
        self._worker = worker
        self._closed = False
        self._logs: LogCapture | None = None
        self._causes: CauseLog | None = None
        self._transfers: TransferLog | None = None
        self._children: ChildWatcher | None = None
        self._lost_before: dict[str, int] = {}
        try:
            self._open(settings, notify)
        except BaseException:
            self.close()
            raise

    def _open(self, settings: Settings, notify: Callable[[], None]) -> None:
        scrubber = Scrubber.gather(os.environ, dask.config.config)
        texts = bool(settings.get("exception_text", True))
        if settings.get("transfers", True):
            self._transfers = TransferLog(self._worker, since=self.clock() - TRANSFERS_BEFORE_S)
        if settings.get("children", False):
            self._children = ChildWatcher()
        if settings.get("logs", True):
            self._logs = shared_logs.acquire(
                lambda: LogCapture(
                    scrubber, delay=self.delay, exception_text=texts, keys=bool(settings.get("keys", True))
                )
            )
        if settings.get("causes", True):
            self._causes = CauseLog(self._worker, scrubber, clock=self.clock, exception_text=texts, notify=notify)
            hook.listen(self._causes)
        if settings.get("profile", True) and profiling_enabled():
            self._start_profile(float(settings.get("profile_floor_s") or DEFAULT_FLOOR_S))

    def delay(self) -> float:
        """The scheduler's clock minus ours."""
        return float(getattr(self._worker, "scheduler_delay", 0.0))

    def clock(self) -> float:
        return float(time()) + self.delay()

    def tables(self, *, whole: bool) -> dict[str, Columns]:
        """New rows by table. Not cheap: call it off the event loop."""
        worker = self._worker.address
        drains: dict[str, Callable[[], Columns]] = {"profiles": lambda: self._drain_profile(worker, whole=whole)}
        if self._transfers is not None:
            drains["transfers"] = partial(self._transfers.drain, worker)
        if self._logs is not None:
            drains["logs"] = partial(self._logs.drain, worker)
        found = {}
        for table, drain in drains.items():
            columns = self._guarded(table, drain)
            if columns and any(columns.values()):
                found[table] = columns
        return found

    def causes(self) -> list[Record]:
        return self._causes.drain() if self._causes is not None else []

    def children(self) -> dict[str, float] | None:
        """The children columns of a sample with its time; None unless children are watched."""
        if self._children is None:
            return None
        sample = self._guarded("children", self._children.sample)
        return None if sample is None else {"time_us": round(self.clock() * 1e6), **sample}

    def losses(self) -> dict[str, int]:
        """Rows lost since the last call, by table."""
        parts = {"profiles": self.sampler, "transfers": self._transfers}
        totals = {table: part.dropped for table, part in parts.items() if part is not None}
        news = {table: total - self._lost_before.get(table, 0) for table, total in totals.items()}
        self._lost_before = totals
        if self._logs is not None:
            news["logs"] = self._logs.take_dropped()
        return {table: rows for table, rows in news.items() if rows}

    @property
    def causes_lost(self) -> int:
        return self._causes.dropped if self._causes is not None else 0

    def quality(self) -> dict[str, Any]:
        """How good the data is: what profiles, at what rate, at what cost."""
        quality: dict[str, Any] = {"profile": self.profile_source, "errors": dict(self.errors)}
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
        """Take everything out of the process again."""
        if self._closed:
            return
        self._closed = True
        if self.sampler is not None:
            self.sampler.stop(timeout=0)
        if self._logs is not None:
            shared_logs.release()
        if self._causes is not None:
            hook.forget(self._causes)

    def _start_profile(self, floor: float) -> None:
        asked, cycle = dask_timing("interval", 0.010), dask_timing("cycle", 1.0)
        if current_frames() is None:
            self.dask_profile = DaskProfile(self._worker, interval=asked, cycle=cycle)
            return
        interval = sampling_interval(asked, floor)
        loop = asyncio.get_running_loop() if looks_from_loop(sys.version_info[:2]) else None
        self.sampler = Sampler(ActiveTasks(self._worker), interval=interval, cycle=cycle, clock=self.clock, loop=loop)
        self.sampler.start()

    def _drain_profile(self, worker: str, *, whole: bool) -> Columns:
        if self.sampler is not None and self.sampler.error and self.dask_profile is None:
            self.errors["profiles"] = self.sampler.error
            self.dask_profile = DaskProfile(
                self._worker, interval=dask_timing("interval", 0.010), cycle=dask_timing("cycle", 1.0)
            )
            return self.sampler.drain(worker, self.clock(), whole=True)
        if self.dask_profile is not None:
            return self.dask_profile.drain(worker)
        return {} if self.sampler is None else self.sampler.drain(worker, self.clock(), whole=whole)

    def _guarded(self, part: str, drain: Callable[[], Any]) -> Any:
        try:
            return drain()
        except Exception as error:  # noqa: BLE001 - one part that fails must not silence the others
            self.errors[part] = f"{type(error).__name__}: {error}"[:200]
            return None


class ActiveTasks:
    """Which task each thread of a worker executes, as (prefix, span)."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker

    def __call__(self) -> dict[int, tuple[str, str]]:
        # Copying a dict is one step for the interpreter; the worker's lock would only make its threads wait for us.
        running = self._worker.active_threads.copy()
        return {ident: (key_split(key), self._span(key)) for ident, key in running.items()} if running else {}

    def _span(self, key: Any) -> str:
        task = self._worker.state.tasks.get(key)
        return getattr(task, "span_id", None) or ""


def profiling_enabled() -> bool:
    return bool(dask.config.get("distributed.worker.profile.enabled", True))


def dask_timing(name: str, default: float) -> float:
    """A duration of Dask's profiler in seconds; plain numbers are milliseconds there."""
    value = dask.config.get(f"distributed.worker.profile.{name}", None)
    try:
        return float(parse_timedelta(value, default="ms")) if value else default
    except (ValueError, KeyError, TypeError):
        return default
