"""Computations of a run or of an account, with states that are true."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.clusters import Row, state_of
from daskscope.storage.sums import summed
from daskscope.storage.vault import Vault


def list_computations(
    connection: Connection,
    vault: Vault,
    account: int,
    now_us: int,
    lost_after_us: int,
    *,
    run: int | None = None,
    since_us: int = 0,
    computation: str | None = None,
    same_as: Row | None = None,
    limit: int = 100,
    after: tuple[int, str, int] | None = None,
) -> list[Row]:
    """Computations, the newest first; with the sums of their executions and their code."""
    table, runs = schema.computations, schema.runs
    query = (
        sa.select(
            table,
            runs.c.cluster,
            runs.c.name.label("cluster_name"),
            runs.c.user,
            runs.c.clock_offset_us,
            runs.c.seen_us.label("cluster_seen_us"),
            _state(now_us, lost_after_us),
        )
        .join(runs, runs.c.id == table.c.run_id)
        .order_by(table.c.start_us.desc(), table.c.computation.desc(), table.c.run_id.desc())
        .limit(limit)
    )
    if run is not None:
        # The account of the run, not of the computation: SQLite would look through all of the account's.
        query = query.where(table.c.run_id == run, runs.c.account_id == account)
    else:
        query = query.where(table.c.account_id == account)
    if since_us:
        query = query.where(table.c.start_us >= since_us)
    if computation is not None:
        query = query.where(table.c.computation == computation)
    if same_as is not None:
        query = query.where(table.c.code_digest == same_as["code_digest"], table.c.groups == same_as["groups"])
    if after is not None:
        start, name, number = after
        earlier_run = sa.and_(table.c.computation == name, table.c.run_id < number)
        same_start = sa.and_(table.c.start_us == start, sa.or_(table.c.computation < name, earlier_run))
        # Said twice: PostgreSQL finds the place in its index by the first, and would read all that is newer for the second.
        query = query.where(table.c.start_us <= start, sa.or_(table.c.start_us < start, same_start))
    rows = [dict(row) for row in connection.execute(query).mappings()]
    sums = _sums(connection, [(row["run_id"], row["computation"]) for row in rows])
    for row in rows:
        row["state"] = row.pop("true_state")
        row["code"] = vault.open_text(connection, account, row.pop("sealed_code"))
        row["sums"] = sums.get((row["run_id"], row["computation"]), {})
    return rows


def earlier_runs(
    connection: Connection, vault: Vault, account: int, row: Row, now_us: int, lost_after_us: int, limit: int
) -> list[Row]:
    """Runs of the same code and shape of graph (as many groups of tasks) before a computation, the newest first."""
    if not row["code_digest"]:
        return []
    return list_computations(
        connection, vault, account, now_us, lost_after_us,
        same_as=row, limit=limit, after=(row["start_us"], row["computation"], row["run_id"]),
    )  # fmt: skip


def span_of(connection: Connection, run: int, computation: str) -> tuple[int, int] | None:
    """When a computation began, and when it ended or its cluster was last heard of; None where there is none of that name."""
    table, runs = schema.computations, schema.runs
    mine = (table.c.run_id == run) & (table.c.computation == computation)
    query = sa.select(table.c.start_us, table.c.stop_us, table.c.seen_us, runs.c.seen_us.label("cluster_seen_us"))
    row = connection.execute(query.join(runs, runs.c.id == table.c.run_id).where(mine)).one_or_none()
    return (row.start_us, row.stop_us or max(row.seen_us, row.cluster_seen_us)) if row is not None else None


def large_subjects(connection: Connection, run: int, tasks: int, limit: int) -> list[tuple[str, str]]:
    """Of a run what is large enough to be rendered ahead: its title, and a computation or, for all of it, nothing."""
    table, runs = schema.computations, schema.runs
    row = connection.execute(sa.select(runs.c.name, runs.c.cluster, runs.c.tasks).where(runs.c.id == run)).one_or_none()
    if row is None or row.tasks < tasks:
        return []
    large = sa.select(table.c.computation).where(table.c.run_id == run, table.c.tasks >= tasks)
    names = connection.execute(large.order_by(table.c.tasks.desc()).limit(limit)).scalars()
    return [(row.name or row.cluster, name) for name in ("", *names)]


def _state(now_us: int, lost_after_us: int) -> Any:
    """A computation that was running when its cluster was lost, or ended, is not running."""
    table = schema.computations
    gone = state_of(now_us, lost_after_us).in_(("lost", "finished"))
    return sa.case((sa.and_(table.c.state == "running", gone), "lost"), else_=table.c.state).label("true_state")


SUMMED = ("tasks", "errors", "retried", "killed", "compute_us", "transfer_us", "disk_us", "deserialize_us", "nbytes")


def _sums(connection: Connection, keys: list[tuple[int, str]]) -> dict[tuple[int, str], dict[str, int]]:
    if not keys:
        return {}
    prefixes = schema.prefixes
    # By run and by name rather than by pairs: row values are slow in SQLite, and a name in another run is dropped below.
    columns = [summed(prefixes.c[name]).label(name) for name in SUMMED]
    query = (
        sa.select(prefixes.c.run_id, prefixes.c.computation, *columns)
        .where(
            prefixes.c.run_id.in_(sorted({run for run, _ in keys})),
            prefixes.c.computation.in_(sorted({name for _, name in keys})),
        )
        .group_by(prefixes.c.run_id, prefixes.c.computation)
    )
    return {
        (row["run_id"], row["computation"]): {name: row[name] for name in SUMMED}
        for row in connection.execute(query).mappings()
    }
