"""A cluster over time: its workers, those it was asked to have, and how busy they were."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskscope.analysis.history import Life, busy_threads, present, steps_of, wanted_workers
from daskscope.analysis.rollup import BUCKET, clean
from daskscope.model.table import Table
from daskscope.server.contract import History
from daskscope.server.routes.clusters import find
from daskscope.server.routing import Call, Route
from daskscope.server.views import moment, parsed
from daskscope.storage import history as store
from daskscope.storage.clusters import workers_of
from daskscope.storage.runs import Part, read_steadily

#: The kind of event by which the recorder says what adaptive scaling wants.
WANTED = "wanted-workers"


def history(call: Call) -> History:
    row, services = find(call), call.services
    start, end = store.life_of(row)
    steps = steps_of(start, end, BUCKET)
    with services.database.read() as connection:
        sums = store.sums_of(connection, row["id"], steps)
        workers = workers_of(connection, row["id"])
    recording = read_steadily(
        services.database, services.vault, services.store, call.account.id, row["id"], row["name"], Part(("events",))
    )
    there, threads = present([_life(worker, end) for worker in workers], steps)
    times, targets = _asked(recording["events"])
    return {
        "start": moment(start),
        "step": steps.step_us / 1e6,
        "edges": _rounded((np.clip(steps.edges, start, end) - start) / 1e6),
        "workers": _rounded(there),
        "threads": _rounded(threads),
        "busy": _rounded(busy_threads(sums["compute_us"], threads, steps)),
        "tasks": [int(n) for n in sums["tasks"]],
        "errors": [int(n) for n in sums["errors"]],
        "wanted": wanted_workers(times, targets, steps),
    }


def _life(worker: dict[str, Any], end_us: int) -> Life:
    return Life(worker["start_us"], worker["end_us"] or end_us, worker["nthreads"])


def _asked(events: Table) -> tuple[list[int], list[int]]:
    """When adaptive scaling asked for a number of workers, and for how many; an event without a number asks for nothing."""
    rows = events.take(np.flatnonzero(events["kind"] == WANTED))
    times: list[int] = []
    targets: list[int] = []
    for time, detail in zip(rows["time_us"].tolist(), rows["detail"].tolist(), strict=True):
        wanted = parsed(detail, {}).get("wanted")
        if type(wanted) is int:
            times.append(time)
            targets.append(clean(wanted))
    return times, targets


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 3) for value in values]


ROUTES = [
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/history",
        history,
        "read",
        "Its workers and busy threads over time",
        heavy=True,
    )
]
