"""Measure false alarms and detection of change points on the noise of real runs.

One workload is run many times on a local cluster. Its durations, in random order, are stable series; multiplied by 1.15 from some
run on, they are series with a step.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from statistics import mean, median, pstdev

from distributed import Client, LocalCluster, wait

from benchmarks import insight_tasks as tasks
from benchmarks.result import Result, at_most
from daskscope.analysis.compare.history import AFTER, change_points

RUNS = 150
SERIES, LENGTH = 400, 50
STEP, STEP_AT = 1.15, 25


def measured() -> list[float]:
    """Return how long the same work took, again and again, by the client's clock."""
    seconds = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        for _ in range(RUNS + 5):
            began = time.monotonic()
            wait(client.map(tasks.pause, [0.02] * 30, pure=False))
            seconds.append(time.monotonic() - began)
    return seconds[5:]


def run() -> list[Result]:
    return summed_up(measured())


def summed_up(pool: Sequence[float]) -> list[Result]:
    """Return false alarms per 1,000 stable points, and the share of steps that are not found within five runs."""
    drawn = random.Random(0)
    alarms = points = missed = 0
    for _ in range(SERIES):
        stable = [drawn.choice(pool) for _ in range(LENGTH)]
        alarms += len(change_points(stable))
        points += LENGTH
        stepped = [value * (STEP if n >= STEP_AT else 1) for n, value in enumerate(stable)]
        seen = change_points(stepped[: STEP_AT + AFTER])
        missed += not any(abs(change.index - STEP_AT) <= AFTER for change in seen)
    noise = f"{pstdev(pool) / mean(pool):.1%} of {median(pool):.2f} s (standard deviation of {len(pool)} runs)"
    return [
        at_most("change points: false alarms per 1,000 stable runs", 1000 * alarms / points, 1, "", f"noise {noise}"),
        at_most(
            "change points: steps of 15 % not found within 5 runs", 100 * missed / SERIES, 10, " %", f"noise {noise}"
        ),
    ]
