"""What runs had at their disposal: thread-time and memory-time of their workers, and the memory in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema


def update_capacity(connection: Connection, capacity: Sequence[int], computations: Sequence[int]) -> None:
    """Bring the sums over workers up to date for some runs, and the number of computations for others."""
    runs = schema.runs
    if capacity:
        connection.execute(sa.update(runs).where(runs.c.id.in_(sorted(capacity))).values(_capacity()))
    if computations:
        table = schema.computations
        counted = sa.select(sa.func.count()).select_from(table).where(table.c.run_id == runs.c.id)
        changes = {"computations": counted.correlate(runs).scalar_subquery()}
        connection.execute(sa.update(runs).where(runs.c.id.in_(sorted(computations))).values(changes))


def _capacity() -> dict[str, Any]:
    runs, workers, memories = schema.runs, schema.workers, schema.memories
    # A worker that is still there has been so until the run was last heard of.
    seen = sa.case((workers.c.start_us > runs.c.seen_us, workers.c.start_us), else_=runs.c.seen_us)
    end = sa.case((workers.c.end_us > 0, workers.c.end_us), else_=seen)
    alive = end - workers.c.start_us
    mine = workers.c.run_id == runs.c.id
    here = mine & (workers.c.end_us == 0)

    def total(value: Any, where: Any, kind: Any) -> Any:
        query = sa.select(sa.cast(sa.func.coalesce(sa.func.sum(value), 0), kind)).where(where)
        return query.correlate(runs).scalar_subquery()

    living = (memories.c.run_id == runs.c.id) & memories.c.worker.in_(
        sa.select(workers.c.worker).where(here).correlate(runs)
    )
    return {
        "thread_us": total(alive * workers.c.nthreads, mine, sa.BigInteger),
        # As floats: bytes times microseconds do not fit into 64 bits.
        "memory_byte_s": total(sa.cast(alive, sa.Float) / 1e6 * workers.c.memory_limit, mine, sa.Float),
        "memory_limit": total(workers.c.memory_limit, here, sa.BigInteger),
        "memory": total(memories.c.memory, living, sa.BigInteger),
    }
