"""What runs had at their disposal: thread-time and memory-time of their workers, and the memory in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.analysis.rollup import LARGEST
from daskscope.storage import schema
from daskscope.storage.database import in_steps


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
        summed = sa.func.coalesce(sa.func.sum(sa.cast(value, sa.Float)), 0.0)
        return sa.select(summed).where(where).correlate(runs).scalar_subquery()

    def whole(value: Any, where: Any) -> Any:
        summed = sa.func.coalesce(sa.func.sum(sa.cast(value, sa.Float)), 0.0)
        bounded = sa.cast(sa.case((summed > LARGEST, float(LARGEST)), else_=summed), sa.BigInteger)
        return sa.select(bounded).where(where).correlate(runs).scalar_subquery()

    living = (memories.c.run_id == runs.c.id) & memories.c.worker.in_(
        sa.select(workers.c.worker).where(here).correlate(runs)
    )
    return {
        "thread_us": whole(alive * workers.c.nthreads, mine),
        "memory_byte_s": total(alive / 1e6 * workers.c.memory_limit, mine),
        "memory_limit": whole(workers.c.memory_limit, here),
        "memory": whole(memories.c.memory, living),
    }
