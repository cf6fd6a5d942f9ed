"""The progress of a cluster's running computations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from daskscope.analysis.progress import (
    Counts,
    EarlierRun,
    Progress,
    RunningComputation,
    is_without_work,
    needs_earlier,
    parse_running,
    track,
)
from daskscope.server.building import LISTED
from daskscope.server.earlier_runs import usual_duration
from daskscope.server.http.parameters import find_cluster
from daskscope.server.http.routing import Call, Route
from daskscope.server.live_contract import ClusterProgress, ComputationProgress, TaskCounts
from daskscope.server.serializers import moment, scheduler_now_us, seconds, usual_view
from daskscope.storage.archive import Transaction
from daskscope.storage.clusters import Cluster
from daskscope.storage.computations import Computation, list_computations, prefix_sums
from daskscope.storage.runs import Part, read_snapshot
from daskscope.units import MINUTE

#: Running computations listed: as many as fit on a page. The newest count, because older ones may be waiting for them.
MAX_COMPUTATIONS = 20
#: Computations that are compared with earlier runs, and the number of earlier runs that the time left is estimated from.
MAX_COMPARED, MAX_EARLIER = 5, 3
#: How Dask logs a failed transfer, at the worker that wanted the result.
FAILED_TRANSFER = "Worker stream died during communication"


def progress(call: Call) -> ClusterProgress:
    row = find_cluster(call)
    if not row.is_live:
        return {"items": [], "total": 0}
    now_us = scheduler_now_us(row, call.now_us)
    with call.services.archive.read() as tx:
        # Some more than listed, to count them: no roll-up has their number.
        found = list_computations(tx, call.account.id, run=row.id, is_running=True, limit=10 * MAX_COMPUTATIONS)
        listed = sorted(found[:MAX_COMPUTATIONS], key=lambda one: (one.start_us, one.computation))
        computations = _running(tx, listed)
        # First those whose time left depends on earlier runs.
        order = sorted(range(len(listed)), key=lambda n: not needs_earlier(computations[n]))
        known = call.services.earlier_runs
        earlier = {listed[n].computation: known.of(tx, call.account.id, listed[n]) for n in order[:MAX_COMPARED]}
    computations = [_with_earlier(one, earlier.get(one.id, [])) for one in computations]
    failed = _failed_transfers(call, row, now_us) if listed and is_without_work(row, now_us) else 0
    tracked = track(row, computations, parse_running(row.longest_running), now_us, failed)
    return {
        "items": [
            _view(one, stored, earlier.get(one.id, []), now_us) for one, stored in zip(tracked, listed, strict=True)
        ],
        "total": len(found),
    }


def _running(tx: Transaction, rows: list[Computation]) -> list[RunningComputation]:
    sums = prefix_sums(tx, [(row.run_id, row.computation) for row in rows])
    return [
        RunningComputation(
            id=row.computation,
            start_us=row.start_us,
            tasks=row.tasks,
            erred=row.erred,
            unfinished=row.unfinished,
            seen_us=row.seen_us,
            prefix_states=row.prefix_states,
            sums=sums.get((row.run_id, row.computation), {}),
        )
        for row in rows
    ]


def _with_earlier(one: RunningComputation, earlier: list[EarlierRun]) -> RunningComputation:
    return replace(one, earlier=earlier[:MAX_EARLIER]) if needs_earlier(one) else one


def _failed_transfers(call: Call, row: Cluster, now_us: int) -> int:
    """Count the transfers that failed within the last minute, from the log lines of the workers."""
    part = Part(("logs",), window=(now_us - MINUTE, now_us), columns=("time_us", "message", "repeats"))
    logs = read_snapshot(call.services.archive, call.account.id, row.id, row.name, part, LISTED)["logs"]
    recent = logs.take(np.flatnonzero(logs["time_us"] >= now_us - MINUTE))
    return sum(
        max(1, repeats)
        for message, repeats in recent.records("message", "repeats")
        if message.startswith(FAILED_TRANSFER)
    )


def _view(one: Progress, row: Computation, earlier: list[EarlierRun], now_us: int) -> ComputationProgress:
    left = one.left
    return {
        "id": one.id,
        "code": row.code,
        "code_file": row.code_file,
        "code_line": row.code_line,
        "start": moment(row.start_us),
        **_counts(one.counts),
        "left": {"low": seconds(left.low_us), "high": seconds(left.high_us)} if left else None,
        "summary": one.summary,
        "stuck": one.stuck,
        "note": one.note,
        "usual": usual_view(usual_duration(row, earlier, now_us)),
        "prefixes": [{"prefix": name, **_counts(counts)} for name, counts in one.prefixes.items()],
    }


def _counts(counts: Counts) -> TaskCounts:
    return {
        "total": counts.total,
        "done": counts.done,
        "running": counts.running,
        "waiting": counts.waiting,
        "failed": counts.failed,
    }


ROUTES = [
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/progress",
        progress,
        "read",
        "Return the progress of running computations, the time left, and why one is stuck",
    ),
]
