"""What clusters did over time, from the sums of each ten seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.analysis.history import Steps, busy_threads, steps_of
from daskscope.analysis.rollup import BUCKET
from daskscope.model.table import Array
from daskscope.storage import schema
from daskscope.storage.sums import summed
from daskscope.units import HOUR

FIELDS = ("tasks", "errors", "compute_us", "transfer_us")
#: How much of a cluster's life the line in a list shows. A hundred clusters have at most 36,000 sums in it.
RECENT_US = HOUR
RECENT_STEPS = 30


def _in_steps(runs: dict[int, Steps], *names: str) -> sa.Select[Any]:
    """Sums of some runs by step, each with steps of its own: one question, since PostgreSQL takes a millisecond for any."""
    table = schema.timeline
    columns = [sa.column(name, sa.BigInteger) for name in ("run", "start", "stop", "step")]
    windows = [(run, steps.start_us, int(steps.edges[-1]), steps.step_us) for run, steps in runs.items()]
    window = sa.values(*columns, name="windows").data(windows).cte("windows")
    inside = (table.c.bucket >= window.c.start) & (table.c.bucket < window.c.stop)
    number = ((table.c.bucket - window.c.start) // window.c.step).label("step")
    return (
        sa.select(window.c.run, number, *(summed(table.c[name]).label(name) for name in names))
        .join_from(window, table, (table.c.run_id == window.c.run) & inside)
        .group_by(window.c.run, number)
    )


def sums_of(connection: Connection, run: int, steps: Steps) -> dict[str, Array]:
    """What ended in each step."""
    result = {name: np.zeros(steps.count) for name in FIELDS}
    for row in connection.execute(_in_steps({run: steps}, *FIELDS)).mappings():
        for name in FIELDS:
            result[name][row["step"]] = row[name]
    return result


def recent_busy(connection: Connection, runs: Sequence[dict[str, Any]]) -> dict[int, list[float]]:
    """For each run, which share of its threads was busy in the last hour of its life, oldest first."""
    windows = {run["id"]: _window(run) for run in runs}
    if not windows:
        return {}
    compute = {run: np.zeros(steps.count) for run, steps in windows.items()}
    for row in connection.execute(_in_steps(windows, "compute_us")):
        compute[row.run][row.step] = row.compute_us
    result = {}
    for run in runs:
        steps = windows[run["id"]]
        start, end = life_of(run)
        threads = np.full(steps.count, max(run["thread_us"] / max(end - start, 1), 1e-9))
        busy = busy_threads(compute[run["id"]], threads, steps) / threads
        result[run["id"]] = [round(float(share), 3) for share in busy]
    return result


def life_of(run: dict[str, Any]) -> tuple[int, int]:
    """When a run began, and when it ended or was last heard of."""
    start = int(run["start_us"] or run["created_us"])
    return start, max(start, int(run["end_us"] or run["seen_us"]))


def _window(run: dict[str, Any]) -> Steps:
    start, end = life_of(run)
    return steps_of(max(start, end - RECENT_US), end, BUCKET, RECENT_STEPS)
