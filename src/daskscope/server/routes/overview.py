"""The first page of a team: what runs, what failed, what burns money, and how much there was of everything."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated, Any

import msgspec
import numpy as np

from daskscope.analysis.spread import spread
from daskscope.server.contract import Day, Overview, WeekCell
from daskscope.server.routes.clusters import Text
from daskscope.server.routes.reports import report_view
from daskscope.server.routing import Call, Route
from daskscope.server.since import since_us
from daskscope.server.views import cluster_view, computation_view, cost_of, seconds
from daskscope.storage import overview as store
from daskscope.storage.clusters import ClusterFilter, count_clusters, list_clusters
from daskscope.storage.computations import list_computations
from daskscope.storage.reports import list_reports

DAY_US = 24 * 3600 * 1_000_000
EPOCH = date(1970, 1, 1)
#: Of each kind on the first page.
FEW = 5
MOST_RUNS = 20_000
WEEKS = 12


class OverviewQuery(msgspec.Struct, forbid_unknown_fields=True):
    #: Since when failures are listed: the viewer's midnight.
    failed_since: Text = "1 day"
    days: Annotated[int, msgspec.Meta(ge=1, le=366)] = 14


def overview(call: Call) -> Overview:
    query: OverviewQuery = call.query
    services, account = call.services, call.account
    since = since_us(query.failed_since, call.now_us)
    today = call.now_us // DAY_US
    first_day = today - query.days + 1
    with services.database.read() as connection:

        def clusters(states: tuple[str, ...], limit: int, since: int = 0) -> list[dict[str, Any]]:
            wanted = ClusterFilter(since_us=since, states=states, limit=limit)
            return list_clusters(connection, account.id, wanted, call.now_us, call.lost_after_us)

        running, idle = clusters(("running",), FEW), clusters(("idle",), 1000)
        recent = clusters((), MOST_RUNS, first_day * DAY_US)
        progress = store.progress(connection, [row["id"] for row in running])
        ended = store.ended_computations(connection, account.id, since, call.now_us, call.lost_after_us)
        failed = store.failed_computations(connection, account.id, since, call.now_us, call.lost_after_us, FEW)
        computations = [
            row
            for run, name in failed
            for row in list_computations(
                connection, services.vault, account.id, call.now_us, call.lost_after_us, run=run, computation=name
            )
        ]
        days = store.days_of(connection, account.id, first_day)
        weeks = store.weeks_of(connection, account.id, today - 7 * WEEKS)
        reports = list_reports(connection, account.id, call.now_us, limit=FEW)
        states = count_clusters(connection, account.id, call.now_us, call.lost_after_us)
    idle.sort(key=lambda row: -cost_of(row, account).per_hour)
    n_failed = ended.get("erred", 0) + ended.get("lost", 0)
    return {
        "states": states,
        "running": [
            {"cluster": cluster_view(row, account, services.url, call.now_us), "done": done, "total": total}  # type: ignore[typeddict-item]
            for row in running
            for done, total in [progress.get(row["id"], (0, 0))]
        ],
        "failed": [computation_view(row, account, services.url) for row in computations],  # type: ignore[misc]
        "n_failed": n_failed,
        "n_finished": n_failed + ended.get("done", 0),
        "idle": [cluster_view(row, account, services.url, call.now_us) for row in idle[:FEW]],  # type: ignore[misc]
        "idle_per_hour": round(sum(cost_of(row, account).per_hour for row in idle), 6),
        "days": _days(call, recent, days, first_day, query.days),
        "weeks": [_week(row) for row in weeks],
        "reports": [report_view(row, services.url) for row in reports],  # type: ignore[misc]
    }


def _days(
    call: Call, runs: list[dict[str, Any]], sums: dict[int, dict[str, Any]], first_day: int, count: int
) -> list[Day]:
    """Sums of each day; what is paid for by time is spread over the days a cluster lived."""
    costs = [cost_of(row, call.account) for row in runs]
    start = np.array([row["start_us"] or row["created_us"] for row in runs], dtype=np.float64)
    stop = np.array([row["end_us"] or row["seen_us"] for row in runs], dtype=np.float64)

    def by_day(values: list[float]) -> list[float]:
        return [float(x) for x in spread(start, stop, np.array(values, dtype=np.float64), first_day, count)]

    threads = by_day([row["thread_us"] for row in runs])
    total, idle = by_day([cost.total for cost in costs]), by_day([cost.idle for cost in costs])
    result: list[Day] = []
    for number in range(count):
        row = sums.get(first_day + number, {"tasks": 0, "errors": 0, "compute_us": 0})
        result.append(
            {
                "day": (EPOCH + timedelta(days=first_day + number)).isoformat(),
                "tasks": row["tasks"],
                "errors": row["errors"],
                "compute_seconds": seconds(row["compute_us"]),
                "thread_seconds": seconds(threads[number]),
                "cost": round(total[number], 6),
                "cost_idle": round(idle[number], 6),
            }
        )
    return result


def _week(row: dict[str, Any]) -> WeekCell:
    monday = EPOCH + timedelta(days=7 * row["week"] - 3)
    return {"user": row["user"], "week": monday.isoformat(), "compute_seconds": seconds(row["compute_us"])}


ROUTES = [Route("GET", "/api/v1/overview", overview, "read", "What a team wants to know first", query=OverviewQuery)]
