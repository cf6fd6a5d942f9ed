"""Capacity of runs: thread time and memory time of their workers, memory in use, and peaks."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.base.bulk import among, greatest_of, summed
from daskscope.storage.base.database import in_steps
from daskscope.storage.catalog.clusters import is_newer_work


def update_capacity(tx: Transaction, capacity: Sequence[int], computations: Sequence[int]) -> None:
    """Update the sums over workers of the given runs, and the number of computations of others."""
    dialect = tx.connection.dialect.name
    for part in in_steps(sorted(capacity)):
        tx.execute(_updating_capacity(dialect), {"these": part})
    for part in in_steps(sorted(computations)):
        tx.execute(_counting_computations(dialect), {"these": part})


# These statements are built once: that takes longer than running them.


@functools.cache
def _updating_capacity(dialect: str) -> sa.Update:
    runs = schema.runs
    return sa.update(runs).where(among(dialect, runs.c.id, "these")).values(_capacity())


@functools.cache
def _counting_computations(dialect: str) -> sa.Update:
    runs, table = schema.runs, schema.computations
    counted = sa.select(sa.func.count()).select_from(table).where(table.c.run_id == runs.c.id)
    changes = {"computations": counted.correlate(runs).scalar_subquery()}
    return sa.update(runs).where(among(dialect, runs.c.id, "these")).values(changes)


def update_peaks(tx: Transaction, numbers: Sequence[int]) -> None:
    """Update the peak workers, threads and memory of the given runs from the lifetimes of their workers."""
    for part in in_steps(sorted(numbers)):
        rows = [dict(row) for row in tx.execute(_peaks(tx.connection.dialect.name), {"these": part}).mappings()]
        if rows:
            tx.execute(_updating_peaks(), rows)


@functools.cache
def _updating_peaks() -> sa.Update:
    changes: dict[str, Any] = {name: sa.bindparam(name) for name in PEAKS}
    return sa.update(schema.runs).where(schema.runs.c.id == sa.bindparam("this")).values(changes)


PEAKS = ("peak_workers", "peak_threads", "peak_memory_limit")


@functools.cache
def _peaks(dialect: str) -> Any:
    """Return the running sum of joins minus leaves, and its maximum."""
    workers = schema.workers
    amounts = (sa.cast(1, sa.Float), sa.cast(workers.c.nthreads, sa.Float), sa.cast(workers.c.memory_limit, sa.Float))
    mine = among(dialect, workers.c.run_id, "these")

    def changes(at: Any, sign: float, where: Any) -> Any:
        columns = [(sign * amount).label(name) for name, amount in zip(PEAKS, amounts)]
        return sa.select(workers.c.run_id, at.label("at_us"), *columns).where(where)

    joined, left = (
        changes(workers.c.start_us, 1.0, mine),
        changes(workers.c.end_us, -1.0, mine & (workers.c.end_us > 0)),
    )
    each = sa.union_all(joined, left).subquery()
    # At the same time, a worker that leaves counts before one that joins.
    order: dict[str, Any] = {
        "partition_by": each.c.run_id,
        "order_by": (each.c.at_us, each.c.peak_workers),
        "rows": (None, 0),
    }
    there = sa.select(
        each.c.run_id, *(sa.func.sum(each.c[name]).over(**order).label(name) for name in PEAKS)
    ).subquery()
    greatest = [greatest_of(there.c[name]).label(name) for name in PEAKS]
    return sa.select(there.c.run_id.label("this"), *greatest).group_by(there.c.run_id)


def _capacity() -> dict[str, Any]:
    runs, workers, memories = schema.runs, schema.workers, schema.memories
    # A worker that is still there counts as long as its run is known.
    is_newer = is_newer_work(runs.c.seen_us, runs.c.last_work_us)
    known = sa.case((is_newer, runs.c.last_work_us), else_=runs.c.seen_us)
    seen = sa.case((workers.c.start_us > known, workers.c.start_us), else_=known)
    end = sa.case((workers.c.end_us > 0, workers.c.end_us), else_=seen)
    # Use floats: threads × microseconds and bytes × seconds may not fit into 64 bits.
    alive = sa.cast(sa.case((end > workers.c.start_us, end - workers.c.start_us), else_=0), sa.Float)
    mine = workers.c.run_id == runs.c.id
    here = mine & (workers.c.end_us == 0)

    def total(value: Any, where: Any) -> Any:
        added = sa.func.coalesce(sa.func.sum(sa.cast(value, sa.Float)), 0.0)
        return sa.select(added).where(where).correlate(runs).scalar_subquery()

    def whole(value: Any, where: Any) -> Any:
        return sa.select(summed(value)).where(where).correlate(runs).scalar_subquery()

    living = (memories.c.run_id == runs.c.id) & memories.c.worker.in_(
        sa.select(workers.c.worker).where(here).correlate(runs)
    )
    return {
        "thread_us": whole(alive * workers.c.nthreads, mine),
        "memory_byte_s": total(alive / 1e6 * workers.c.memory_limit, mine),
        "memory_limit": whole(workers.c.memory_limit, here),
        "memory": whole(memories.c.memory, living),
    }
