"""Runs of the same code over time: what is usual, when it changed, and what may explain it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import comb
from statistics import median
from typing import Literal

import numpy as np

from daskscope import units
from daskscope.analysis.columns.grouping import percentile
from daskscope.analysis.running.progress import MAX_RATIO, SHORT_US, SIMILAR_TASKS, EarlierRun, TimeLeft
from daskscope.model.recording import Array

#: The most recent earlier runs that count: older ones ran with other data and versions.
MAX_RUNS = 20
#: Fewer runs have no usual duration: with four, one run in five takes longer than all of them by chance alone.
MIN_RUNS = 5
#: The range that is called usual: the middle 80 %. With fewer than ten runs, its end is the longest of them.
LOW, HIGH = 0.1, 0.9
#: A run is slower than usual if it exceeds the usual range by this share, and by as much as the range exceeds the median.
#: Exceeding the range alone says nothing: 14 to 18 % of unchanged runs do. Simulated with 5 to 20 log-normal durations, this limit
#: is exceeded by 0 to 3 % of unchanged runs if they vary by 10 %, and by 3 to 9 % if they vary by 30 to 60 %; of runs that take
#: 1.5 times as long, by 88 to 100 % and 15 to 36 %. ``tests/unit/test_usual.py`` repeats this.
MARGIN = 0.1
#: The pace of its own tasks counts after this share of the usual duration, and with so many tasks: the first tasks of a
#: run wait for imports and files, and of a few tasks none may have finished.
PACE_FROM, PACE_TASKS = 0.25, 20

UsualState = Literal["", "slower", "more tasks", "fewer tasks"]


@dataclass(frozen=True, slots=True)
class RunSoFar:
    """A running computation: tasks, tasks done at the last count, elapsed time."""

    tasks: int
    done: int
    #: From the start until ``done`` was counted. A recorder is some seconds behind.
    counted_us: float
    elapsed_us: float


@dataclass(frozen=True, slots=True)
class Usual:
    """The usual duration of a computation, from its earlier runs."""

    runs: int
    median_us: float
    low_us: float
    high_us: float
    #: None if too little is known for an estimate.
    left: TimeLeft | None
    #: Empty if nothing is unusual, or if too few runs are known to tell.
    state: UsualState
    sentence: str


def judge_duration(earlier: Sequence[EarlierRun], now: RunSoFar) -> Usual | None:
    """Compare a running computation with finished runs of its code, newest first. Return None without such runs."""
    tasks, elapsed_us = now.tasks, now.elapsed_us
    recent = [run for run in earlier if run.duration_us > 0][:MAX_RUNS]
    similar = [run for run in recent if tasks / SIMILAR_TASKS <= run.tasks <= tasks * SIMILAR_TASKS]
    # Code that runs on data of several sizes is compared with runs of the same size.
    known = similar if len(similar) >= MIN_RUNS else recent
    if not known:
        return None
    durations = np.sort([run.duration_us for run in known])
    median, low, high = float(np.median(durations)), percentile(durations, LOW), percentile(durations, HIGH)
    usual_tasks = int(np.median([run.tasks for run in known]))
    if len(known) < MIN_RUNS:
        low, high = int(durations[0]), int(durations[-1])
        return Usual(len(known), median, low, high, None, "", _few_runs(len(known), low, high))
    state = _state(tasks, usual_tasks, elapsed_us, median, high)
    left = _time_left(durations, now, median) if state == "" else None
    usually = f"{units.duration(median)} ({units.duration(low)} to {units.duration(high)})"
    if state == "slower":
        sentence = f"Slower than usual: {units.duration(elapsed_us)} so far, usually {usually}."
    elif state:
        sentence = f"{state.capitalize()} than usual: {tasks:,} instead of {usual_tasks:,}. Usually it takes {usually}."
    else:
        sentence = f"Usually takes {usually}{_left_text(left)}."
    return Usual(len(known), median, low, high, left, state, sentence)


def _few_runs(runs: int, low_us: float, high_us: float) -> str:
    if runs == 1:
        return f"The earlier run took {units.duration(low_us)}."
    return f"{runs} earlier runs took {units.duration(low_us)} to {units.duration(high_us)}."


def _state(tasks: int, usual_tasks: int, elapsed_us: float, median_us: float, high_us: float) -> UsualState:
    if tasks > SIMILAR_TASKS * usual_tasks:
        return "more tasks"
    if tasks < usual_tasks / SIMILAR_TASKS:
        return "fewer tasks"
    limit = max((1 + MARGIN) * high_us, 2 * high_us - median_us)
    return "slower" if elapsed_us > limit else ""


def _time_left(durations: Array, now: RunSoFar, median_us: float) -> TimeLeft | None:
    """Return the time left if this run takes as long as one of those that took longer than it has taken so far.

    Its own pace is the time per finished task. Earlier runs know that the last tasks take longest, the pace
    knows that the cluster is slower today. Neither is right alone, so the range contains both; if they contradict each other,
    it is too wide to be shown.
    """
    possible = durations[durations > now.elapsed_us] - now.elapsed_us
    if not len(possible):
        return None
    low, high = float(percentile(possible, LOW)), float(percentile(possible, HIGH))
    if now.tasks >= PACE_TASKS and now.elapsed_us >= PACE_FROM * median_us:
        if not now.done:
            return None
        by_pace = max(0.0, now.counted_us * now.tasks / now.done - now.elapsed_us)
        low, high = min(low, by_pace), max(high, by_pace)
    return TimeLeft(low, high) if high < SHORT_US or high <= MAX_RATIO * low else None


def _left_text(left: TimeLeft | None) -> str:
    if left is None:
        return ""
    text = units.duration_range(left.low_us, left.high_us)
    return f"; {text} left" if text.startswith("less") else f"; about {text} left"


#: Changes by less are noise.
MIN_RATIO = 1.1
#: A prefix explains a change if it is this share of it.
MIN_EXPLAINED = 0.25
MAX_PREFIXES = 3


@dataclass(frozen=True)
class PastRun:
    """One run of a computation."""

    start_us: int
    wall_us: int
    tasks: int
    nbytes: int
    transfer_us: int
    disk_us: int
    errors: int
    threads: int
    #: Number of executions and their compute time, by prefix.
    prefixes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: Versions of packages.
    versions: Mapping[str, str] = field(default_factory=dict)


def causes(before: Sequence[PastRun], after: Sequence[PastRun]) -> list[str]:
    """Return the recorded changes, as sentences; empty if there are none."""

    def of(value: Callable[[PastRun], float]) -> tuple[float, float]:
        return median(map(value, before)), median(map(value, after))

    said = []
    tasks, nbytes, wall = of(lambda run: run.tasks), of(lambda run: run.nbytes), of(lambda run: run.wall_us)
    is_slower = wall[1] > wall[0]
    # What went the other way did not cause it.
    if _differs(*nbytes) and (nbytes[1] > nbytes[0]) == is_slower:
        said.append(f"The data {_grew(nbytes)}: results of {units.nbytes(nbytes[0])} became {units.nbytes(nbytes[1])}.")
    if _differs(*tasks) and (tasks[1] > tasks[0]) == is_slower:
        said.append(f"There are {units.count(round(tasks[1]))} instead of {units.count(round(tasks[0]))} tasks.")
    said += _prefixes(before, after, is_slower=is_slower)
    threads = of(lambda run: run.threads)
    if _differs(*threads) and (threads[1] < threads[0]) == is_slower:
        said.append(
            f"The cluster has {units.count(round(threads[1]))} instead of {units.count(round(threads[0]))} threads."
        )
    for what, times in (
        ("transfers", of(lambda run: run.transfer_us)),
        ("spilled results", of(lambda run: run.disk_us)),
    ):
        if _differs(*times) and abs(times[1] - times[0]) > MIN_EXPLAINED * abs(wall[1] - wall[0]):
            said.append(f"Thread time on {what} went from {units.duration(times[0])} to {units.duration(times[1])}.")
    errors = of(lambda run: run.errors)
    if round(errors[0]) != round(errors[1]):
        said.append(f"Failures went from {units.count(round(errors[0]))} to {units.count(round(errors[1]))} per run.")
    return said + _versions(before[-1].versions, after[0].versions)


def _differs(before: float, after: float) -> bool:
    low, high = sorted((before, after))
    return high > 0 and high >= MIN_RATIO * low


def _grew(pair: tuple[float, float]) -> str:
    return "grew" if pair[1] > pair[0] else "shrank"


def _prefixes(before: Sequence[PastRun], after: Sequence[PastRun], *, is_slower: bool) -> list[str]:
    """Return the prefixes whose tasks became slower or faster like the run, those that explain most first."""

    def per_task(runs: Sequence[PastRun], prefix: str) -> float:
        found = [us / count for count, us in (run.prefixes.get(prefix, (0, 0)) for run in runs) if count]
        return median(found) if found else 0.0

    def count(prefix: str) -> float:
        return median(run.prefixes.get(prefix, (0, 0))[0] for run in after)

    names = {name for run in (*before, *after) for name in run.prefixes}
    changes = {name: (per_task(before, name), per_task(after, name)) for name in names}
    effects = {
        name: abs(new - old) * count(name)
        for name, (old, new) in changes.items()
        if old and new and (new > old) == is_slower
    }
    total = sum(effects.values())
    largest = sorted(effects, key=lambda name: -effects[name])[:MAX_PREFIXES]
    return [
        f"Tasks of {name or 'an unnamed prefix'} take {units.duration(changes[name][1])} instead of "
        f"{units.duration(changes[name][0])}."
        for name in largest
        if _differs(*changes[name]) and effects[name] >= MIN_EXPLAINED * total
    ]


def _versions(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    changed = [name for name in sorted(before.keys() & after.keys()) if before[name] != after[name]]
    if not changed:
        return []
    listed = ", ".join(f"{name} {before[name]} → {after[name]}" for name in changed)
    return [f"Versions changed: {listed}."]


# A series of repeated measurements, such as the duration of the same computation, is searched for changes of its level.
#
# The last ``AFTER`` values are compared with up to ``BEFORE`` values before them, by the sum of their ranks. Ranks need no
# assumption about the noise, and one outlier has the rank of a small change. If nothing changed, every order is equally likely,
# so the false alarms are known exactly: at most ``MAX_P`` per value. The first alarm of a change counts; the next series begins
# after it.

#: Values after a change, and before it, at most and at least.
AFTER, BEFORE, MIN_BEFORE = 5, 20, 10
#: Probability of a false alarm per window, for both directions together. Windows overlap, so there are 0.4 to 0.6 false alarms per
#: 1,000 values. Of steps of 15 %, 94 % are found within five values if the noise has a standard deviation of 5 %, 47 % if of 8 %.
MAX_P = 0.002
#: Smaller changes of the median are not worth a sentence.
MIN_CHANGE = 0.05


@dataclass(frozen=True)
class ChangePoint:
    """The level changed with the value at ``index``."""

    index: int
    before: float
    after: float

    @property
    def ratio(self) -> float:
        return self.after / self.before if self.before else float("inf")


def change_points(values: Sequence[float]) -> list[ChangePoint]:
    """Return the changes of a series, in order of time."""
    found: list[ChangePoint] = []
    first = 0
    for end in range(AFTER, len(values) + 1):
        before, after = values[max(first, end - AFTER - BEFORE) : end - AFTER], values[end - AFTER : end]
        if len(before) < MIN_BEFORE or p_value(before, after) > MAX_P:
            continue
        change = _place(values[:end], end - AFTER - len(before))
        if change.before and abs(change.ratio - 1) >= MIN_CHANGE:
            found.append(change)
            first = change.index
    return found


def _place(values: Sequence[float], first: int) -> ChangePoint:
    """Return the change near the end of a series, where both sides are closest to their medians.

    The alarm comes with the first values of a large change, so the change may be later than the compared values begin.
    """

    def distance(index: int) -> float:
        sides = values[first:index], values[index:]
        return sum(abs(value - median(side)) for side in sides for value in side)

    index = min(range(len(values) - AFTER, len(values) - 1), key=distance)
    return ChangePoint(index, median(values[first:index]), median(values[index:]))


def p_value(before: Sequence[float], after: Sequence[float]) -> float:
    """Return how likely such a sum of ranks, or a more extreme one, is if nothing changed."""
    joined = sorted([*before, *after])
    # Twice the rank: equal values share their ranks, which may be halves.
    ranks = {value: joined.index(value) + len(joined) - joined[::-1].index(value) - 1 for value in set(joined)}
    total, middle = sum(ranks[value] for value in after), len(after) * (len(joined) - 1)
    distance = abs(total - middle)
    counts = _sums_of_ranks(len(joined), len(after))
    extreme = sum(count for rank_sum, count in enumerate(counts) if abs(2 * rank_sum - middle) >= distance)
    return extreme / comb(len(joined), len(after))


@cache
def _sums_of_ranks(size: int, chosen: int) -> tuple[int, ...]:
    """Return in how many ways ``chosen`` of the ranks from 0 to ``size`` - 1 have each sum."""
    ways = [[1] + [0] * (size * chosen)] + [[0] * (size * chosen + 1) for _ in range(chosen)]
    for rank in range(size):
        for count in range(min(rank + 1, chosen), 0, -1):
            for total in range(size * chosen, rank - 1, -1):
                ways[count][total] += ways[count - 1][total - rank]
    return tuple(ways[chosen])
