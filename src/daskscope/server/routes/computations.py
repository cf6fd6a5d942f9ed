"""Computations of a cluster or of the whole account."""

from __future__ import annotations

from typing import Any

import msgspec

from daskscope.server import cursor
from daskscope.server.contract import OneComputation
from daskscope.server.failure import not_found
from daskscope.server.routes.clusters import Limit, Place, Text, prefix_view
from daskscope.server.routing import Call, Route
from daskscope.server.since import since_us
from daskscope.server.views import computation_view
from daskscope.storage.clusters import find_cluster, prefixes_of
from daskscope.storage.computations import earlier_runs
from daskscope.storage.computations import list_computations as stored

#: Earlier runs that are shown beside a computation.
FEW = 10


class ListQuery(msgspec.Struct, forbid_unknown_fields=True):
    cluster_id: Text = ""
    since: Text = ""
    limit: Limit = 100
    cursor: Place = ""


def run_of(call: Call, cluster: str) -> int | None:
    """The number of a named cluster; None where none is named."""
    if not cluster:
        return None
    with call.services.database.read() as connection:
        row = find_cluster(connection, call.account.id, cluster, call.now_us, call.lost_after_us)
    if row is None:
        raise not_found("such cluster")
    return int(row["id"])


def list_computations(call: Call) -> dict[str, Any]:
    query: ListQuery = call.query
    run = run_of(call, query.cluster_id)
    after = cursor.decode(query.cursor, int, str, int)
    with call.services.database.read() as connection:
        rows = stored(
            connection, call.services.vault, call.account.id, call.now_us, call.lost_after_us,
            run=run, since_us=since_us(query.since, call.now_us), limit=query.limit + 1, after=after,
        )  # fmt: skip
    more, rows = len(rows) > query.limit, rows[: query.limit]
    items = [computation_view(row, call.account, call.services.url, call.now_us) for row in rows]
    last = rows[-1] if more else None
    return {
        "items": items,
        "next": cursor.encode(last["start_us"], last["computation"], last["run_id"]) if last else None,
    }


def get_computation(call: Call) -> OneComputation:
    run = run_of(call, call.path("cluster"))
    assert run is not None
    name = call.path("computation")
    with call.services.database.read() as connection:
        rows = stored(
            connection, call.services.vault, call.account.id, call.now_us, call.lost_after_us, run=run, computation=name
        )
        if not rows:
            raise not_found("such computation")
        prefixes = prefixes_of(connection, run, name)
        earlier = earlier_runs(
            connection, call.services.vault, call.account.id, rows[0], call.now_us, call.lost_after_us, FEW
        )
    view = computation_view(rows[0], call.account, call.services.url, call.now_us)
    return {
        **view,
        "prefixes": [prefix_view(prefix) for prefix in prefixes],
        "earlier": [computation_view(row, call.account, call.services.url, call.now_us) for row in earlier],
    }


ROUTES = [
    Route("GET", "/api/v1/computations", list_computations, "read", "Computations, the newest first", query=ListQuery),
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/computations/{computation}",
        get_computation,
        "read",
        "One computation, by prefix",
    ),
]
