"""Whether a running computation is slower than usual, and how much time is left: from earlier runs of its code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from daskscope import units
from daskscope.analysis.grouping import percentile
from daskscope.analysis.progress import MAX_RATIO, SHORT_US, SIMILAR_TASKS, EarlierRun, TimeLeft
from daskscope.model.table import Array

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
    """A running computation: its tasks, how many had finished some time ago, and the time since its start."""

    tasks: int
    done: int
    #: From the start until ``done`` was counted. A recorder is some seconds behind.
    counted_us: float
    elapsed_us: float


@dataclass(frozen=True, slots=True)
class Usual:
    """What earlier runs say about a running computation."""

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
