"""Computations of a cluster or of the whole account."""

from __future__ import annotations

from typing import Any

import msgspec

from daskscope.server.contract import OneComputation
from daskscope.server.earlier_runs import usual_duration
from daskscope.server.errors import not_found
from daskscope.server.http import parameters
from daskscope.server.http.parameters import Limit, Place, Text, find_cluster, run_of, since_us
from daskscope.server.http.routing import Call, Route
from daskscope.server.serializers import computation_view, prefix_view, scheduler_now_us, usual_view
from daskscope.storage.clusters import prefixes_of
from daskscope.storage.computations import earlier_runs
from daskscope.storage.computations import list_computations as stored

#: Maximum earlier runs listed with a computation.
MAX_EARLIER = 10


class ListQuery(msgspec.Struct, forbid_unknown_fields=True):
    cluster_id: Text = ""
    since: Text = ""
    limit: Limit = 100
    cursor: Place = ""


def list_computations(call: Call) -> dict[str, Any]:
    query: ListQuery = call.query
    run = run_of(call, query.cluster_id)
    after = parameters.decode(query.cursor, int, str, int)
    with call.services.archive.read() as tx:
        rows = stored(
            tx, call.account.id,
            run=run, since_us=since_us(query.since, call.now_us), limit=query.limit + 1, after=after,
        )  # fmt: skip
    more, rows = len(rows) > query.limit, rows[: query.limit]
    items = [computation_view(row, call.account, call.services.url, call.now_us) for row in rows]
    last = rows[-1] if more else None
    return {
        "items": items,
        "next": parameters.encode(last.start_us, last.computation, last.run_id) if last else None,
    }


def get_computation(call: Call) -> OneComputation:
    cluster = find_cluster(call)
    run, name = cluster.id, call.path("computation")
    with call.services.archive.read() as tx:
        rows = stored(tx, call.account.id, run=run, computation=name)
        if not rows:
            raise not_found("such computation")
        prefixes = prefixes_of(tx, run, name)
        earlier = earlier_runs(tx, call.account.id, rows[0], MAX_EARLIER)
        runs = call.services.earlier_runs.of(tx, call.account.id, rows[0]) if rows[0].state == "running" else []
    return {
        **computation_view(rows[0], call.account, call.services.url, call.now_us),
        "prefixes": [prefix_view(*prefix) for prefix in prefixes],
        "earlier": [computation_view(row, call.account, call.services.url, call.now_us) for row in earlier],
        "usual": usual_view(usual_duration(rows[0], runs, scheduler_now_us(cluster, call.now_us))),
    }


ROUTES = [
    Route("GET", "/api/v1/computations", list_computations, "read", "List computations, newest first", query=ListQuery),
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/computations/{computation}",
        get_computation,
        "read",
        "Return a computation with its prefixes",
    ),
]
