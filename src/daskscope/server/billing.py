"""What clusters cost, spread over the days they ran."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np

from daskscope.analysis.intervals import day_shares
from daskscope.model.table import Array
from daskscope.server.serializers import cost_of
from daskscope.storage.accounts import Account
from daskscope.storage.overview import PaidRun

EPOCH = date(1970, 1, 1)


def paid_by_day(runs: Sequence[PaidRun], account: Account, first_day: int, days: int) -> tuple[Array, Array]:
    """Return the amounts of each run (as in ``Paid``) and the share of each that falls on each day."""
    costs = [cost_of(run, account) for run in runs]
    amounts = np.array(
        [[run.thread_us / 1e6, cost.total, cost.busy, cost.idle] for run, cost in zip(runs, costs, strict=True)],
        dtype=np.float64,
    ).reshape(-1, 4)
    start = np.array([run.start_us or run.created_us for run in runs], dtype=np.float64)
    stop = np.array([run.end_us or run.seen_us for run in runs], dtype=np.float64)
    return amounts, day_shares(start, stop, first_day, days)


def date_of(day: int) -> str:
    return (EPOCH + timedelta(days=day)).isoformat()
