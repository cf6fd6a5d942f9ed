"""Sums over an account's executions by day, user, cluster or prefix, and the runs whose time was paid for."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.sums import summed

FIELDS = ("tasks", "errors", "compute_us", "transfer_us", "nbytes")
MOST = 10_000
#: What the cost of a run is made of.
PAID = (
    "id", "cluster", "name", "user", "tags", "prices", "start_us", "end_us", "seen_us", "created_us",
    "thread_us", "memory_byte_s", "compute_us", "threads", "memory_limit",
)  # fmt: skip


def usage(connection: Connection, account: int, by: str, first_day: int) -> list[dict[str, Any]]:
    """The sums of every day since ``first_day`` (counted from the epoch), by ``day``, ``user``, ``cluster`` or ``prefix``."""
    days, runs = schema.days, schema.runs
    keys = {"day": days.c.day, "user": runs.c.user, "cluster": runs.c.cluster, "prefix": days.c.prefix}
    key = keys[by]
    query = sa.select(key.label("key"), *(summed(days.c[name]).label(name) for name in FIELDS))
    if by in ("user", "cluster"):
        query = query.join(runs, runs.c.id == days.c.run_id)
    query = (
        query.where(days.c.account_id == account, days.c.day >= first_day)
        .group_by(key)
        .order_by(key if by == "day" else sa.desc("compute_us"))
        .limit(MOST)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def paid_runs(connection: Connection, account: int, since_us: int) -> list[dict[str, Any]]:
    """Runs that were still heard of after a moment."""
    runs = schema.runs
    columns = [runs.c[name] for name in PAID]
    query = sa.select(*columns).where(runs.c.account_id == account, runs.c.received_us >= since_us)
    return [dict(row) for row in connection.execute(query).mappings()]
