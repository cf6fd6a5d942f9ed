"""All clusters of all accounts in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.clusters import STATES, state_of
from daskscope.storage.sums import summed


@dataclass(frozen=True)
class Fleet:
    """What a server keeps, and what runs at the moment."""

    #: Clusters by state; every state is there.
    clusters: dict[str, int]
    tasks: int
    exceptions: int
    buffered_nbytes: int
    #: Of clusters that run.
    workers: int
    threads: int


def fleet_of(connection: Connection, now_us: int, lost_after_us: int) -> Fleet:
    runs, state = schema.runs, state_of(now_us, lost_after_us).label("state")
    counts = connection.execute(sa.select(state, sa.func.count().label("n")).group_by(state))
    found = {row.state: int(row.n) for row in counts}
    kept = sa.select(summed(runs.c.tasks), summed(runs.c.exceptions), summed(runs.c.buffered_nbytes))
    tasks, exceptions, buffered = connection.execute(kept).one()
    live = sa.select(summed(runs.c.workers), summed(runs.c.threads)).where(state.in_(("running", "idle")))
    workers, threads = connection.execute(live).one()
    return Fleet({name: found.get(name, 0) for name in STATES}, tasks, exceptions, buffered, workers, threads)
