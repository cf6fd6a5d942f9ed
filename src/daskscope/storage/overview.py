"""What a team wants to know first, from the roll-ups."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.clusters import Row, state_of
from daskscope.storage.sums import summed

FINISHED_STATES = ("memory", "erred", "released", "forgotten")


def progress(connection: Connection, runs: list[int]) -> dict[int, tuple[int, int]]:
    """Of the computations that run now, by run: tasks that are done, and all."""
    if not runs:
        return {}
    table = schema.computations
    done = sum((table.c[name] for name in FINISHED_STATES), sa.literal(0))
    query = (
        sa.select(table.c.run_id, summed(done).label("done"), summed(table.c.tasks).label("tasks"))
        .where(table.c.run_id.in_(runs), table.c.state == "running")
        .group_by(table.c.run_id)
    )
    return {row.run_id: (int(row.done), int(row.tasks)) for row in connection.execute(query)}


def ended_computations(
    connection: Connection, account: int, since_us: int, now_us: int, lost_after_us: int
) -> dict[str, int]:
    """Computations that ended since a moment, by how; those of lost clusters among them."""
    table, runs = schema.computations, schema.runs
    gone = state_of(now_us, lost_after_us).in_(("lost", "finished"))
    state = sa.case((sa.and_(table.c.state == "running", gone), "lost"), else_=table.c.state).label("state")
    query = (
        sa.select(state, sa.func.count().label("n"))
        .join(runs, runs.c.id == table.c.run_id)
        .where(table.c.account_id == account, table.c.seen_us >= since_us)
        .group_by(state)
    )
    return {row.state: row.n for row in connection.execute(query)}


def failed_computations(
    connection: Connection, account: int, since_us: int, now_us: int, lost_after_us: int, limit: int
) -> list[tuple[int, str]]:
    """The newest computations that erred or were lost since a moment: run and id."""
    table, runs = schema.computations, schema.runs
    gone = state_of(now_us, lost_after_us).in_(("lost", "finished"))
    failed = sa.or_(table.c.state.in_(("erred", "lost")), sa.and_(table.c.state == "running", gone))
    query = (
        sa.select(table.c.run_id, table.c.computation)
        .join(runs, runs.c.id == table.c.run_id)
        .where(table.c.account_id == account, table.c.seen_us >= since_us, failed)
        .order_by(table.c.seen_us.desc())
        .limit(limit)
    )
    return [(row.run_id, row.computation) for row in connection.execute(query)]


def days_of(connection: Connection, account: int, first_day: int) -> dict[int, Row]:
    """Sums over executions by day."""
    days = schema.days
    names = ("tasks", "errors", "compute_us")
    sums: list[Any] = [summed(days.c[name]).label(name) for name in names]
    query = (
        sa.select(days.c.day, *sums).where(days.c.account_id == account, days.c.day >= first_day).group_by(days.c.day)
    )
    return {row["day"]: dict(row) for row in connection.execute(query).mappings()}


def weeks_of(connection: Connection, account: int, first_day: int) -> list[Row]:
    """Compute time by user and week; a week is numbered from the epoch and begins on a Monday (day 4 was one)."""
    days, runs = schema.days, schema.runs
    week = ((days.c.day + 3) // 7).label("week")
    total = summed(days.c.compute_us).label("compute_us")
    query = (
        sa.select(runs.c.user, week, total)
        .join(runs, runs.c.id == days.c.run_id)
        .where(days.c.account_id == account, days.c.day >= first_day)
        .group_by(runs.c.user, week)
    )
    return [dict(row) for row in connection.execute(query).mappings()]
