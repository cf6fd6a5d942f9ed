"""Locks in a replay: tasks that hold one run one after the other, however many workers there are.

A recording says how long tasks waited for locks, but not how long they held them. The replay of the recorded cluster tells: the
longer tasks hold a lock, the longer others wait for it.
"""

from __future__ import annotations

from dataclasses import replace

from daskscope import units
from daskscope.analysis.what_if.from_recording import CannotReplay, Replayable
from daskscope.analysis.what_if.replay import replay

#: Replays that look for the time with the lock: the last one changes it by 0.4 %.
STEPS = 8
#: A replay takes 5 to 24 µs a task.
MAX_TASKS = 20_000
#: The part of the recorded waiting time that a lock must explain. What is left was another kind of wait, such as for an event.
MIN_EXPLAINED = 0.7


def with_locks(recorded: Replayable) -> Replayable:
    """Return the computation with tasks that hold the lock as long as others waited for it; itself if none waited."""
    if not recorded.lock_wait_us:
        return recorded
    if len(recorded.graph.us) > MAX_TASKS:
        raise CannotReplay(
            f"Its tasks waited for locks, and a replay follows them for up to {units.counted(MAX_TASKS, 'task')} only."
        )
    low, high = 0.0, 1.0
    most_us = _waited_us(_with_share(recorded, high))
    if most_us < MIN_EXPLAINED * recorded.lock_wait_us:
        raise CannotReplay(
            f"Its tasks waited {units.duration(recorded.lock_wait_us)} for locks, and only "
            f"{units.duration(most_us)} of that if they held one all the time, so that a prediction would not be reliable."
        )
    for _ in range(STEPS):
        share = (low + high) / 2
        if _waited_us(_with_share(recorded, share)) < recorded.lock_wait_us:
            low = share
        else:
            high = share
    return _with_share(recorded, (low + high) / 2)


def without_locks(recorded: Replayable) -> Replayable:
    return _with_share(recorded, 0.0)


def _with_share(recorded: Replayable, share: float) -> Replayable:
    """Return the computation with tasks that hold the lock for a share of their time, if they ever waited for it."""
    groups = [
        replace(group, lock_share=share if is_locked else 0.0)
        for group, is_locked in zip(recorded.graph.groups, recorded.has_lock, strict=True)
    ]
    return replace(recorded, graph=replace(recorded.graph, groups=groups))


def _waited_us(recorded: Replayable) -> float:
    return replay(recorded.graph, recorded.setup, recorded.overheads).locked_us
