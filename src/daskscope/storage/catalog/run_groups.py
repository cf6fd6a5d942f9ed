"""Runs by name: the newest run of each name, its last runs, their cost, and why runs failed or lost workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from daskscope.model.states import LOST_VERDICTS, RunState
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.base.bulk import summed
from daskscope.storage.base.database import in_steps
from daskscope.storage.catalog.clusters import Cluster, ClusterFilter, conditions_of, state_of
from daskscope.storage.catalog.error_groups import texts_of
from daskscope.storage.catalog.overview import PaidRun

#: Runs of a name that its row shows as dots.
MAX_RECENT = 20


@dataclass(frozen=True, slots=True)
class RunGroup:
    """The runs of one name that a filter selects. A run without a name is a group of its own."""

    newest: Cluster
    runs: int


@dataclass(frozen=True, slots=True)
class RecentRun:
    """A run as a dot."""

    id: int
    cluster: str
    name: str
    start_us: int
    recording_us: int
    end_us: int
    seen_us: int
    state: RunState


@dataclass(frozen=True, slots=True)
class FatalError:
    """An error that failed tasks for good."""

    type: str
    message: str
    cause_type: str
    cause_message: str


@dataclass(frozen=True, slots=True)
class LostWorker:
    """A worker that left unexpectedly."""

    run_id: int
    server_id: str
    worker: str
    name: str
    verdict: str
    evidence: str
    memory_limit: int
    #: The catalog stores the last sample of a worker, not its peak.
    peak_memory: int = 0


def list_groups(tx: Transaction, account: int, wanted: ClusterFilter) -> list[RunGroup]:
    """Return the runs that a filter selects by name; the name with the newest run first."""
    runs, state = schema.runs, state_of(tx.lost_before_us)
    group = (runs.c.name, sa.case((runs.c.name == "", runs.c.id), else_=0))
    order = (runs.c.start_us.desc(), runs.c.id.desc())
    selected = (
        sa.select(
            runs.c.id,
            runs.c.start_us,
            sa.func.row_number().over(partition_by=group, order_by=order).label("place"),
            sa.func.count().over(partition_by=group).label("runs"),
        )
        .where(runs.c.account_id == account, *conditions_of(wanted, state))
        .subquery()
    )
    newest = sa.select(selected.c.id, selected.c.runs).where(selected.c.place == 1)
    if wanted.after is not None:
        start, number = wanted.after
        same = sa.and_(selected.c.start_us == start, selected.c.id < number)
        newest = newest.where(sa.or_(selected.c.start_us < start, same))
    newest = newest.order_by(selected.c.start_us.desc(), selected.c.id.desc()).limit(wanted.limit)
    counts = {row.id: row.runs for row in tx.execute(newest)}
    # A second query: in the first one, SQLite would find the states of all groups before it sorts them.
    clusters = tx.rows(Cluster, sa.select(runs, state.label("state")).where(runs.c.id.in_(counts)).order_by(*order))
    return [RunGroup(row, counts[row.id]) for row in clusters]


def recent_runs(tx: Transaction, account: int, names: Sequence[str]) -> dict[str, list[RecentRun]]:
    """Return the last runs of each name, oldest first, whatever the filter of the list is."""
    runs, state = schema.runs, state_of(tx.lost_before_us).label("state")
    place = sa.func.row_number().over(partition_by=runs.c.name, order_by=(runs.c.start_us.desc(), runs.c.id.desc()))
    ranked = (
        sa.select(runs.c.id, place.label("place"))
        .where(runs.c.account_id == account, runs.c.name.in_(names))
        .subquery()
    )
    query = (
        sa.select(runs, state)
        .where(runs.c.id.in_(sa.select(ranked.c.id).where(ranked.c.place <= MAX_RECENT)))
        .order_by(runs.c.start_us, runs.c.id)
    )
    found: dict[str, list[RecentRun]] = {name: [] for name in names}
    for row in tx.rows(RecentRun, query):
        found[row.name].append(row)
    return found


def paid_by_name(tx: Transaction, account: int, names: Sequence[str], wanted: ClusterFilter) -> list[PaidRun]:
    """Return the sums over the selected runs of each name, apart for different prices."""
    runs, state = schema.runs, state_of(tx.lost_before_us)
    key = (runs.c.name, runs.c.tags, runs.c.prices)
    sums = (summed(runs.c[name]).label(name) for name in ("thread_us", "compute_us"))
    query = (
        sa.select(*key, *sums, sa.func.sum(runs.c.memory_byte_s).label("memory_byte_s"))
        .where(runs.c.account_id == account, runs.c.name.in_(names), *conditions_of(wanted, state))
        .group_by(*key)
    )
    return [
        PaidRun("", row.name, "", row.tags, row.prices, 0, 0, 0, 0, row.thread_us, row.memory_byte_s, row.compute_us, 0, 0)
        for row in tx.execute(query)
    ]  # fmt: skip


def lost_workers(tx: Transaction, runs: Sequence[int]) -> dict[int, list[LostWorker]]:
    """Return the workers that left unexpectedly, by run."""
    workers = schema.workers
    found: dict[int, list[LostWorker]] = {}
    for part in in_steps(runs):
        lost = sa.select(workers, sa.literal(0).label("peak_memory")).where(
            workers.c.run_id.in_(part), workers.c.verdict.in_(LOST_VERDICTS)
        )
        for worker in tx.rows(LostWorker, lost.order_by(workers.c.end_us, workers.c.server_id)):
            found.setdefault(worker.run_id, []).append(worker)
    return found


def fatal_errors(tx: Transaction, account: int, runs: Sequence[int]) -> dict[tuple[int, str], FatalError]:
    """Return the most frequent error that failed tasks for good, by run and computation, and by run and ``""``."""
    table = schema.exceptions
    if not runs:
        return {}
    counted = (
        sa.select(
            table.c.run_id,
            table.c.computation,
            sa.func.min(table.c.id).label("id"),
            summed(table.c.count).label("n"),
        )
        .where(table.c.run_id.in_(runs), table.c.will_retry == 0)
        .group_by(table.c.run_id, table.c.computation, table.c.fingerprint)
    )
    top: dict[tuple[int, str], tuple[int, int]] = {}
    for row in tx.execute(counted):
        for subject in {(row.run_id, row.computation), (row.run_id, "")}:
            top[subject] = max(top.get(subject, (0, 0)), (int(row.n), -row.id))
    errors: dict[int, FatalError] = {}
    for part in in_steps(sorted({-number for _, number in top.values()})):
        for row in tx.execute(sa.select(table).where(table.c.id.in_(part))):
            texts = texts_of(tx, account, row.fingerprint, row.sealed_text)
            errors[row.id] = FatalError(row.type, texts.message, row.cause_type, texts.cause_message)
    return {subject: errors[-number] for subject, (_, number) in top.items()}
