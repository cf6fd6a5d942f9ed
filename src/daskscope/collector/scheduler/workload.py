"""What the scheduler has to do: tasks that run, tasks that are left, and how long nothing has finished."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from heapq import nsmallest
from itertools import chain, islice
from statistics import median
from typing import Any

from ..aliases import Aliases
from .failures import heartbeat_us, reported_tasks
from .open_computation import OpenComputation
from .samples import is_fetching


class Work:
    """Looks at the scheduler's tasks. ``total`` returns how many executions have ended so far."""

    def __init__(self, scheduler: Any, total: Callable[[], int]) -> None:
        self._scheduler = scheduler
        self._total = total
        self._seen = total()

    def is_under_way(self) -> bool:
        """Return whether tasks run or wait, or an execution ended since the last call. 500 idle workers take 20 µs."""
        seen, self._seen = self._seen, self._total()
        if seen != self._seen or getattr(self._scheduler, "queued", None) or self._scheduler.unrunnable:
            return True
        return any(worker.processing for worker in self._scheduler.workers.values())


#: Tasks listed in the cluster's row.
MAX_LISTED = 20
#: Shorter tasks are not listed: a list of them would change with every heartbeat.
MIN_AGE_S = 1.0

#: Characters of a key.
MAX_KEY = 500


def longest_running(
    workers: Iterable[Any], find_computation: Callable[[Any], OpenComputation | None], aliases: Aliases
) -> str:
    """Return the tasks that have been running longest as JSON; empty if there are none."""

    def describe(task: Any) -> tuple[str, str, str]:
        group = task.group
        key = str(task.key) if aliases.keys else aliases.group(group.name)
        computation = find_computation(group)
        return key[:MAX_KEY], aliases.group(group.prefix.name), "" if computation is None else computation.id

    # The oldest tasks are on the workers with the oldest tasks. Comparing workers first takes 1 ms with 1,000 of them, where
    # comparing 4,000 tasks takes 8 ms of the event loop.
    oldest = [
        (heartbeat_us(worker) - int(1e6 * max(tasks.values())), worker)
        for worker in workers
        if (tasks := reported_tasks(worker))
    ]
    chosen = [worker for _, worker in nsmallest(MAX_LISTED, oldest, key=lambda item: item[0])]
    found = nsmallest(
        MAX_LISTED,
        (
            (heartbeat_us(worker) - int(1e6 * seconds), task, worker.address)
            for worker in chosen
            for task, seconds in reported_tasks(worker).items()
            if seconds >= MIN_AGE_S
        ),
        key=lambda item: item[0],
    )
    # The start is computed from the age at each heartbeat. Without rounding, it would differ by some milliseconds each time.
    listed = [[*describe(task), address, start_us // 100_000 * 100_000] for start_us, task, address in found]
    return json.dumps(listed) if listed else ""


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
