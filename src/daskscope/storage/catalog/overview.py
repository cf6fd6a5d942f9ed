"""Totals of an account and of the whole server, from the roll-ups."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import sqlalchemy as sa

from daskscope.analysis.running.rollup import DAY_FIELDS
from daskscope.model.states import LIVE_STATES, RUN_STATES, RunState
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.base.bulk import summed
from daskscope.storage.catalog.clusters import state_of
from daskscope.storage.catalog.computations import true_state

FINISHED_STATES = ("memory", "erred", "released", "forgotten")
#: Computations that count as failed on the home page: nobody stopped them, and their work is not done.
FAILED_STATES: tuple[RunState, ...] = ("failed", "unfinished", "lost")


def progress(tx: Transaction, runs: list[int]) -> dict[int, tuple[int, int]]:
    """Return done and total tasks of the running computations, by run."""
    if not runs:
        return {}
    table = schema.computations
    done = sum((table.c[name] for name in FINISHED_STATES), sa.literal(0))
    query = (
        sa.select(table.c.run_id, summed(done).label("done"), summed(table.c.tasks).label("tasks"))
        .where(table.c.run_id.in_(runs), table.c.state == "running")
        .group_by(table.c.run_id)
    )
    return {row.run_id: (int(row.done), int(row.tasks)) for row in tx.execute(query)}


def ended_computations(tx: Transaction, account: int, since_us: int) -> dict[str, int]:
    """Count the computations that ended since a time, by state, including computations of lost clusters."""
    table, runs = schema.computations, schema.runs
    state = true_state(tx).label("state")
    query = (
        sa.select(state, sa.func.count().label("n"))
        .join(runs, runs.c.id == table.c.run_id)
        .where(table.c.account_id == account, table.c.seen_us >= since_us)
        .group_by(state)
    )
    return {row.state: row.n for row in tx.execute(query)}


def failed_computations(tx: Transaction, account: int, since_us: int, limit: int) -> list[tuple[int, str, int]]:
    """Return the newest computation of each run that failed or did not finish since a time, and how many of the run did."""
    table, runs = schema.computations, schema.runs
    newest = (table.c.seen_us.desc(), table.c.start_us.desc(), table.c.computation)
    failed = (
        sa.select(
            *(table.c.run_id, table.c.computation, table.c.seen_us),
            sa.func.count().over(partition_by=table.c.run_id).label("n"),
            sa.func.row_number().over(partition_by=table.c.run_id, order_by=newest).label("place"),
        )
        .join(runs, runs.c.id == table.c.run_id)
        .where(table.c.account_id == account, table.c.seen_us >= since_us, true_state(tx).in_(FAILED_STATES))
        .subquery()
    )
    query = sa.select(failed).where(failed.c.place == 1).order_by(failed.c.seen_us.desc()).limit(limit)
    return [(row.run_id, row.computation, row.n) for row in tx.execute(query)]


def weeks_of(tx: Transaction, account: int, first_day: int) -> list[tuple[str, int, int]]:
    """Return user, week and compute time. Weeks are counted from the epoch and start on Monday (day 4 was one)."""
    days, runs = schema.days, schema.runs
    week = ((days.c.day + 3) // 7).label("week")
    total = summed(days.c.compute_us).label("compute_us")
    query = (
        sa.select(runs.c.user, week, total)
        .join(runs, runs.c.id == days.c.run_id)
        .where(days.c.account_id == account, days.c.day >= first_day)
        .group_by(runs.c.user, week)
    )
    return [(row.user, row.week, row.compute_us) for row in tx.execute(query)]


@dataclass(frozen=True, slots=True)
class Usage:
    """Sums over the executions of a day, user, cluster or prefix, which is the key."""

    key: Any = ""
    tasks: int = 0
    errors: int = 0
    compute_us: int = 0
    transfer_us: int = 0
    nbytes: int = 0


MOST = 10_000


@dataclass(frozen=True, slots=True)
class PaidRun:
    """What the cost of a run is computed from."""

    cluster: str
    name: str
    user: str
    tags: str
    prices: str
    start_us: int
    end_us: int
    seen_us: int
    created_us: int
    thread_us: int
    memory_byte_s: float
    compute_us: int
    threads: int
    memory_limit: int


def usage(tx: Transaction, account: int, by: str, first_day: int) -> list[Usage]:
    """Return the sums since ``first_day`` (counted from the epoch) by ``day``, ``user``, ``cluster`` or ``prefix``."""
    days, runs = schema.days, schema.runs
    keys = {"day": days.c.day, "user": runs.c.user, "cluster": runs.c.cluster, "prefix": days.c.prefix}
    key = keys[by]
    query = sa.select(key.label("key"), *(summed(days.c[name]).label(name) for name in DAY_FIELDS))
    if by in ("user", "cluster"):
        query = query.join(runs, runs.c.id == days.c.run_id)
    query = (
        query.where(days.c.account_id == account, days.c.day >= first_day)
        .group_by(key)
        .order_by(key if by == "day" else sa.desc("compute_us"))
        .limit(MOST)
    )
    return tx.rows(Usage, query)


def paid_runs(tx: Transaction, account: int, since_us: int) -> list[PaidRun]:
    """Return the runs last seen after a time."""
    runs = schema.runs
    columns = [runs.c[item.name] for item in fields(PaidRun)]
    return tx.rows(PaidRun, sa.select(*columns).where(runs.c.account_id == account, runs.c.received_us >= since_us))


@dataclass(frozen=True)
class Fleet:
    """Totals of the whole server."""

    #: Clusters by state, including states without clusters.
    clusters: dict[str, int]
    tasks: int
    exceptions: int
    buffered_nbytes: int
    #: Of running clusters.
    workers: int
    threads: int


def fleet_of(tx: Transaction) -> Fleet:
    runs, state = schema.runs, state_of(tx.lost_before_us).label("state")
    counts = tx.execute(sa.select(state, sa.func.count().label("n")).group_by(state))
    found = {row.state: int(row.n) for row in counts}
    kept = sa.select(summed(runs.c.tasks), summed(runs.c.exceptions), summed(runs.c.buffered_nbytes))
    tasks, exceptions, buffered = tx.execute(kept).one()
    live = sa.select(summed(runs.c.workers), summed(runs.c.threads)).where(runs.c.end_us == 0, state.in_(LIVE_STATES))
    workers, threads = tx.execute(live).one()
    return Fleet({name: found.get(name, 0) for name in RUN_STATES}, tasks, exceptions, buffered, workers, threads)
