"""Sums over an account's executions by day, user, cluster or prefix."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema

FIELDS = ("tasks", "errors", "compute_us", "transfer_us", "nbytes")
MOST = 10_000


def usage(connection: Connection, account: int, by: str, first_day: int) -> list[dict[str, Any]]:
    """The sums of every day since ``first_day`` (counted from the epoch), by ``day``, ``user``, ``cluster`` or ``prefix``."""
    days, runs = schema.days, schema.runs
    keys = {"day": days.c.day, "user": runs.c.user, "cluster": runs.c.cluster, "prefix": days.c.prefix}
    key = keys[by]
    sums = [sa.cast(sa.func.sum(days.c[name]), sa.BigInteger).label(name) for name in FIELDS]
    query = sa.select(key.label("key"), *sums)
    if by in ("user", "cluster"):
        query = query.join(runs, runs.c.id == days.c.run_id)
    query = (
        query.where(days.c.account_id == account, days.c.day >= first_day)
        .group_by(key)
        .order_by(key if by == "day" else sa.desc("compute_us"))
        .limit(MOST)
    )
    return [dict(row) for row in connection.execute(query).mappings()]
