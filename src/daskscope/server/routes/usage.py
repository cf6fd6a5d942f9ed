"""Usage and cost of an account by day, user, cluster or prefix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from daskscope.analysis.limits import LARGEST
from daskscope.analysis.rollup import DAY_FIELDS
from daskscope.model.table import Array
from daskscope.server.billing import date_of, paid_by_day
from daskscope.server.contract import Usage, UsageLine
from daskscope.server.http.parameters import Text, since_us
from daskscope.server.http.routing import Call, Route
from daskscope.server.serializers import seconds
from daskscope.storage import overview as store
from daskscope.units import DAY

#: Maximum days of one response: a leap year.
MAX_DAYS = 366


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


ROUTES = [Route("GET", "/api/v1/usage", usage, "read", "Return usage and estimated cost", query=UsageQuery)]
