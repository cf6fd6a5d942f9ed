"""What an account used: by day, user, cluster or prefix, and what that cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal

import msgspec
import numpy as np

from daskscope.analysis.rollup import LARGEST
from daskscope.analysis.spread import day_shares
from daskscope.model.table import Array
from daskscope.server.contract import Usage, UsageLine
from daskscope.server.routes.clusters import Text
from daskscope.server.routing import Call, Route
from daskscope.server.since import since_us
from daskscope.server.views import cost_of, seconds
from daskscope.storage import usage as store
from daskscope.storage.accounts import Account
from daskscope.units import DAY

EPOCH = date(1970, 1, 1)
#: Days of one answer: a leap year.
MOST_DAYS = 366


class UsageQuery(msgspec.Struct, forbid_unknown_fields=True):
    since: Text = "30 days"
    by: Literal["day", "user", "cluster", "prefix"] = "day"


@dataclass(frozen=True)
class Paid:
    """What is paid for by time, in seconds of threads and in dollars."""

    thread_seconds: float = 0.0
    cost: float = 0.0
    busy: float = 0.0
    idle: float = 0.0


def paid_by_day(runs: Sequence[dict[str, Any]], account: Account, first_day: int, days: int) -> tuple[Array, Array]:
    """Four amounts of each run (as in ``Paid``), and the share of each that falls on each day."""
    costs = [cost_of(run, account) for run in runs]
    amounts = np.array(
        [[run["thread_us"] / 1e6, cost.total, cost.busy, cost.idle] for run, cost in zip(runs, costs, strict=True)],
        dtype=np.float64,
    ).reshape(-1, 4)
    start = np.array([run["start_us"] or run["created_us"] for run in runs], dtype=np.float64)
    stop = np.array([run["end_us"] or run["seen_us"] for run in runs], dtype=np.float64)
    return amounts, day_shares(start, stop, first_day, days)


def usage(call: Call) -> Usage:
    """Sums over executions by the asked key, and what its clusters cost in these days."""
    query: UsageQuery = call.query
    today = call.now_us // DAY
    first_day = max(since_us(query.since, call.now_us) // DAY, today - MOST_DAYS + 1)
    days = today - first_day + 1
    with call.services.database.read() as connection:
        rows = store.usage(connection, call.account.id, query.by, first_day)
        runs = store.paid_runs(connection, call.account.id, first_day * DAY)
    amounts, shares = paid_by_day(runs, call.account, first_day, days)
    inside = amounts * shares.sum(axis=1, keepdims=True)
    total = Paid(*(float(value) for value in inside.sum(axis=0)))
    sums = {row["key"]: row for row in rows}
    if query.by == "prefix":
        lines = _prefixes(rows, total)
    elif query.by == "day":
        daily = amounts.T @ shares
        paid = {first_day + n: Paid(*(float(value) for value in daily[:, n])) for n in range(days)}
        lines = [_line(date_of(day), sums.get(day), paid[day]) for day in range(first_day, today + 1)]
    else:
        # A cluster that stood idle computed nothing, and still has to be on the bill.
        paid = _paid_by([run[query.by] for run in runs], inside)
        names = {run["cluster"]: run["name"] for run in runs} if query.by == "cluster" else {}
        lines = [_line(key, sums.get(key), paid.get(key, Paid()), names.get(key, "")) for key in {**sums, **paid}]
        lines.sort(key=lambda line: -line["cost"])
    whole = {name: min(sum(row[name] for row in rows), LARGEST) for name in store.FIELDS}
    return {"by": query.by, "items": lines, "total": _line("", whole, total), "clusters": len(runs), "estimate": True}


def _paid_by(keys: Sequence[str], inside: Array) -> dict[Any, Paid]:
    sums: dict[str, Array] = {}
    for key, row in zip(keys, inside, strict=True):
        sums[key] = sums[key] + row if key in sums else row
    return {key: Paid(*(float(value) for value in row)) for key, row in sums.items()}


def _prefixes(rows: Sequence[dict[str, Any]], total: Paid) -> list[UsageLine]:
    """Of what was paid for busy threads, each prefix has the share of its compute time; nobody's prefix is idle."""
    compute = sum(row["compute_us"] for row in rows) or 1
    busy = [total.busy * row["compute_us"] / compute for row in rows]
    return [_line(row["key"], row, Paid(0.0, part, part, 0.0)) for row, part in zip(rows, busy, strict=True)]


def _line(name: str, sums: dict[str, Any] | None, paid: Paid, label: str = "") -> UsageLine:
    row = sums or dict.fromkeys(store.FIELDS, 0)
    return {
        "name": name,
        "label": label or name,
        "tasks": row["tasks"],
        "errors": row["errors"],
        "compute_seconds": seconds(row["compute_us"]),
        "transfer_seconds": seconds(row["transfer_us"]),
        "nbytes": row["nbytes"],
        "thread_seconds": round(paid.thread_seconds, 6),
        "cost": round(paid.cost, 6),
        "cost_busy": round(paid.busy, 6),
        "cost_idle": round(paid.idle, 6),
    }


def date_of(day: int) -> str:
    return (EPOCH + timedelta(days=day)).isoformat()


ROUTES = [
    Route("GET", "/api/v1/usage", usage, "read", "What was used, and what it cost (an estimate)", query=UsageQuery)
]
