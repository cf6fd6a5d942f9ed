"""Clusters: lists, one of them, and why it is still running."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import msgspec
from starlette.responses import StreamingResponse

from daskscope.analysis.explanation import explain as explanation_of
from daskscope.server import cursor
from daskscope.server.contract import Cluster, ClusterList, ConnectedClient, Explanation, OneCluster, Prefix, Worker
from daskscope.server.failure import bad_request, conflict, not_found, unavailable
from daskscope.server.routing import Call, Route
from daskscope.server.since import since_us
from daskscope.server.views import cluster_view, cost_of, moment, parsed, seconds, there_us
from daskscope.storage import clusters as store
from daskscope.storage.history import recent_busy

#: Seconds between comments on a stream with nothing to say, so that proxies keep it open.
HEARTBEAT_S = 15.0
#: How long a stream lasts. A browser asks again by itself, and whoever was shown the door meanwhile gets no new one.
LONGEST_S = 600.0

#: Columns by the words the API sorts by.
SORTS = {
    "started": "start_us",
    "last_seen": "seen_us",
    "tasks": "tasks",
    "exceptions": "exceptions",
    "cluster_time": "thread_us",
    "workers": "peak_workers",
    "threads": "peak_threads",
}
Limit = Annotated[int, msgspec.Meta(ge=1, le=cursor.MOST)]
Text = Annotated[str, msgspec.Meta(max_length=200)]
#: Where a page ended: a name of 500 bytes, escaped and encoded.
Place = Annotated[str, msgspec.Meta(max_length=4_000)]


class ListQuery(msgspec.Struct, forbid_unknown_fields=True):
    since: Text = "7 days"
    user: Text = ""
    state: Text = ""
    search: Text = ""
    tag: Text = ""
    limit: Limit = 100
    cursor: Place = ""
    sort: Literal["started", "last_seen", "tasks", "exceptions", "cluster_time", "workers", "threads"] = "started"
    up: bool = False
    #: Also which share of each cluster's threads was busy in its last hour.
    busy: bool = False


class ClusterChange(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    tags: (
        Annotated[list[Annotated[str, msgspec.Meta(min_length=1, max_length=60)]], msgspec.Meta(max_length=50)] | None
    ) = None


def find(call: Call) -> dict[str, Any]:
    """The cluster of the path."""
    with call.services.database.read() as connection:
        row = store.find_cluster(connection, call.account.id, call.path("cluster"), call.now_us, call.lost_after_us)
    if row is None:
        raise not_found("such cluster")
    return row


def list_clusters(call: Call) -> ClusterList:
    query: ListQuery = call.query
    states = tuple(part for part in query.state.split(",") if part)
    if unknown := set(states) - set(store.STATES):
        raise bad_request(f"There is no state {sorted(unknown)[0]!r}. The states are {', '.join(store.STATES)}.")
    after = cursor.decode(query.cursor, int, int)
    wanted = store.ClusterFilter(
        since_us(query.since, call.now_us), query.user, states, query.search, query.tag, query.limit + 1,
        SORTS[query.sort], query.up, after,
    )  # fmt: skip
    with call.services.database.read() as connection:
        rows = store.list_clusters(connection, call.account.id, wanted, call.now_us, call.lost_after_us)
        counts = store.count_clusters(connection, call.account.id, call.now_us, call.lost_after_us)
        more, rows = len(rows) > query.limit, rows[: query.limit]
        busy = recent_busy(connection, rows) if query.busy else {}
    items = [cluster_view(row, call.account, call.services.url, call.now_us) for row in rows]
    place = cursor.encode(rows[-1][SORTS[query.sort]], rows[-1]["id"]) if more else None
    return {
        "items": items,
        "next": place,
        "states": {state: counts.get(state, 0) for state in store.STATES},
        "busy": {row["cluster"]: busy[row["id"]] for row in rows if row["id"] in busy},
    }


def get_cluster(call: Call) -> OneCluster:
    row = find(call)
    with call.services.database.read() as connection:
        workers = store.workers_of(connection, row["id"])
        clients = store.clients_of(connection, row["id"])
        prefixes = store.prefixes_of(connection, row["id"])
    return {
        **cluster_view(row, call.account, call.services.url, call.now_us),
        "config": parsed(row["config"], {}),
        "idle_timeout": row["idle_timeout_s"],
        "worker_list": [_worker_view(worker) for worker in workers],
        "clients": [_client_view(client) for client in clients],
        "prefixes": [prefix_view(prefix) for prefix in prefixes],
    }


def _worker_view(row: dict[str, Any]) -> Worker:
    return {
        "server_id": row["server_id"],
        "worker": row["worker"],
        "name": row["name"],
        "host": row["host"],
        "nthreads": row["nthreads"],
        "memory_limit": row["memory_limit"],
        "verdict": row["verdict"],
        "evidence": row["evidence"],
        "start": moment(row["start_us"]),
        "end": moment(row["end_us"]),
        "memory": row["memory"] or 0,
        "cpu_percent": row["cpu_percent"] or 0.0,
        "lost_results": row["lost_count"],
        "processing_at_end": row["processing_count"],
    }


def _client_view(row: dict[str, Any]) -> ConnectedClient:
    return {
        "client": row["client"],
        "connected": moment(row["connect_us"]),
        "last_seen": moment(row["last_seen_us"]),
        "disconnected": moment(row["disconnect_us"]),
        "held_keys": row["held_keys"],
        "held_nbytes": row["held_nbytes"],
    }


def prefix_view(row: dict[str, Any]) -> Prefix:
    compute, timed = seconds(row["compute_us"]), row["tasks"] - row["killed"]
    return {
        "prefix": row["prefix"],
        "tasks": row["tasks"],
        "errors": row["errors"],
        "retried": row["retried"],
        "killed": row["killed"],
        "nbytes": row["nbytes"],
        "compute": compute,
        "transfer": seconds(row["transfer_us"]),
        "disk": seconds(row["disk_us"]),
        "deserialize": seconds(row["deserialize_us"]),
        "longest": seconds(row["longest_us"]),
        # Those that were killed with their worker have no time of their own.
        "mean": round(compute / timed, 6) if timed > 0 else 0.0,
    }


def change_cluster(call: Call) -> Cluster:
    row, change = find(call), call.body
    values: dict[str, Any] = {}
    if change.name is not None:
        values["name"] = change.name
    if change.tags is not None:
        values["tags"] = json.dumps(list(dict.fromkeys(change.tags)))
    if values:
        with call.services.database.write() as connection:
            store.change_cluster(connection, row["id"], values)
    return cluster_view({**row, **values}, call.account, call.services.url, call.now_us)


def delete_cluster(call: Call) -> dict[str, Any]:
    """Deletes rows, sums and files of a cluster; reports made from it stay."""
    row = find(call)
    with call.services.database.write() as connection:
        paths = store.delete_cluster(connection, row["id"])
    # After the commit: a file without a row is swept up, a row without a file is a loss.
    for path in paths:
        call.services.store.delete(path)
    return {"deleted": row["cluster"]}


def close_cluster(call: Call) -> dict[str, Any]:
    """Ask a cluster to shut down; its recorder is told in the answer to its next batch."""
    row = find(call)
    if row["state"] not in ("running", "idle"):
        raise conflict(f"This cluster is {row['state']}: there is nobody to ask.")
    with call.services.database.write() as connection:
        store.ask_to_close(connection, row["id"], call.now_us)
    return {"asked": row["cluster"]}


def explain(call: Call) -> Explanation:
    row = find(call)
    with call.services.database.read() as connection:
        clients = store.clients_of(connection, row["id"])
    live = row["state"] in ("running", "idle")
    cost = cost_of(row, call.account)
    explanation = explanation_of(row, clients, row["state"], cost.per_hour if live else 0.0, there_us(row, call.now_us))
    return {
        "cluster_id": row["cluster"],
        "state": row["state"],
        "answer": explanation.answer,
        "evidence": list(explanation.evidence),
        "advice": list(explanation.advice),
        "tasks_processing": row["tasks_processing"],
        "tasks_queued": row["tasks_queued"],
        "tasks_unrunnable": row["tasks_unrunnable"],
        "idle_since": moment(row["idle_since_us"]),
        "idle_timeout": row["idle_timeout_s"],
        "clients": [_client_view(client) for client in clients if not client["disconnect_us"]],
        "cost_per_hour": round(cost.per_hour, 6) if live else 0.0,
        "cost_so_far": round(cost.total, 6),
    }


def fine_metrics(call: Call) -> dict[str, Any]:
    row = find(call)
    with call.services.database.read() as connection:
        return {"items": store.activities_of(connection, row["id"])}


async def live(call: Call) -> StreamingResponse:
    """Server-Sent Events: the ids of clusters that got something new."""
    news = call.services.live
    if news.full(call.account.id):
        raise unavailable("Too many pages wait for news. This one can ask again.", 30)

    async def stream() -> AsyncIterator[bytes]:
        # Not before somebody reads: a client that is gone already would be listened for, for ever.
        listener, began = news.listen(call.account.id), time.monotonic()
        try:
            yield b": connected\n\n"
            async for changed in listener.changes(HEARTBEAT_S):
                if changed:
                    yield f"event: changed\ndata: {json.dumps(sorted(changed))}\n\n".encode()
                    # At most two a second, however busy the clusters are.
                    await asyncio.sleep(0.5)
                else:
                    yield b": still here\n\n"
                if time.monotonic() - began > LONGEST_S:
                    return
        finally:
            news.leave(listener)

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}
    return StreamingResponse(stream(), media_type="text/event-stream", headers=headers)


ROUTES = [
    Route("GET", "/api/v1/clusters", list_clusters, "read", "Clusters, the newest first", query=ListQuery),
    Route(
        "GET", "/api/v1/clusters/{cluster}", get_cluster, "read", "One cluster with its workers, clients and prefixes"
    ),
    Route(
        "PATCH", "/api/v1/clusters/{cluster}", change_cluster, "write", "Rename or tag a cluster", body=ClusterChange
    ),
    Route("DELETE", "/api/v1/clusters/{cluster}", delete_cluster, "write", "Delete everything of a cluster"),
    Route("POST", "/api/v1/clusters/{cluster}/close", close_cluster, "write", "Ask a cluster to shut down"),
    Route("GET", "/api/v1/clusters/{cluster}/explain", explain, "read", "Why it is still running"),
    Route("GET", "/api/v1/clusters/{cluster}/fine-metrics", fine_metrics, "read", "Fine performance metrics, summed"),
    Route("GET", "/api/v1/live", live, "read", "Which clusters change, as they do", answers="text/event-stream"),
]
