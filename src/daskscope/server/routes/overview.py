"""The first page of a team: what runs, what failed, what burns money, and how much there was of everything."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from daskscope.server.contract import Day, Overview, WeekCell
from daskscope.server.routes.clusters import Text
from daskscope.server.routes.reports import report_view
from daskscope.server.routes.usage import date_of, paid_by_day
from daskscope.server.routing import Call, Route
from daskscope.server.since import since_us
from daskscope.server.views import cluster_view, computation_view, cost_of, seconds
from daskscope.storage import overview as store
from daskscope.storage.clusters import ClusterFilter, count_clusters, list_clusters
from daskscope.storage.computations import list_computations
from daskscope.storage.reports import list_reports
from daskscope.storage.usage import paid_runs
from daskscope.units import DAY

#: Of each kind on the first page.
FEW = 5
WEEKS = 12


class OverviewQuery(msgspec.Struct, forbid_unknown_fields=True):
    #: Since when failures are listed: the viewer's midnight.
    failed_since: Text = "1 day"
    days: Annotated[int, msgspec.Meta(ge=1, le=366)] = 14


def overview(call: Call) -> Overview:
    query: OverviewQuery = call.query
    services, account = call.services, call.account
    since = since_us(query.failed_since, call.now_us)
    today = call.now_us // DAY
    first_day = today - query.days + 1
    with services.database.read() as connection:

        def clusters(states: tuple[str, ...], limit: int) -> list[dict[str, Any]]:
            wanted = ClusterFilter(states=states, limit=limit)
            return list_clusters(connection, account.id, wanted, call.now_us, call.lost_after_us)

        running, idle = clusters(("running",), FEW), clusters(("idle",), 1000)
        recent = paid_runs(connection, account.id, first_day * DAY)
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
            {"cluster": cluster_view(row, account, services.url, call.now_us), "done": done, "total": total}
            for row in running
            for done, total in [progress.get(row["id"], (0, 0))]
        ],
        "failed": [computation_view(row, account, services.url, call.now_us) for row in computations],
        "n_failed": n_failed,
        "n_finished": n_failed + ended.get("done", 0),
        "idle": [cluster_view(row, account, services.url, call.now_us) for row in idle[:FEW]],
        "idle_per_hour": round(sum(cost_of(row, account).per_hour for row in idle), 6),
        "days": _days(call, recent, days, first_day, query.days),
        "weeks": [_week(row) for row in weeks],
        "reports": [report_view(row, services.url) for row in reports],
    }


def _days(
    call: Call, runs: list[dict[str, Any]], sums: dict[int, dict[str, Any]], first_day: int, count: int
) -> list[Day]:
    """Sums of each day; what is paid for by time is spread over the days a cluster lived."""
    amounts, shares = paid_by_day(runs, call.account, first_day, count)
    threads, total, _, idle = amounts.T @ shares
    result: list[Day] = []
    for number in range(count):
        row = sums.get(first_day + number, {"tasks": 0, "errors": 0, "compute_us": 0})
        result.append(
            {
                "day": date_of(first_day + number),
                "tasks": row["tasks"],
                "errors": row["errors"],
                "compute_seconds": seconds(row["compute_us"]),
                "thread_seconds": round(float(threads[number]), 6),
                "cost": round(float(total[number]), 6),
                "cost_idle": round(float(idle[number]), 6),
            }
        )
    return result


def _week(row: dict[str, Any]) -> WeekCell:
    return {"user": row["user"], "week": date_of(7 * row["week"] - 3), "compute_seconds": seconds(row["compute_us"])}


ROUTES = [Route("GET", "/api/v1/overview", overview, "read", "What a team wants to know first", query=OverviewQuery)]
