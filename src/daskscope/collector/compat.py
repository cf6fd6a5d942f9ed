"""Everything that differs between the versions of distributed we support, in one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def current_computation(scheduler: Any) -> Any | None:
    """The scheduler's running computation; the class is deprecated upstream and may go one day."""
    computations = getattr(scheduler, "computations", None)
    return computations[-1] if computations else None


def spans(scheduler: Any) -> Any | None:
    """The spans extension."""
    return scheduler.extensions.get("spans")


def group_durations_us(group: Any) -> dict[str, int]:
    """Dask's own duration counters; integers since 2025, float seconds before."""
    exact = getattr(group, "_all_durations_us", None)
    if exact is not None:
        return {str(action): int(value) for action, value in exact.items()}
    return {str(action): round(value * 1e6) for action, value in group.all_durations.items()}


def sources(computation: Any) -> Iterator[tuple[str, int, str]]:
    """Code, line of the call inside it, and file of every snippet a computation has; the innermost frame first."""
    for frames in getattr(computation, "code", ()):
        # Between threads of one process older versions hand the code over in the envelope meant for a socket.
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
    """Whether a task its worker was processing runs elsewhere now that the worker is gone, and does not fail for good.

    Those that fail have done so when the removal is logged. Older versions (2023.12 does) log it first, and do not say yet what
    was lost: there a task fails that has been on too many dying workers already.
    """
    if "lost-computed-tasks" not in removal and task.suspicious >= scheduler.allowed_failures:
        return False
    return bool(task.state == "processing")


def known_since(scheduler: Any, name: str, action: str) -> float:
    """When the scheduler got to know a worker or a client that is there now; 0.0 where it cannot be told.

    Dask keeps no such time but in its log of events: ``action`` among those under the worker's or client's own name. A log keeps
    the last 1,000 events of a name (100,000 in older versions): where the first are gone, it was there by the oldest that is left.
    An address that somebody else had before is told apart by when that one left.
    """
    get_events = getattr(scheduler, "get_events", None)
    oldest = 0.0
    for time, event in reversed(get_events(name) if get_events is not None else ()):
        said = event.get("action") if type(event) is dict else None
        # Anybody may log anything under any name.
        if not isinstance(said, str):
            said = ""
        if said == "remove-worker":
            break
        oldest = float(time)
        if said == action:
            break
    return oldest


def worker_memory(worker: Any) -> dict[str, int]:
    """The measures of a worker's memory."""
    memory = worker.memory
    return {
        "memory": memory.process,
        "managed": memory.managed,
        "unmanaged_old": memory.unmanaged_old,
        "unmanaged_recent": memory.unmanaged_recent,
        "spilled": memory.spilled,
    }
