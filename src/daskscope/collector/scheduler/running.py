"""The tasks that have been running longest, from the last heartbeats of the workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from heapq import nsmallest
from typing import Any

from ..aliases import Aliases
from .interrupted import heartbeat_us, reported_tasks
from .open_computation import OpenComputation

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
