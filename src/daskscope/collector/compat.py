"""Hide the differences between the supported versions of distributed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..model.libraries import is_library


def current_computation(scheduler: Any) -> Any | None:
    """Return the scheduler's current computation, or None; distributed has deprecated the class and may remove it."""
    computations = getattr(scheduler, "computations", None)
    return computations[-1] if computations else None


def results_so_far(scheduler: Any) -> int:
    """Return how many results tasks have had since the scheduler started; those that were lost and made again count again."""
    return sum(prefix.state_counts.get("memory", 0) for prefix in scheduler.task_prefixes.values())


def spans(scheduler: Any) -> Any | None:
    """Return the spans extension, or None."""
    return scheduler.extensions.get("spans")


def group_durations_us(group: Any) -> dict[str, int]:
    """Return Dask's duration counters by action, in microseconds; Dask counts integers since 2025, float seconds before."""
    exact = getattr(group, "_all_durations_us", None)
    if exact is not None:
        return {str(action): int(value) for action, value in exact.items()}
    return {str(action): round(value * 1e6) for action, value in group.all_durations.items()}


def sources(dask_computation: Any) -> Iterator[tuple[str, int, str]]:
    """Yield code, line of the call in it, and file of every snippet of a computation.

    The user's frames come first, innermost first; then frames of libraries that call Dask for their users.
    """
    found = list(_frames(dask_computation))
    yield from sorted(found, key=lambda snippet: is_library(snippet[2]))


def _frames(dask_computation: Any) -> Iterator[tuple[str, int, str]]:
    for frames in getattr(dask_computation, "code", ()):
        # Between threads of one process, older versions leave the code in its serialization wrapper.
        frames = getattr(frames, "data", frames)
        if isinstance(frames, str):
            yield frames, 0, ""
            continue
        for frame in reversed(frames):
            yield (
                str(getattr(frame, "code", frame)),
                int(getattr(frame, "lineno_relative", 0) or 0),
                str(getattr(frame, "filename", "")),
            )


def runs_again(scheduler: Any, task: Any, removal: Mapping[Any, Any]) -> bool:
    """Return whether a task of a removed worker runs again on another worker, rather than fails for good.

    Tasks that fail have failed by the time the removal is logged. Older versions, such as 2023.12, log the removal first and
    without the lost results: there, a task fails if too many of its workers have died.
    """
    if "lost-computed-tasks" not in removal and task.suspicious >= scheduler.allowed_failures:
        return False
    return bool(task.state == "processing")


def known_since(scheduler: Any, name: str, action: str) -> float:
    """Return when a current worker or client connected; 0.0 if that is not known.

    Dask keeps this time only in its event log, as ``action`` in the topic of the worker's or client's own name. A topic keeps the
    last 1,000 events (100,000 in older versions); if the first ones are gone, the oldest remaining event counts. An earlier worker
    with the same address ends at its ``remove-worker`` event.
    """
    get_events = getattr(scheduler, "get_events", None)
    oldest = 0.0
    for time, event in reversed(get_events(name) if get_events is not None else ()):
        logged = event.get("action") if type(event) is dict else None
        # Any code may log anything in any topic.
        if not isinstance(logged, str):
            logged = ""
        if logged == "remove-worker":
            break
        oldest = float(time)
        if logged == action:
            break
    return oldest


def worker_memory(worker: Any) -> dict[str, int]:
    """Return a worker's memory as columns of a sample."""
    memory = worker.memory
    return {
        "memory": memory.process,
        "managed": memory.managed,
        "unmanaged_old": memory.unmanaged_old,
        "unmanaged_recent": memory.unmanaged_recent,
        "spilled": memory.spilled,
    }
