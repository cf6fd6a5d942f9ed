"""Shared code of the rules about adaptive scaling: how many workers it wanted, and how many there were."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.grouping import where
from daskscope.analysis.intervals import merge
from daskscope.analysis.limits import parse_object
from daskscope.insights.facts import MIN_SHARE, MIN_US, Facts
from daskscope.model.table import Array

#: Workers that left and were replaced this often flap.
MIN_REPLACED = 3
#: A worker that scaling gave back after a longer life was worth its start.
MAX_LIFE_US = 300_000_000
#: A worker that joins later does not replace one that left.
MAX_GAP_US = 300_000_000
#: Higher numbers of wanted workers are invalid, and would overflow.
MAX_WORKERS = 1_000_000
#: Verdicts of workers that scaling gave back.
GIVEN_BACK = ("retired", "closed")


@dataclass(frozen=True)
class Scaling:
    """Stretches of time with a constant number of workers wanted and there."""

    start_us: Array
    us: Array
    wanted: Array
    there: Array

    @property
    def peak(self) -> int:
        return int(self.there.max(initial=0))

    @property
    def late(self) -> Array:
        """The workers that were wanted, were there at another time, and were missing."""
        result: Array = np.maximum(np.minimum(self.wanted, self.peak) - self.there, 0)
        return result

    @property
    def late_us(self) -> int:
        """Wall time in which such workers were missing."""
        return int(self.us[self.late > 0].sum())

    @property
    def saved_us(self) -> int:
        """Wall time that these workers would have saved: their time, spread over all workers."""
        return int((self.late * self.us).sum()) // max(self.peak, 1)


def wanted_workers(facts: Facts) -> list[tuple[int, int]]:
    """Return when adaptive scaling asked for how many workers."""
    events = facts.recording["events"]
    rows = np.flatnonzero(where(events.strings("kind"), "wanted-workers"))
    found = []
    for time_us, detail in zip(events["time_us"][rows].tolist(), events["detail"][rows].tolist(), strict=True):
        wanted = parse_object(detail).get("wanted")
        if type(wanted) is int:
            found.append((time_us, min(max(wanted, 0), MAX_WORKERS)))
    return found


def scaling_of(facts: Facts) -> Scaling | None:
    """Return wanted and present workers over time; None if nothing scaled the cluster."""
    wanted = sorted(wanted_workers(facts))
    if not wanted or not facts.workers:
        return None
    asked = np.array([time for time, _ in wanted])
    joined = np.sort(np.array([worker.start_us for worker in facts.workers]))
    left = np.sort(np.array([worker.end_us for worker in facts.workers if worker.end_us], dtype=np.int64))
    times = np.unique(np.clip(np.concatenate((asked, joined, left)), facts.start_us, facts.stop_us))
    there = np.searchsorted(joined, times, side="right") - np.searchsorted(left, times, side="right")
    latest = np.searchsorted(asked, times, side="right")
    counts = np.array([0, *(count for _, count in wanted)])
    return Scaling(times, np.diff(times, append=facts.stop_us), counts[latest], there)


def needed_us(facts: Facts, scaling: Scaling) -> int:
    """Return the wall time that all workers of the peak would have saved while tasks waited, spread over all of them.

    Scaling that has just given workers back asks for none for some seconds, so that what it wanted is not enough.
    """
    tasks = facts.recording["tasks"]
    queued, assigned, start = tasks["queued_us"], tasks["assigned_us"], tasks["start_us"]
    begins, ends = merge(np.where(queued > 0, queued, np.where(assigned > 0, assigned, start)), start)
    before = np.concatenate(([0], np.cumsum(ends - begins)))

    def waited_until(times: Array) -> Array:
        """Return for how long tasks waited before each time."""
        place = np.searchsorted(begins, times, side="right")
        over = np.maximum(np.append(ends, 0)[place - 1] - times, 0)
        return np.where(place > 0, before[place] - over, 0)

    waited = waited_until(scaling.start_us + scaling.us) - waited_until(scaling.start_us)
    return int(((scaling.peak - scaling.there) * waited).sum()) // max(scaling.peak, 1)


def replaced(facts: Facts) -> tuple[int, int]:
    """Return how many workers were given back and soon replaced, and the median life of those given back."""
    lives = [
        worker
        for worker in facts.workers
        if worker.end_us and worker.verdict in GIVEN_BACK and worker.life_us <= MAX_LIFE_US
    ]
    # When the cluster closes, all of its workers leave; nothing replaces them.
    moments = sorted([(w.end_us, 1) for w in lives] + [(w.start_us, -1) for w in facts.workers])
    left, count = deque[int](), 0
    for moment, change in moments:
        while left and moment - left[0] > MAX_GAP_US:
            left.popleft()
        if change > 0:
            left.append(moment)
        elif left:
            left.popleft()
            count += 1
    return count, int(np.median([worker.life_us for worker in lives])) if lives else 0


def does_flap(facts: Facts) -> bool:
    return replaced(facts)[0] >= MIN_REPLACED


def is_late(facts: Facts, scaling: Scaling) -> bool:
    """Return whether workers were missing for long enough."""
    return scaling.saved_us >= max(MIN_US, MIN_SHARE * facts.run_us)
