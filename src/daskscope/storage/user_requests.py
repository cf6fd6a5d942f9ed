"""What users ask of running clusters. Recorders are told in the responses to their batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from daskscope.storage import schema
from daskscope.storage.archive import Transaction

SECOND = 1_000_000
#: A request for stacks is repeated in responses to batches for this long. A recorder answers it once.
STACKS_WAIT_US = 30 * SECOND
#: The shortest time between two requests for the stacks of a cluster.
STACKS_PAUSE_US = 3 * SECOND
#: Columns of a run that ``requests_of`` reads.
COLUMNS = ("cluster", "close_us", "end_us", "stacks_asked_us", "stacks_asked_of")


@dataclass(frozen=True)
class UserRequests:
    """What users ask of a cluster: to close, and when they asked for the stacks of which worker (empty: all)."""

    cluster: str
    is_closing: bool
    #: 0 without a request for stacks.
    stacks_asked_us: int
    stacks_asked_of: str


def requests_of(row: Any, now_us: int) -> UserRequests | None:
    """Return the requests in a row of ``runs``; None if there are none."""
    if row.end_us:
        return None
    stacks_asked_us = row.stacks_asked_us if row.stacks_asked_us > now_us - STACKS_WAIT_US else 0
    if not (row.close_us or stacks_asked_us):
        return None
    return UserRequests(row.cluster, row.close_us > 0, stacks_asked_us, row.stacks_asked_of)


def ask_to_close(tx: Transaction, run: int) -> None:
    """Ask a cluster to shut down."""
    tx.execute(sa.update(schema.runs).where(schema.runs.c.id == run).values(close_us=tx.now_us))


def ask_for_stacks(tx: Transaction, run: int, worker: str) -> int:
    """Ask for the current stacks. Return the request; 0 if the last one is too recent."""
    runs = schema.runs
    is_due = runs.c.stacks_asked_us <= tx.now_us - STACKS_PAUSE_US
    values = {"stacks_asked_us": tx.now_us, "stacks_asked_of": worker}
    is_asked = tx.execute(sa.update(runs).where(runs.c.id == run, is_due).values(values)).rowcount
    return tx.now_us if is_asked else 0
