"""Rules about adaptive scaling: how many workers it wanted, and how many there were."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daskscope import units
from daskscope.analysis.columns.grouping import where
from daskscope.analysis.columns.intervals import merge
from daskscope.insights.facts import MIN_SHARE, MIN_US, Facts, Finding, Rule, at_least
from daskscope.model.recording import Array
from daskscope.model.untrusted import parse_object

#: Workers that left and were replaced this often flap.
MIN_REPLACED = 3
#: A worker that scaling gave back after a longer life was worth its start.
MAX_LIFE_US = 300_000_000
#: A worker that joins later does not replace one that left.
MAX_GAP_US = 300_000_000
#: Higher numbers of wanted workers are invalid, and would overflow.
MAX_TARGET = 1_000_000
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
            found.append((time_us, min(max(wanted, 0), MAX_TARGET)))
    return found


def _scaling_of(facts: Facts) -> Scaling | None:
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


def _needed_us(facts: Facts, scaling: Scaling) -> int:
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


def _replaced_workers(facts: Facts) -> tuple[int, int]:
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


def _does_flap(facts: Facts) -> bool:
    return _replaced_workers(facts)[0] >= MIN_REPLACED


def _is_late(facts: Facts, scaling: Scaling) -> bool:
    """Return whether workers were missing for long enough."""
    return scaling.saved_us >= max(MIN_US, MIN_SHARE * facts.run_us)


# ---------------------------------------------------------------- rules


def _scaling_lags(facts: Facts) -> Iterator[Finding]:
    scaling = _scaling_of(facts)
    if scaling is None or not _is_late(facts, scaling) or _does_flap(facts):
        return
    yield facts.finding(
        "scaling",
        f"Workers were missing for {units.duration(scaling.late_us)} after scaling had asked for them",
        f"Up to {units.counted(int(scaling.late.max()), 'worker')} of {units.count(scaling.peak)} came late.",
        "Raise minimum= of adapt(), start workers before the work, or use hosts and images that start faster.",
        "workers",
        facts.wall_time(scaling.saved_us, "work that the late workers would have done, spread over all workers"),
    )


SCALING_LAGS = Rule(
    "scaling-lags",
    "Workers come long after adaptive scaling wants them",
    "Work waits until hosts, containers and Python have started.",
    f"The late workers would have saved {at_least(MIN_SHARE, 'the run')}. Only workers that did come count, and a cluster "
    "that flaps has another finding.",
    _scaling_lags,
)


def _scaling_flaps(facts: Facts) -> Iterator[Finding]:
    scaling = _scaling_of(facts)
    if scaling is None or not _does_flap(facts):
        return
    count, life_us = _replaced_workers(facts)
    yield facts.finding(
        "scaling",
        f"Scaling gave {units.counted(count, 'worker')} back and replaced them",
        f"Their median uptime was {units.duration(life_us)}. Wanted workers were missing for {units.duration(scaling.late_us)}.",
        "Keep workers longer: raise minimum=, wait_count= or interval= of adapt().",
        "workers",
        facts.wall_time(
            _needed_us(facts, scaling),
            "work that missing workers would have done while tasks waited, spread over all workers",
        ),
    )


SCALING_FLAPS = Rule(
    "scaling-flaps",
    "Adaptive scaling gives workers back and starts others soon after",
    "A new worker has to start and to import libraries, and the results of the old one had to be moved or were lost.",
    "At least 3 workers were given back within 5 minutes of joining, and replaced within 5 minutes.",
    _scaling_flaps,
)


#: Share of the run, and its length, in which scaling wanted this many times the workers there were.
MIN_CAPPED = 0.25
MIN_CAPPED_US = 5_000_000
MIN_WANTED = 1.5
#: Share of thread time that tasks used: workers that are not busy do not show that more of them would be.
MIN_BUSY = 0.75


def _scaling_capped(facts: Facts) -> Iterator[Finding]:
    scaling = _scaling_of(facts)
    # Runs of coffea have a prediction of their own.
    if scaling is None or facts.coffea or not facts.split.thread_us:
        return
    capped = (scaling.there == scaling.peak) & (scaling.wanted >= MIN_WANTED * scaling.peak) & (scaling.peak > 0)
    us = int(scaling.us[capped].sum())
    is_busy = facts.split.compute_us >= MIN_BUSY * facts.split.thread_us
    if us < max(MIN_CAPPED_US, MIN_CAPPED * facts.run_us) or not is_busy:
        return
    saved_us = int((scaling.us * (1.0 - scaling.there / np.maximum(scaling.wanted, 1)))[capped].sum())
    yield facts.finding(
        "scaling",
        f"Scaling wanted up to {units.counted(int(scaling.wanted.max()), 'worker')}, but had {units.count(scaling.peak)}",
        f"For {units.duration(us)}, that is {units.percent(us / facts.run_us)} of the run, it wanted more than it had. Tasks used "
        f"{units.percent(facts.split.compute_us / facts.split.thread_us)} of the thread time.",
        "Raise maximum= of adapt(), or the quota, if the result is needed sooner. Workers that are as busy cost the same in total.",
        "workers",
        facts.wall_time(saved_us, "time that all wanted workers would save if tasks can use them all"),
    )


SCALING_CAPPED = Rule(
    "scaling-capped",
    "Adaptive scaling wants more workers than it is allowed",
    "Tasks wait although they could run in parallel.",
    "For 25 % of the run and 5 s, scaling wanted 1.5 times the workers of its peak, and tasks used 75 % of the thread time.",
    _scaling_capped,
)
