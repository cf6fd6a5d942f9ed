"""The home page of a team: running and failed work, cost, and totals."""

from __future__ import annotations

from typing import Annotated

import msgspec

from daskscope.server.billing import date_of, paid_by_day
from daskscope.server.contract import Day, Overview, WeekCell
from daskscope.server.http.parameters import Text, since_us
from daskscope.server.http.routing import Call, Route
from daskscope.server.serializers import cluster_view, computation_view, cost_of, report_view, seconds
from daskscope.storage import overview as store
from daskscope.storage.clusters import ClusterFilter, count_clusters, list_clusters
from daskscope.storage.computations import list_computations
from daskscope.storage.overview import paid_runs
from daskscope.storage.reports import list_reports
from daskscope.units import DAY

#: Maximum items of each list.
MAX_ITEMS = 5
WEEKS = 12


class OverviewQuery(msgspec.Struct, forbid_unknown_fields=True):
    #: Start of the list of failures: midnight of the viewer.
    failed_since: Text = "1 day"
    days: Annotated[int, msgspec.Meta(ge=1, le=366)] = 14


def overview(call: Call) -> Overview:
    query: OverviewQuery = call.query
    services, account = call.services, call.account
    since = since_us(query.failed_since, call.now_us)
    today = call.now_us // DAY
    first_day = today - query.days + 1
    with services.archive.read() as tx:
        running = list_clusters(tx, account.id, ClusterFilter(states=("running",), limit=MAX_ITEMS))
        idle = list_clusters(tx, account.id, ClusterFilter(states=("idle",), limit=1000))
        recent = paid_runs(tx, account.id, first_day * DAY)
        progress = store.progress(tx, [row.id for row in running])
        ended = store.ended_computations(tx, account.id, since)
        failed = store.failed_computations(tx, account.id, since, MAX_ITEMS)
        computations = [
            row for run, name in failed for row in list_computations(tx, account.id, run=run, computation=name)
        ]
        days = {row.key: row for row in store.usage(tx, account.id, "day", first_day)}
        weeks = store.weeks_of(tx, account.id, today - 7 * WEEKS)
        reports = list_reports(tx, account.id, limit=MAX_ITEMS)
        states = count_clusters(tx, account.id)
    idle.sort(key=lambda row: -cost_of(row, account).per_hour)
    n_failed = sum(ended.get(state, 0) for state in store.FAILED_STATES)
    return {
        "states": states,
        "running": [
            {
                "cluster": cluster_view(row, account, services.url, call.now_us, services.lost_rows),
                "done": done,
                "total": total,
            }
            for row in running
            for done, total in [progress.get(row.id, (0, 0))]
        ],
        "failed": [computation_view(row, account, services.url, call.now_us) for row in computations],
        "n_failed": n_failed,
        "n_finished": n_failed + ended.get("finished", 0),
        "idle": [cluster_view(row, account, services.url, call.now_us, services.lost_rows) for row in idle[:MAX_ITEMS]],
        "idle_per_hour": round(sum(cost_of(row, account).per_hour for row in idle), 6),
        "days": _days(call, recent, days, first_day, query.days),
        "weeks": [_week(*row) for row in weeks],
        "reports": [report_view(row, services.url) for row in reports],
    }


def _days(call: Call, runs: list[store.PaidRun], sums: dict[int, store.Usage], first_day: int, count: int) -> list[Day]:
    """Return the sums of each day. What is paid by time is spread over the days a cluster ran."""
    amounts, shares = paid_by_day(runs, call.account, first_day, count)
    threads, total, _, idle = amounts.T @ shares
    result: list[Day] = []
    for number in range(count):
        row = sums.get(first_day + number, store.Usage())
        result.append(
            {
                "day": date_of(first_day + number),
                "tasks": row.tasks,
                "errors": row.errors,
                "compute_seconds": seconds(row.compute_us),
                "thread_seconds": round(float(threads[number]), 6),
                "cost": round(float(total[number]), 6),
                "cost_idle": round(float(idle[number]), 6),
            }
        )
    return result


def _week(user: str, week: int, compute_us: int) -> WeekCell:
    return {"user": user, "week": date_of(7 * week - 3), "compute_seconds": seconds(compute_us)}


ROUTES = [Route("GET", "/api/v1/overview", overview, "read", "Return what the home page shows", query=OverviewQuery)]
