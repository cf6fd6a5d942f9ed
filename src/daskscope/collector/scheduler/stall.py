"""Tell since when a cluster is stuck: tasks wait, threads are free, and nothing happens."""

from __future__ import annotations

from itertools import chain, islice
from statistics import median
from typing import Any

from .samples import is_fetching

#: Tasks whose usual duration is looked up.
MAX_TASKS = 1_000
#: Nothing must happen for this many times the usual duration of the waiting tasks.
PATIENCE = 10


class Stall:
    """Remembers when the scheduler was last seen to make progress."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self._executions = -1
        self._quiet_us = 0

    def since_us(self, now_us: int, executions: int) -> int:
        """Return since when nothing happens although tasks wait; 0 while that is shorter than ten of their usual durations.

        ``executions`` is the number of executions so far. Heartbeats come every half second and miss short tasks: with 60,000 tasks
        of 1 ms a worker reported none as executing for 11 s.
        """
        workers = list(self._scheduler.workers.values())
        waits = bool(self._scheduler.queued) or any(worker.processing for worker in workers)
        progressed, self._executions = executions != self._executions, executions
        if (
            not workers
            or not waits
            or any(getattr(worker, "executing", ()) or is_fetching(worker) for worker in workers)
        ):
            self._quiet_us = 0
            return 0
        if progressed or not self._quiet_us:
            self._quiet_us = now_us
            return 0
        return self._quiet_us if now_us - self._quiet_us >= PATIENCE * self._usual_us() else 0

    def _usual_us(self) -> float:
        """Return the median of the average durations that Dask knows of the waiting tasks; 0 if it knows none."""
        tasks = chain.from_iterable(worker.processing for worker in self._scheduler.workers.values())
        seconds = [task.prefix.duration_average for task in islice(tasks, MAX_TASKS)]
        known = [duration for duration in seconds if duration > 0]
        return 1e6 * median(known) if known else 0.0
