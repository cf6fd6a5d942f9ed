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

FIELDS = ("tasks", "errors", "compute_us", "transfer_us")
#: How much of a cluster's life the line in a list shows. A hundred clusters have at most 72,000 sums in it.
RECENT_US = 2 * 3600 * 1_000_000
RECENT_STEPS = 30


def _in_steps(*names: str) -> sa.Select[Any]:
    """Sums of a run by step; a step is numbered from ``start``."""
    table = schema.timeline
    whole = sa.BigInteger
    start, step = sa.bindparam("start", type_=whole), sa.bindparam("step", type_=whole)
    number = ((table.c.bucket - start) // step).label("step")
    inside = (table.c.bucket >= start) & (table.c.bucket < sa.bindparam("stop", type_=whole))
    mine = table.c.run_id == sa.bindparam("run", type_=whole)
    return (
        sa.select(number, *(summed(table.c[name]).label(name) for name in names)).where(mine, inside).group_by(number)
    )


SUMS = _in_steps(*FIELDS)
#: Built once: a list asks it of a hundred runs, each with steps of its own (0.2 ms; a union of a hundred took 0.4 to build).
COMPUTE = _in_steps("compute_us")


def _place(run: int, steps: Steps) -> dict[str, int]:
    return {"run": run, "start": steps.start_us, "stop": int(steps.edges[-1]), "step": steps.step_us}


def sums_of(connection: Connection, run: int, steps: Steps) -> dict[str, Array]:
    """What ended in each step."""
    result = {name: np.zeros(steps.count) for name in FIELDS}
    for row in connection.execute(SUMS, _place(run, steps)).mappings():
        for name in FIELDS:
            result[name][row["step"]] = row[name]
    return result


def recent_busy(connection: Connection, runs: Sequence[dict[str, Any]]) -> dict[int, list[float]]:
    """For each run, which share of its threads was busy in the last hours of its life, oldest first."""
    windows = {run["id"]: _window(run) for run in runs}
    if not windows:
        return {}
    compute = {run: np.zeros(steps.count) for run, steps in windows.items()}
    for run, steps in windows.items():
        for row in connection.execute(COMPUTE, _place(run, steps)):
            compute[run][row.step] = row.compute_us
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
