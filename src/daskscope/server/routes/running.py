"""Clusters that run: their state, increments for live pages, and progress."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Annotated

import msgspec
import numpy as np
from starlette.responses import Response

from daskscope.analysis.profiles import NO_STACKS, Stacks, answer_of, owner
from daskscope.analysis.profiles import TaskStack as StoredStack
from daskscope.analysis.running.progress import (
    Counts,
    EarlierRun,
    Progress,
    RunningComputation,
    is_without_work,
    needs_earlier,
    parse_running,
    track,
    usual_us,
)
from daskscope.server.caches import usual_duration
from daskscope.server.documents import LISTED
from daskscope.server.errors import conflict, too_many, unavailable
from daskscope.server.http.pages import DataResponse
from daskscope.server.http.parameters import Text, find_cluster
from daskscope.server.http.routing import Call, Route
from daskscope.server.increments import Follow, empty_body, news
from daskscope.server.live import Listener
from daskscope.server.live_contract import (
    ClusterProgress,
    ComputationProgress,
    CurrentStacks,
    LongTask,
    RunningTasks,
    StackRequest,
    StacksState,
    TaskCounts,
    TaskStack,
)
from daskscope.server.pools import HEAVY, READ
from daskscope.server.views import moment, scheduler_now_us, seconds, usual_view
from daskscope.storage.base.archive import Transaction
from daskscope.storage.catalog.clusters import STACKS_PAUSE_US, STACKS_WAIT_US, Cluster, ask_for_stacks, workers_of
from daskscope.storage.catalog.computations import Computation, list_computations, prefix_sums
from daskscope.storage.runs.read import Part, read_snapshot
from daskscope.units import MINUTE

BYTES = "application/vnd.daskscope.increment"
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
#: A cursor of 50 epochs.
Cursor = Annotated[str, msgspec.Meta(max_length=3_000)]
#: Seconds to wait for new batches before answering that there are none.
Wait = Annotated[float, msgspec.Meta(ge=0, le=25)]


class IncrementQuery(msgspec.Struct, forbid_unknown_fields=True):
    cursor: Cursor = ""
    computation: Text = ""
    wait: Wait = 0.0


async def get_increment(call: Call) -> Response:
    """Wait for new data, then return it."""
    query: IncrementQuery = call.query
    live, deadline = call.services.live, time.monotonic() + query.wait
    if query.wait and live.full(call.account.id):
        raise unavailable("Too many live pages are open. Try again later.", 30)
    # Listen before looking, so that nothing that arrives in between is missed.
    listener = live.listen(call.account.id, call.identity.user) if query.wait else None
    try:
        while True:
            # The first increment reads minutes of a run.
            pool = READ if query.cursor else HEAVY
            follow, body = await call.services.pools.run(pool, call.account.id, _look, call)
            if body is not None:
                return DataResponse([body], BYTES, HEADERS)
            left = deadline - time.monotonic()
            may_wait = left > 0 and follow.cluster.is_live
            if not (may_wait and await _changed(listener, follow.cluster.cluster, left)):
                return DataResponse([empty_body(follow)], BYTES, HEADERS)
    finally:
        if listener is not None:
            live.leave(listener)


def _look(call: Call) -> tuple[Follow, memoryview | None]:
    query: IncrementQuery = call.query
    cluster = find_cluster(call)
    call.services.live.followed.note(call.account.id, cluster.cluster)
    now_us = call.services.archive.clock()
    follow = Follow(call.account.id, cluster, query.computation, query.cursor, now_us)
    return follow, news(call.services, follow)


async def _changed(listener: Listener | None, cluster: str, seconds: float) -> bool:
    """Wait for a batch of the cluster. Return False if none came in time, or if the stream of the user has ended."""
    if listener is None:
        return False

    async def wait() -> bool:
        async for changed in listener.changes(seconds):
            if cluster in changed:
                return True
            if not changed:
                return False
        return False

    try:
        return await asyncio.wait_for(wait(), seconds)
    except asyncio.TimeoutError:
        return False


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
        # Time goes on until the recorder closes the computation, but its tasks take no longer.
        "usual": None if one.counts.is_done else usual_view(usual_duration(row, earlier, now_us)),
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


# These routes return the tasks that run now in a cluster, and their stacks on request.
#
# A recorder only pushes. A request for stacks waits in the catalog until any server answers the recorder's next batch, and the
# stacks come back as rows of the recording.

#: Length of an address of a worker.
Address = Annotated[str, msgspec.Meta(max_length=500)]


class StacksWanted(msgspec.Struct, forbid_unknown_fields=True):
    #: Address of a worker; empty for all that are busy.
    worker: Address = ""


def list_running(call: Call) -> RunningTasks:
    row = find_cluster(call)
    if not row.is_live:
        return {"items": [], "total": 0}
    now_us, tasks = scheduler_now_us(row, call.now_us), parse_running(row.longest_running)
    with call.services.archive.read() as tx:
        sums = prefix_sums(tx, [(row.id, task.computation) for task in tasks])
        names = {worker.worker: worker.name for worker in workers_of(tx, row.id)}
    items: list[LongTask] = []
    for task in tasks:
        usual = usual_us(sums.get((row.id, task.computation), {}).get(task.prefix))
        items.append(
            {
                "key": task.key,
                "prefix": task.prefix,
                "computation_id": task.computation,
                "worker": task.worker,
                "worker_name": names.get(task.worker, ""),
                "start": moment(task.start_us),
                "age": seconds(max(0, now_us - task.start_us)),
                "usual": None if usual is None else seconds(usual),
            }
        )
    return {
        "items": items,
        "total": max(row.tasks_executing, len(tasks)),
    }


def ask(call: Call) -> StackRequest:
    """Ask for the current stacks. The recorder is told in the response to its next batch."""
    row, wanted = find_cluster(call), call.body
    if not row.is_live:
        raise conflict(f"This cluster is {row.state}: there is nobody to ask.")
    with call.services.archive.write() as tx:
        request = ask_for_stacks(tx, row.id, wanted.worker)
    if not request:
        raise too_many("Stacks were requested a moment ago. Try again in a few seconds.", STACKS_PAUSE_US / 1e6)
    return {"request": request}


def get_stacks(call: Call) -> CurrentStacks:
    """Return the answer to the last request, as far as it has arrived."""
    row = find_cluster(call)
    request = row.stacks_asked_us
    found = _answer(call, row) if request else NO_STACKS
    with call.services.archive.read() as tx:
        names = {worker.worker: worker.name for worker in workers_of(tx, row.id)}
    return {
        "request": request,
        "asked_at": moment(request),
        "of": row.stacks_asked_of,
        "state": _state(row, found, call.now_us),
        "workers": found.workers,
        "asked": found.asked,
        "answered": found.answered,
        "why": found.why,
        "frames": [(file, function, line, owner(file)) for file, function, line in found.frames],
        "items": [_stack(item, names) for item in found.items],
        "nodes": found.tree.nodes,
        "parents": [parent + 1 for parent in found.tree.parents],
        "counts": found.tree.counts,
    }


def _answer(call: Call, row: Cluster) -> Stacks:
    part = Part(("stacks",))
    recording = read_snapshot(call.services.archive, call.account.id, row.id, row.name, part, LISTED)
    return answer_of(recording["stacks"], row.stacks_asked_us)


def _state(row: Cluster, found: Stacks, now_us: int) -> StacksState:
    if not row.stacks_asked_us:
        return "not requested"
    if found.is_complete:
        return "done"
    return "waiting" if row.is_live and now_us - row.stacks_asked_us <= STACKS_WAIT_US else "no answer"


def _stack(item: StoredStack, names: dict[str, str]) -> TaskStack:
    return {
        "key": item.key,
        "prefix": item.prefix,
        "worker": item.worker,
        "worker_name": names.get(item.worker, ""),
        "thread": item.thread,
        "time": moment(item.time_us),
        "age": seconds(max(0, item.time_us - item.start_us)) if item.start_us else None,
        "frames": list(item.frames),
    }


ROUTES = [
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/increments",
        get_increment,
        "read",
        "Return the rows that a page of a live cluster does not have yet",
        query=IncrementQuery,
        answers=BYTES,
    ),
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/progress",
        progress,
        "read",
        "Return the progress of running computations, the time left, and why one is stuck",
    ),
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/running",
        list_running,
        "read",
        "List the tasks that have been running longest",
    ),
    Route(
        "POST",
        "/api/v1/clusters/{cluster}/stacks",
        ask,
        "write",
        "Request the current stacks of running tasks",
        body=StacksWanted,
        status=202,
    ),
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/stacks",
        get_stacks,
        "read",
        "Return the stacks that were requested last",
        heavy=True,
    ),
]
