"""Clusters: lists, details, history, and why one is still running."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from starlette.responses import StreamingResponse

from daskscope.analysis.running.rollup import BUCKET
from daskscope.analysis.running.still_running import ClientStatus
from daskscope.analysis.running.still_running import explain as explanation_of
from daskscope.analysis.timeline import (
    MAX_STEPS,
    Life,
    TaskSums,
    busy_threads,
    present,
    steps_of,
    sum_tasks,
    wanted_workers,
)
from daskscope.model.recording import Table
from daskscope.model.states import RUN_STATES
from daskscope.model.untrusted import clean
from daskscope.server.contract import Cluster, ClusterList, ConnectedClient, Explanation, History, OneCluster, Worker
from daskscope.server.documents import LISTED
from daskscope.server.errors import conflict, forbidden, unavailable
from daskscope.server.http import parameters
from daskscope.server.http.audit import audit
from daskscope.server.http.parameters import Limit, Place, Text, find_cluster, run_states, since_us
from daskscope.server.http.routing import Call, Route
from daskscope.server.views import (
    cluster_view,
    cost_of,
    listed_clusters,
    moment,
    parsed,
    prefix_views,
    recent_view,
    scheduler_now_us,
)
from daskscope.storage.catalog import clusters as store
from daskscope.storage.catalog.clusters import ask_to_close
from daskscope.storage.catalog.run_groups import lost_workers, recent_runs
from daskscope.storage.runs.read import Part, read_snapshot

#: Seconds between comments on a silent stream, so that proxies keep it open.
HEARTBEAT_S = 15.0
#: Maximum length of a stream. Browsers reconnect, and callers who lost access meanwhile are refused then.
MAX_STREAM_S = 600.0

#: Columns to sort by, by their API names.
SORTS = {
    "started": "start_us",
    "last_seen": "seen_us",
    "tasks": "tasks",
    "exceptions": "exceptions",
    "cluster_time": "thread_us",
    "workers": "peak_workers",
    "threads": "peak_threads",
}


class ClustersQuery(msgspec.Struct, forbid_unknown_fields=True):
    since: Text = "7 days"
    user: Text = ""
    state: Text = ""
    search: Text = ""
    tag: Text = ""
    limit: Limit = 100
    cursor: Place = ""
    sort: Literal["started", "last_seen", "tasks", "exceptions", "cluster_time", "workers", "threads"] = "started"
    up: bool = False
    #: The ID of a cluster: list only clusters of the same name.
    same_name_as: Text = ""
    #: List only clusters that lost workers.
    lost_workers: bool = False


class ClusterChange(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    tags: (
        Annotated[list[Annotated[str, msgspec.Meta(min_length=1, max_length=60)]], msgspec.Meta(max_length=50)] | None
    ) = None


def list_clusters(call: Call) -> ClusterList:
    query: ClustersQuery = call.query
    after = parameters.decode(query.cursor, int, int)
    name = find_cluster(call, query.same_name_as).name if query.same_name_as else None
    wanted = store.ClusterFilter(
        since_us(query.since, call.now_us), query.user, run_states(query.state), query.search, query.tag, name,
        query.lost_workers, query.limit + 1, SORTS[query.sort], query.up, after,
    )  # fmt: skip
    services = call.services
    with services.archive.read() as tx:
        rows = store.list_clusters(tx, call.account.id, wanted)
        counts = store.count_clusters(tx, call.account.id)
        more, rows = len(rows) > query.limit, rows[: query.limit]
        items = listed_clusters(tx, rows, call.account, services.url, call.now_us, services.lost_rows)
    place = parameters.encode(getattr(rows[-1], SORTS[query.sort]), rows[-1].id) if more else None
    return {"items": items, "next": place, "states": {state: counts.get(state, 0) for state in RUN_STATES}}


def get_cluster(call: Call) -> OneCluster:
    row = find_cluster(call)
    with call.services.archive.read() as tx:
        workers = store.workers_of(tx, row.id)
        clients = store.clients_of(tx, row.id)
        prefixes = store.prefixes_of(tx, row.id)
        runs = recent_runs(tx, call.account.id, [row.name])[row.name] if row.name else []
        lost = lost_workers(tx, [run.id for run in runs])
    return {
        **cluster_view(row, call.account, call.services.url, call.now_us, call.services.lost_rows),
        "config": parsed(row.config, {}),
        "idle_timeout": row.idle_timeout_s,
        "worker_list": [_worker_view(worker) for worker in workers],
        "clients": [_client_view(client) for client in clients],
        "prefixes": prefix_views(prefixes, prefixes),
        "recent": [recent_view(run, len(lost.get(run.id, ()))) for run in runs],
    }


def _worker_view(row: store.Worker) -> Worker:
    return {
        "server_id": row.server_id,
        "worker": row.worker,
        "name": row.name,
        "host": row.host,
        "nthreads": row.nthreads,
        "memory_limit": row.memory_limit,
        "verdict": row.verdict,
        "evidence": row.evidence,
        "start": moment(row.start_us),
        "end": moment(row.end_us),
        "memory": row.memory or 0,
        "cpu_percent": row.cpu_percent or 0.0,
        "lost_results": row.lost_count,
        "processing_at_end": row.processing_count,
    }


def _client_view(row: ClientStatus) -> ConnectedClient:
    return {
        "client": row.client,
        "connected": moment(row.connect_us),
        "last_seen": moment(row.last_seen_us),
        "disconnected": moment(row.disconnect_us),
        "held_keys": row.held_keys,
        "held_nbytes": row.held_nbytes,
    }


def _own_cluster(call: Call) -> store.Cluster:
    """Return the cluster of the path to the member who recorded it, or to an owner of the account."""
    row = find_cluster(call)
    if row.user != call.identity.name and "admin" not in call.identity.scopes:
        raise forbidden(
            f"This cluster belongs to {row.user or 'another user'}. Only they and owners of the account can change it."
        )
    return row


def change_cluster(call: Call) -> Cluster:
    row, change = _own_cluster(call), call.body
    values: dict[str, Any] = {}
    if change.name is not None:
        values["name"] = change.name
    if change.tags is not None:
        values["tags"] = json.dumps(list(dict.fromkeys(change.tags)))
    if values:
        with call.services.archive.write() as tx:
            store.change_cluster(tx, row.id, values)
            audit(call, tx, "cluster-changed", row.cluster, **values)
    return cluster_view(replace(row, **values), call.account, call.services.url, call.now_us, call.services.lost_rows)


def delete_cluster(call: Call) -> dict[str, Any]:
    """Delete the rows, sums and files of a cluster. Reports made from it stay."""
    row = _own_cluster(call)
    store.remove_cluster(
        call.services.archive, row.id, lambda tx: audit(call, tx, "cluster-deleted", row.cluster, name=row.name)
    )
    return {"deleted": row.cluster}


def close_cluster(call: Call) -> dict[str, Any]:
    """Ask a cluster to shut down. Its recorder is told in the response to its next batch."""
    row = _own_cluster(call)
    if not row.is_live:
        raise conflict(f"This cluster is {row.state}: there is nobody to ask.")
    with call.services.archive.write() as tx:
        ask_to_close(tx, row.id)
        audit(call, tx, "cluster-closed", row.cluster, name=row.name)
    return {"asked": row.cluster}


def explain(call: Call) -> Explanation:
    row = find_cluster(call)
    with call.services.archive.read() as tx:
        clients = store.clients_of(tx, row.id)
    cost = cost_of(row, call.account)
    per_hour = cost.per_hour if row.is_live else 0.0
    explanation = explanation_of(
        row, clients, row.state, per_hour, scheduler_now_us(row, call.now_us), call.lost_after_us * 3 // 4
    )
    return {
        "cluster_id": row.cluster,
        "state": row.state,
        "answer": explanation.answer,
        "evidence": list(explanation.evidence),
        "advice": list(explanation.advice),
        "tasks_processing": row.tasks_processing,
        "tasks_queued": row.tasks_queued,
        "tasks_unrunnable": row.tasks_unrunnable,
        "idle_since": moment(row.idle_since_us),
        "idle_timeout": row.idle_timeout_s,
        "clients": [_client_view(client) for client in clients if not client.disconnect_us],
        "cost_per_hour": round(per_hour, 6),
        "cost_so_far": round(cost.total, 6),
    }


def fine_metrics(call: Call) -> dict[str, Any]:
    row = find_cluster(call)
    with call.services.archive.read() as tx:
        return {"items": store.activities_of(tx, row.id)}


async def live(call: Call) -> StreamingResponse:
    """Stream the IDs of changed clusters as Server-Sent Events."""
    news = call.services.live
    if news.full(call.account.id):
        raise unavailable("Too many live pages are open. Try again later.", 30)

    async def stream() -> AsyncIterator[bytes]:
        # Register only once the response is read: a client that is already gone would stay registered forever.
        listener, began = news.listen(call.account.id, call.identity.user), time.monotonic()
        try:
            yield b": connected\n\n"
            async for changed in listener.changes(HEARTBEAT_S):
                if changed:
                    yield f"event: changed\ndata: {json.dumps(sorted(changed))}\n\n".encode()
                    # At most two events per second, however busy the clusters are.
                    await asyncio.sleep(0.5)
                else:
                    yield b": still here\n\n"
                if time.monotonic() - began > MAX_STREAM_S:
                    return
        finally:
            news.leave(listener)

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}
    return StreamingResponse(stream(), media_type="text/event-stream", headers=headers)


#: The kind of event that records the target of adaptive scaling.
TARGET = "wanted-workers"
SECOND = 1_000_000
#: A cluster with so few tasks is shown in steps of a second while it is young: totals have steps of ten. Reading them takes 50 ms.
MAX_YOUNG_TASKS = 20_000
HISTORY_COLUMNS = ("time_us", "kind", "detail", "start_us", "stop_us", "status")


def history(call: Call) -> History:
    row, services = find_cluster(call), call.services
    start, end = store.life_of(row)
    is_young = end - start <= MAX_STEPS * SECOND and 0 < row.tasks <= MAX_YOUNG_TASKS
    steps = steps_of(start, end, SECOND if is_young else BUCKET)
    with services.archive.read() as tx:
        sums = store.sums_of(tx, row.id, steps)
        workers = store.workers_of(tx, row.id)
    part = Part(("events", "tasks") if is_young else ("events",), columns=HISTORY_COLUMNS)
    recording = read_snapshot(services.archive, call.account.id, row.id, row.name, part, LISTED)
    there, threads = present(
        [Life(worker.start_us, worker.end_us or end, worker.nthreads) for worker in workers], steps
    )
    times, targets = _asked(recording["events"])
    if is_young:
        found = sum_tasks(recording["tasks"], steps)
    else:
        found = TaskSums(busy_threads(sums["compute_us"], threads, steps), sums["tasks"], sums["errors"])
    return {
        "start": moment(start),
        "step": steps.step_us / 1e6,
        "edges": _rounded((np.clip(steps.edges, start, end) - start) / 1e6),
        "workers": _rounded(there),
        "threads": _rounded(threads),
        "busy": _rounded(found.busy),
        "tasks": [int(n) for n in found.tasks],
        "errors": [int(n) for n in found.errors],
        "wanted": wanted_workers(times, targets, steps),
    }


def _asked(events: Table) -> tuple[list[int], list[int]]:
    """Return when adaptive scaling requested how many workers. Events without a number are ignored."""
    rows = events.take(np.flatnonzero(events["kind"] == TARGET))
    times: list[int] = []
    targets: list[int] = []
    for moment_us, detail in zip(rows["time_us"].tolist(), rows["detail"].tolist(), strict=True):
        wanted = parsed(detail, {}).get("wanted")
        if type(wanted) is int:
            times.append(moment_us)
            targets.append(clean(wanted))
    return times, targets


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 3) for value in values]


ROUTES = [
    Route("GET", "/api/v1/clusters", list_clusters, "read", "List clusters, newest first", query=ClustersQuery),
    Route(
        "GET",
        "/api/v1/clusters/{cluster}",
        get_cluster,
        "read",
        "Return a cluster with its workers, clients and prefixes",
    ),
    Route(
        "PATCH", "/api/v1/clusters/{cluster}", change_cluster, "write", "Rename or tag a cluster", body=ClusterChange
    ),
    Route("DELETE", "/api/v1/clusters/{cluster}", delete_cluster, "write", "Delete a cluster and its data"),
    Route("POST", "/api/v1/clusters/{cluster}/close", close_cluster, "write", "Ask a cluster to shut down"),
    Route("GET", "/api/v1/clusters/{cluster}/explain", explain, "read", "Explain why it is still running"),
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/fine-metrics",
        fine_metrics,
        "read",
        "Return fine performance metrics, summed",
    ),
    Route("GET", "/api/v1/live", live, "read", "Stream the IDs of changed clusters", answers="text/event-stream"),
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/history",
        history,
        "read",
        "Return workers and busy threads over time",
        heavy=True,
    ),
]
