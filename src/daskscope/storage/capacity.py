"""What runs had at their disposal: thread-time and memory-time of their workers, the memory in use, and the most of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.database import in_steps
from daskscope.storage.sums import greatest_of, summed


def update_capacity(connection: Connection, capacity: Sequence[int], computations: Sequence[int]) -> None:
    """Bring the sums over workers up to date for some runs, and the number of computations for others."""
    runs = schema.runs
    for part in in_steps(sorted(capacity)):
        connection.execute(sa.update(runs).where(runs.c.id.in_(part)).values(_capacity()))
    table = schema.computations
    counted = sa.select(sa.func.count()).select_from(table).where(table.c.run_id == runs.c.id)
    changes = {"computations": counted.correlate(runs).scalar_subquery()}
    for part in in_steps(sorted(computations)):
        connection.execute(sa.update(runs).where(runs.c.id.in_(part)).values(changes))


def update_peaks(connection: Connection, numbers: Sequence[int]) -> None:
    """Bring the most workers, threads and memory that some runs had at once up to date, from the lives of their workers."""
    runs = schema.runs
    for part in in_steps(sorted(numbers)):
        rows = [dict(row) for row in connection.execute(_peaks(part)).mappings()]
        if rows:
            changes: dict[str, Any] = {name: sa.bindparam(name) for name in PEAKS}
            connection.execute(sa.update(runs).where(runs.c.id == sa.bindparam("this")).values(changes), rows)


PEAKS = ("peak_workers", "peak_threads", "peak_memory_limit")


def _peaks(numbers: Sequence[int]) -> Any:
    """What joined less what left, added up in the order of time, and the greatest of these sums."""
    workers = schema.workers
    amounts = (sa.cast(1, sa.Float), sa.cast(workers.c.nthreads, sa.Float), sa.cast(workers.c.memory_limit, sa.Float))
    mine = workers.c.run_id.in_(numbers)

    def changes(at: Any, sign: float, where: Any) -> Any:
        columns = [(sign * amount).label(name) for name, amount in zip(PEAKS, amounts)]
        return sa.select(workers.c.run_id, at.label("at_us"), *columns).where(where)

    joined, left = (
        changes(workers.c.start_us, 1.0, mine),
        changes(workers.c.end_us, -1.0, mine & (workers.c.end_us > 0)),
    )
    each = sa.union_all(joined, left).subquery()
    # One that leaves at the moment another joins makes room for it.
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
    # A worker that is still there has been so until the run was last heard of.
    seen = sa.case((workers.c.start_us > runs.c.seen_us, workers.c.start_us), else_=runs.c.seen_us)
    end = sa.case((workers.c.end_us > 0, workers.c.end_us), else_=seen)
    # As floats: threads times microseconds, and bytes times seconds, need not fit into 64 bits.
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
