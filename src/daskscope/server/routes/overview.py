"""What an account used and did: the overview and the usage page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec

from daskscope.analysis.running.rollup import DAY_FIELDS
from daskscope.insights.facts import error_line
from daskscope.model.recording import Array
from daskscope.model.untrusted import LARGEST
from daskscope.server.contract import Cluster, Computation, HostedReport, Usage, UsageLine
from daskscope.server.http.parameters import Text, since_us
from daskscope.server.http.routing import Call, Route
from daskscope.server.views import cluster_view, computation_view, cost_of, date_of, paid_by_day, report_view, seconds
from daskscope.storage.catalog import overview as store
from daskscope.storage.catalog.clusters import ClusterFilter, count_clusters, list_clusters
from daskscope.storage.catalog.computations import list_computations
from daskscope.storage.catalog.overview import paid_runs
from daskscope.storage.catalog.reports import list_reports
from daskscope.storage.catalog.run_groups import fatal_errors
from daskscope.units import DAY

#: Maximum days of one response: a leap year.
MAX_DAYS = 366


class Running(TypedDict):
    """A running cluster and its progress."""

    cluster: Cluster
    done: int
    total: int


class Day(TypedDict):
    """Usage of an account on one day (UTC)."""

    day: str
    tasks: int
    errors: int
    compute_seconds: float
    thread_seconds: float
    cost: float
    cost_idle: float


class WeekCell(TypedDict):
    """Compute time of a member in a week, which starts on Monday."""

    user: str
    week: str
    compute_seconds: float


class FailedComputation(Computation):
    """The last computation of a run that failed."""

    #: The error that failed it; empty if it was not recorded.
    cause: str
    #: Failed computations of its run.
    n_failed: int


class Overview(TypedDict):
    """What the home page shows."""

    states: dict[str, int]
    running: list[Running]
    failed: list[FailedComputation]
    n_failed: int
    n_finished: int
    idle: list[Cluster]
    idle_per_hour: float
    days: list[Day]
    weeks: list[WeekCell]
    reports: list[HostedReport]


class UsageQuery(msgspec.Struct, forbid_unknown_fields=True):
    since: Text = "30 days"
    by: Literal["day", "user", "cluster", "prefix"] = "day"


@dataclass(frozen=True)
class Paid:
    """Paid time: thread seconds and dollars."""

    thread_seconds: float = 0.0
    cost: float = 0.0
    busy: float = 0.0
    idle: float = 0.0


def usage(call: Call) -> Usage:
    """Return sums over executions by the requested key, and the cost of its clusters."""
    query: UsageQuery = call.query
    today = call.now_us // DAY
    first_day = max(since_us(query.since, call.now_us) // DAY, today - MAX_DAYS + 1)
    days = today - first_day + 1
    with call.services.archive.read() as tx:
        rows = store.usage(tx, call.account.id, query.by, first_day)
        runs = store.paid_runs(tx, call.account.id, first_day * DAY)
    amounts, shares = paid_by_day(runs, call.account, first_day, days)
    inside = amounts * shares.sum(axis=1, keepdims=True)
    total = Paid(*(float(value) for value in inside.sum(axis=0)))
    sums = {row.key: row for row in rows}
    if query.by == "prefix":
        lines = _prefixes(rows, total)
    elif query.by == "day":
        daily = amounts.T @ shares
        paid = {first_day + n: Paid(*(float(value) for value in daily[:, n])) for n in range(days)}
        lines = [_line(date_of(day), sums.get(day), paid[day]) for day in range(first_day, today + 1)]
    else:
        # An idle cluster computed nothing but is still on the bill.
        paid = _paid_by([getattr(run, query.by) for run in runs], inside)
        names = {run.cluster: run.name for run in runs} if query.by == "cluster" else {}
        lines = [_line(key, sums.get(key), paid.get(key, Paid()), names.get(key, "")) for key in {**sums, **paid}]
        lines.sort(key=lambda line: -line["cost"])
    whole = store.Usage("", *(min(sum(getattr(row, name) for row in rows), LARGEST) for name in DAY_FIELDS))
    return {"by": query.by, "items": lines, "total": _line("", whole, total), "clusters": len(runs), "estimate": True}


def _paid_by(keys: Sequence[str], inside: Array) -> dict[Any, Paid]:
    sums: dict[str, Array] = {}
    for key, row in zip(keys, inside, strict=True):
        sums[key] = sums[key] + row if key in sums else row
    return {key: Paid(*(float(value) for value in row)) for key, row in sums.items()}


def _prefixes(rows: Sequence[store.Usage], total: Paid) -> list[UsageLine]:
    """Split the cost of busy threads by the compute time of each prefix. Idle time belongs to no prefix."""
    compute = sum(row.compute_us for row in rows) or 1
    busy = [total.busy * row.compute_us / compute for row in rows]
    return [_line(row.key, row, Paid(0.0, part, part, 0.0)) for row, part in zip(rows, busy, strict=True)]


def _line(name: str, sums: store.Usage | None, paid: Paid, label: str = "") -> UsageLine:
    row = sums or store.Usage()
    return {
        "name": name,
        "label": label or name,
        "tasks": row.tasks,
        "errors": row.errors,
        "compute_seconds": seconds(row.compute_us),
        "transfer_seconds": seconds(row.transfer_us),
        "nbytes": row.nbytes,
        "thread_seconds": round(paid.thread_seconds, 6),
        "cost": round(paid.cost, 6),
        "cost_busy": round(paid.busy, 6),
        "cost_idle": round(paid.idle, 6),
    }


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
        causes = fatal_errors(tx, account.id, [run for run, _, _ in failed])
        computations: list[FailedComputation] = [
            {
                **computation_view(row, account, services.url, call.now_us),
                "cause": error_line(causes[run, name]) if (run, name) in causes else "",
                "n_failed": of_run,
            }
            for run, name, of_run in failed
            for row in list_computations(tx, account.id, run=run, computation=name)
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
        "failed": computations,
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


ROUTES = [
    Route("GET", "/api/v1/usage", usage, "read", "Return usage and estimated cost", query=UsageQuery),
    Route("GET", "/api/v1/overview", overview, "read", "Return the numbers of the home page", query=OverviewQuery),
]
