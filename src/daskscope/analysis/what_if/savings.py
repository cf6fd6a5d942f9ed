"""How much wall time a change saves, by replaying the longest computation with and without it.

A change takes a recorded computation and returns it changed. Rules use the changes below to bound what following their advice
could save: the time of a task that nothing waited for is not saved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from daskscope.analysis.time.waiting import REASONS, waiting_shares
from daskscope.analysis.what_if.from_recording import (
    MAX_DEVIATION,
    CannotReplay,
    Replayable,
    balancing,
    recorded_graph,
    with_us,
    without_disk,
)
from daskscope.analysis.what_if.graph import Overheads
from daskscope.analysis.what_if.locks import with_locks, without_locks
from daskscope.analysis.what_if.replay import replay
from daskscope.model.recording import Array, Recording

Change: TypeAlias = Callable[[Replayable], Replayable]

#: A replay takes 5 to 24 µs a task (200 workers on a busy machine), and a document may need eight of them: 1 s with the most tasks.
MAX_TASKS = 5_000
#: Work of balancing (``balancing``) that takes 0.1 s.
MAX_BALANCING = 500_000


@dataclass(frozen=True)
class LongestReplay:
    """The longest computation of a run, and the wall time of its replay."""

    recorded: Replayable
    replayed_us: float

    def saving_us(self, change: Change, run_us: int) -> tuple[int, int]:
        """Return the wall time that a change saves at least and at most.

        The difference between the replay and the run may be a part of the saving, or not. So may be the time before and after the
        computation, which the replay does not cover.
        """
        changed = change(self.recorded)
        saved_us = self.replayed_us - replay(changed.graph, changed.setup, changed.overheads).wall_us
        wall_us = self.recorded.wall_us - self.recorded.before_us
        outside_us = max(0, run_us - wall_us)
        unsure_us = abs(self.replayed_us - wall_us)
        return round(max(saved_us - unsure_us, 0.0)), round(max(saved_us, 0.0) + unsure_us + outside_us)


def baseline(recording: Recording) -> LongestReplay | None:
    """Replay the longest computation; None if it is too large, can't be replayed, or the replay differs from the run."""
    if recording["tasks"].rows > MAX_TASKS:
        return None
    try:
        recorded = with_locks(recorded_graph(recording))
    except CannotReplay:
        return None
    if balancing(recorded, recorded.workers) > MAX_BALANCING:
        return None
    replayed_us = replay(recorded.graph, recorded.setup, recorded.overheads).wall_us
    wall_us = recorded.wall_us - recorded.before_us
    return LongestReplay(recorded, replayed_us) if abs(replayed_us - wall_us) <= MAX_DEVIATION * wall_us else None


def without_transfers(recorded: Replayable) -> Replayable:
    return replace(recorded, setup=replace(recorded.setup, has_transfers=False))


def without_spilling(recorded: Replayable) -> Replayable:
    return without_disk(recorded)


def without_overheads(recorded: Replayable) -> Replayable:
    """Return the computation as if Dask needed no time for a task."""
    kept = Overheads(bandwidth=recorded.overheads.bandwidth, transfer_us=recorded.overheads.transfer_us)
    return replace(recorded, overheads=kept)


def without_waiting(recording: Recording, reason: str) -> Change | None:
    """Return the change to tasks that never wait for a reason; None if the time would only be spent otherwise.

    What a thread of a library computes, the task has to compute itself.
    """
    if reason in ("native", "unknown"):
        return None

    def change(recorded: Replayable) -> Replayable:
        # What tasks of this run took from each other is not part of their own time: the replay adds it.
        if reason == "gil":
            groups = [replace(group, gil_share=0.0) for group in recorded.graph.groups]
            return replace(recorded, graph=replace(recorded.graph, groups=groups))
        if reason == "lock" and recorded.lock_wait_us:
            return without_locks(recorded)
        if reason == "core" and recorded.shares_cores:
            return replace(recorded, setup=replace(recorded.setup, cores=math.inf))
        shares = waiting_shares(recording, recording["tasks"].strings("prefix"))[:, REASONS.index(reason)]
        return with_us(recorded, np.array(recorded.graph.us) * (1.0 - shares[recorded.prefix]))

    return change


def with_shorter(prefix: str, share: float) -> Change:
    """Return the change to executions of a prefix that take this share of their time less."""

    def change(recorded: Replayable) -> Replayable:
        mine = recorded.prefix == (recorded.prefixes.index(prefix) if prefix in recorded.prefixes else -1)
        return with_us(recorded, np.array(recorded.graph.us) * np.where(mine, 1.0 - share, 1.0))

    return change


def with_durations(rows: Array, us: Array) -> Change:
    """Return the change to other durations of the given executions, by their rows in ``tasks``; no duration grows."""

    def change(recorded: Replayable) -> Replayable:
        place = {row: number for number, row in enumerate(recorded.rows.tolist())}
        durations = np.array(recorded.graph.us)
        for row, value in zip(rows.tolist(), us.tolist(), strict=True):
            if (number := place.get(row)) is not None:
                durations[number] = min(durations[number], value)
        return with_us(recorded, durations)

    return change
