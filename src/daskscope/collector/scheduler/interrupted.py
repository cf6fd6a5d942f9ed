"""Executions that a worker never reports, because it died or because the task was cancelled.

The scheduler knows which tasks are assigned to a worker. Which of them were executing, and since when, follows from the worker's
last heartbeat, its number of threads and the priorities of the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from ..compat import runs_again
from .members import Member

#: Executions written when a worker is lost (3 µs each); it rarely has more than a few times its threads.
MAX_LOST_PER_WORKER = 1_000


class Interrupted:
    """Records interrupted executions; ``record`` takes key, task, message, status and start in microseconds."""

    def __init__(self, scheduler: Any, record: Callable[[Any, Any, Mapping[str, Any], str, int], None]) -> None:
        self.scheduler = scheduler
        self.record = record
        #: Worker, key and task of executions that failed for good with their worker, until its removal is logged.
        self.died: list[tuple[str, Any, Any]] = []
        #: The last request that cancelled tasks, and the tasks that were executing then.
        self._cancelling = ""
        self._executing: dict[Any, tuple[str, int]] = {}

    def worker_removed(self, message: Mapping[Any, Any], members: Mapping[str, Member]) -> list[Any]:
        """Record what a removed worker was executing; return the tasks that were assigned to it."""
        keys, worker = message.get("processing-tasks"), message.get("worker")
        if not isinstance(keys, (set, frozenset, list, tuple, dict)) or not isinstance(worker, str):
            return []
        get = self.scheduler.tasks.get
        tasks = {key: task for key in islice(keys, MAX_LOST_PER_WORKER) if (task := get(key)) is not None}
        failed = {key for address, key, _ in self.died if address == worker}
        member = members.get(worker)
        for key, start_us in executing_at_end(member.state if member else None, tasks.values()).items():
            if key in failed:
                self.record(key, tasks[key], {"worker": worker}, "error", start_us)
            elif runs_again(self.scheduler, tasks[key], message):
                self.record(key, tasks[key], {"worker": worker}, "killed", start_us)
        self.died = [item for item in self.died if item[0] != worker]
        return list(tasks.values())

    def flush_died(self) -> None:
        """Record failed executions whose worker's removal was logged before they failed, as older versions of Dask do."""
        died, self.died = self.died, []
        for worker, key, task in died:
            self.record(key, task, {"worker": worker}, "error", 0)

    def cancelled(self, key: Any, task: Any, stimulus: str) -> None:
        """Record the execution of a cancelled task, if the last heartbeat of a worker reported it."""
        if stimulus != self._cancelling:
            # One request may cancel thousands of tasks: find those that were executing once.
            self._cancelling, self._executing = stimulus, executing_now(self.scheduler.workers)
        worker, start_us = self._executing.pop(key, ("", 0))
        if worker:
            self.record(key, task, {"worker": worker}, "cancelled", start_us)


def executing_at_end(worker: Any, tasks: Iterable[Any]) -> dict[Any, int]:
    """Return which of its assigned ``tasks`` a removed worker was executing, with the start of each in microseconds.

    Tasks in the last heartbeat are certain. The other threads had begun the tasks of highest priority since then.
    """
    seen_us = heartbeat_us(worker)
    reported = reported_tasks(worker)
    started = {task: seen_us - int(1e6 * reported[task]) for task in tasks if task in reported}
    free = max(0, int(getattr(worker, "nthreads", 0)) - len(started))
    others = sorted((task for task in tasks if task not in started), key=_priority)
    started.update((task, seen_us) for task in others[:free])
    return {task.key: start for task, start in started.items()}


def executing_now(workers: Mapping[str, Any]) -> dict[Any, tuple[str, int]]:
    """Return the tasks in the last heartbeats of all workers, with worker and start in microseconds."""
    return {
        task.key: (address, heartbeat_us(worker) - int(1e6 * seconds))
        for address, worker in workers.items()
        for task, seconds in reported_tasks(worker).items()
    }


def reported_tasks(worker: Any) -> Mapping[Any, float]:
    """Return the tasks in the last heartbeat of a worker, with their ages in seconds."""
    executing = getattr(worker, "executing", None)
    return executing if isinstance(executing, dict) else {}


def heartbeat_us(worker: Any) -> int:
    """Return when a worker sent its last heartbeat."""
    return int(1e6 * float(getattr(worker, "last_seen", 0.0) or 0.0))


def _priority(task: Any) -> tuple[Any, ...]:
    return tuple(getattr(task, "priority", None) or ())
