"""What an account used: by day, user, cluster or prefix, and what that cost."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from daskscope.server.routes.clusters import Text
from daskscope.server.routing import Call, Route
from daskscope.server.since import since_us
from daskscope.server.views import cost_of, seconds
from daskscope.storage import usage as store
from daskscope.storage.clusters import ClusterFilter, list_clusters

DAY_US = 24 * 3600 * 1_000_000


class UsageQuery(msgspec.Struct, forbid_unknown_fields=True):
    since: Text = "30 days"
    by: Literal["day", "user", "cluster", "prefix"] = "day"


def usage(call: Call) -> dict[str, Any]:
    """Sums over executions by the asked key; cost by cluster and user, which have capacity that prefixes share."""
    query: UsageQuery = call.query
    begin = since_us(query.since, call.now_us)
    with call.services.database.read() as connection:
        rows = store.usage(connection, call.account.id, query.by, begin // DAY_US)
        runs = list_clusters(
            connection, call.account.id, ClusterFilter(since_us=begin, limit=100_000), call.now_us, call.lost_after_us
        )
    items = [
        {
            query.by: row["key"], "tasks": row["tasks"], "errors": row["errors"],
            "compute_seconds": seconds(row["compute_us"]), "transfer_seconds": seconds(row["transfer_us"]),
            "nbytes": row["nbytes"],
        }
        for row in rows
    ]  # fmt: skip
    costs: dict[str, dict[str, float]] = {}
    totals = {"cost": 0.0, "cost_busy": 0.0, "cost_idle": 0.0, "thread_seconds": 0.0, "clusters": len(runs)}
    for run in runs:
        cost = cost_of(run, call.account)
        key = {"user": run["user"], "cluster": run["cluster"]}.get(query.by, "")
        mine = costs.setdefault(key, {"cost": 0.0, "cost_busy": 0.0, "cost_idle": 0.0, "thread_seconds": 0.0})
        for name, value in (
            ("cost", cost.total),
            ("cost_busy", cost.busy),
            ("cost_idle", cost.idle),
            ("thread_seconds", run["thread_us"] / 1e6),
        ):
            mine[name] += value
            totals[name] += value
    if query.by in ("user", "cluster"):
        for item in items:
            item |= {name: round(value, 6) for name, value in costs.get(item[query.by], {}).items()}
    total = {name: round(value, 6) for name, value in totals.items()}
    return {"by": query.by, "items": items, "total": total, "estimate": True}


ROUTES = [
    Route("GET", "/api/v1/usage", usage, "read", "What was used, and what it cost (an estimate)", query=UsageQuery)
]
