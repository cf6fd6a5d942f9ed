"""Computations of a run or an account, with their current states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from daskscope.analysis.running.rollup import ADDED, Sums
from daskscope.model.libraries import is_library
from daskscope.model.states import COMPUTATION_STATES, RunState
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.base.bulk import summed
from daskscope.storage.base.database import of_row
from daskscope.storage.catalog.code_texts import of_computation, text_place

#: Earlier runs with the same code that are compared by their prefixes, for each one wanted.
CANDIDATES = 4


@dataclass(frozen=True, slots=True)
class Computation:
    """A computation with its current state, and what it needs of its cluster."""

    run_id: int
    computation: str
    cluster: str
    cluster_name: str
    user: str
    clock_offset_us: int
    cluster_seen_us: int
    seen_us: int
    start_us: int
    stop_us: int
    state: RunState
    client: str
    span: str
    code: str
    code_line: int
    code_file: str
    code_digest: str
    submissions: int
    groups: int
    tasks: int
    memory: int
    erred: int
    released: int
    forgotten: int
    unfinished: int
    #: JSON object while it runs: tasks by state of each prefix.
    prefix_states: str
    #: Over its executions.
    sums: Sums


def list_computations(
    tx: Transaction,
    account: int,
    *,
    run: int | None = None,
    since_us: int = 0,
    computation: str | None = None,
    is_running: bool = False,
    same_as: Computation | None = None,
    limit: int = 100,
    after: tuple[int, str, int] | None = None,
) -> list[Computation]:
    """Return computations with their sums and code, newest first."""
    table, runs = schema.computations, schema.runs
    query = (
        sa.select(
            *(column for column in table.c if column.name != "state"),
            runs.c.cluster,
            runs.c.name.label("cluster_name"),
            runs.c.user,
            runs.c.clock_offset_us,
            runs.c.seen_us.label("cluster_seen_us"),
            true_state(tx).label("state"),
            schema.code_texts.c.sealed.label("sealed_code"),
        )
        .join(runs, runs.c.id == table.c.run_id)
        .outerjoin(schema.code_texts, of_computation())
        .order_by(table.c.start_us.desc(), table.c.computation.desc(), table.c.run_id.desc())
        .limit(limit)
    )
    if run is not None:
        # Compare the account of the run, not of the computation: SQLite would scan all computations of the account.
        query = query.where(table.c.run_id == run, runs.c.account_id == account)
    else:
        query = query.where(table.c.account_id == account)
    if since_us:
        query = query.where(table.c.start_us >= since_us)
    if computation is not None:
        query = query.where(table.c.computation == computation)
    if is_running:
        query = query.where(table.c.state == "running")
    if same_as is not None:
        same_code = table.c.code_digest == same_as.code_digest
        query = query.where(same_code, table.c.groups == same_as.groups, runs.c.name == same_as.cluster_name)
    if after is not None:
        start, name, number = after
        earlier_run = sa.and_(table.c.computation == name, table.c.run_id < number)
        same_start = sa.and_(table.c.start_us == start, sa.or_(table.c.computation < name, earlier_run))
        # Both conditions are needed: PostgreSQL uses the first for its index and would read all newer rows for the
        # second.
        query = query.where(table.c.start_us <= start, sa.or_(table.c.start_us < start, same_start))
    rows = tx.execute(query).mappings().all()
    sums = _sums(tx, [(row["run_id"], row["computation"]) for row in rows])

    def made(row: sa.RowMapping) -> Computation:
        return of_row(
            Computation,
            row,
            code=tx.open_text(account, row["sealed_code"], text_place(row["code_text"])),
            sums=sums.get((row["run_id"], row["computation"]), Sums()),
        )

    return [made(row) for row in rows]


def earlier_runs(tx: Transaction, account: int, row: Computation, limit: int) -> list[Computation]:
    """Return earlier runs of the same code in clusters of the same name with the same task prefixes, newest first.

    A running computation may not have run all its prefixes yet. The line of a library is no evidence: every user of the
    library runs it.
    """
    if not row.code_digest or is_library(row.code_file):
        return []
    after = row.start_us, row.computation, row.run_id
    found = list_computations(tx, account, same_as=row, limit=CANDIDATES * limit, after=after)
    prefixes = _prefixes(tx, [(item.run_id, item.computation) for item in (row, *found)])
    mine = prefixes.get((row.run_id, row.computation), frozenset())

    def is_same(item: Computation) -> bool:
        theirs = prefixes.get((item.run_id, item.computation), frozenset())
        return mine <= theirs if row.state == "running" else mine == theirs

    return [item for item in found if is_same(item)][:limit]


def prefix_sums(tx: Transaction, keys: list[tuple[int, str]]) -> dict[tuple[int, str], dict[str, Sums]]:
    """Return the sums over the executions of computations, given by run and ID, by prefix."""
    table = schema.prefixes
    wanted, found = set(keys), dict[tuple[int, str], dict[str, Sums]]()
    query = sa.select(table).where(
        table.c.run_id.in_(sorted({run for run, _ in keys})),
        table.c.computation.in_(sorted({name for _, name in keys})),
    )
    for row in tx.execute(query).mappings() if keys else ():
        key = (row["run_id"], row["computation"])
        if key in wanted:
            found.setdefault(key, {})[row["prefix"]] = of_row(Sums, row)
    return found


def _prefixes(tx: Transaction, keys: list[tuple[int, str]]) -> dict[tuple[int, str], frozenset[str]]:
    """Return the task prefixes of computations that have executions."""
    table = schema.prefixes
    query = sa.select(table.c.run_id, table.c.computation, table.c.prefix).where(
        table.c.run_id.in_(sorted({run for run, _ in keys})),
        table.c.computation.in_(sorted({name for _, name in keys})),
    )
    found: dict[tuple[int, str], set[str]] = {}
    for run, computation, prefix in tx.execute(query):
        found.setdefault((run, computation), set()).add(prefix)
    return {key: frozenset(names) for key, names in found.items()}


class NoSuchComputation(Exception):
    """The run has no such computation."""


def span_of(tx: Transaction, run: int, computation: str) -> tuple[int, int] | None:
    """Return the start and stop of a computation.

    Without a stop, use the time its cluster was last seen. None if unknown.
    """
    table, runs = schema.computations, schema.runs
    mine = (table.c.run_id == run) & (table.c.computation == computation)
    query = sa.select(table.c.start_us, table.c.stop_us, table.c.seen_us, runs.c.seen_us.label("cluster_seen_us"))
    row = tx.execute(query.join(runs, runs.c.id == table.c.run_id).where(mine)).one_or_none()
    return (row.start_us, row.stop_us or max(row.seen_us, row.cluster_seen_us)) if row is not None else None


def large_subjects(tx: Transaction, run: int, tasks: int, limit: int) -> list[tuple[str, str]]:
    """Return the documents worth building ahead: the title, and the computation or "" for the whole run."""
    table, runs = schema.computations, schema.runs
    row = tx.execute(sa.select(runs.c.name, runs.c.cluster, runs.c.tasks).where(runs.c.id == run)).one_or_none()
    if row is None or row.tasks < tasks:
        return []
    large = sa.select(table.c.computation).where(table.c.run_id == run, table.c.tasks >= tasks)
    names = tx.execute(large.order_by(table.c.tasks.desc()).limit(limit)).scalars()
    return [(row.name or row.cluster, name) for name in ("", *names)]


def true_state(tx: Transaction) -> Any:
    """Return the SQL expression for a state: a computation that ran when its cluster ended or was lost did not finish."""
    table, runs = schema.computations, schema.runs
    running = table.c.state == "running"
    return sa.case(
        (sa.and_(running, runs.c.end_us > 0), "unfinished"),
        (sa.and_(running, runs.c.received_us < tx.lost_before_us), "lost"),
        *((table.c.state == recorded, state) for recorded, state in COMPUTATION_STATES.items()),
        else_="finished",
    )


def _sums(tx: Transaction, keys: list[tuple[int, str]]) -> dict[tuple[int, str], Sums]:
    if not keys:
        return {}
    prefixes = schema.prefixes
    # Filter by run and by name instead of by pairs: row values are slow in SQLite. Names of other runs are dropped
    # below.
    columns = [summed(prefixes.c[name]).label(name) for name in ADDED]
    query = (
        sa.select(prefixes.c.run_id, prefixes.c.computation, *columns)
        .where(
            prefixes.c.run_id.in_(sorted({run for run, _ in keys})),
            prefixes.c.computation.in_(sorted({name for _, name in keys})),
        )
        .group_by(prefixes.c.run_id, prefixes.c.computation)
    )
    return {
        (row["run_id"], row["computation"]): Sums(**{name: row[name] for name in ADDED})
        for row in tx.execute(query).mappings()
    }
