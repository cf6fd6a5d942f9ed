"""The tasks that have been running longest, from the last heartbeats of the workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from heapq import nsmallest
from itertools import islice
from typing import Any

from ..aliases import Aliases
from .interrupted import heartbeat_us, reported_tasks
from .open_computation import OpenComputation

#: Tasks listed in the cluster's row.
MAX_LISTED = 20
#: Shorter tasks are not listed: a list of them would change with every heartbeat.
MIN_AGE_S = 1.0
#: Running tasks that are compared; 10,000 take 3 ms of the event loop.
MAX_COMPARED = 10_000

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

    found = nsmallest(
        MAX_LISTED,
        islice(
            (
                (heartbeat_us(worker) - int(1e6 * seconds), number, task, worker.address)
                for number, worker in enumerate(workers)
                for task, seconds in reported_tasks(worker).items()
                if seconds >= MIN_AGE_S
            ),
            MAX_COMPARED,
        ),
        key=lambda item: item[:2],
    )
    # The start is computed from the age at each heartbeat. Without rounding, it would differ by some milliseconds each time.
    listed = [[*describe(task), address, start_us // 100_000 * 100_000] for start_us, _, task, address in found]
    return json.dumps(listed) if listed else ""
