"""Everything that differs between the versions of distributed we support, in one place."""

from __future__ import annotations

from collections.abc import Iterator
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
