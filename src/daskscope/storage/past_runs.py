"""The history of a computation: runs of the same code in clusters of the same name, with what may explain a change."""

from __future__ import annotations

import sqlalchemy as sa

from daskscope.analysis.attribution import PastRun
from daskscope.analysis.limits import parse_object
from daskscope.analysis.progress import EarlierRun
from daskscope.analysis.rollup import Sums
from daskscope.storage import schema
from daskscope.storage.archive import Transaction
from daskscope.storage.computations import Computation, earlier_runs, prefix_sums


def past_runs(tx: Transaction, account: int, row: Computation, limit: int) -> list[PastRun]:
    """Return the finished runs of a computation's code up to this one, oldest first."""
    rows = [one for one in (row, *earlier_runs(tx, account, row, limit)) if one.state == "done" and one.stop_us]
    sums = prefix_sums(tx, [(one.run_id, one.computation) for one in rows])
    runs = _clusters(tx, sorted({one.run_id for one in rows}))
    return [_past_run(one, sums.get((one.run_id, one.computation), {}), *runs[one.run_id]) for one in reversed(rows)]


def finished_runs(tx: Transaction, account: int, row: Computation, limit: int) -> list[EarlierRun]:
    """Return the runs that finished among the last earlier runs of a computation's code, newest first."""
    found = [one for one in earlier_runs(tx, account, row, limit) if one.state == "done"]
    sums = prefix_sums(tx, [(one.run_id, one.computation) for one in found])
    return [
        EarlierRun(max(0, one.stop_us - one.start_us), one.tasks, _means(sums.get((one.run_id, one.computation), {})))
        for one in found
    ]


def _means(sums: dict[str, Sums]) -> dict[str, float]:
    return {name: part.compute_us / part.tasks for name, part in sums.items() if part.tasks}


def _clusters(tx: Transaction, numbers: list[int]) -> dict[int, tuple[int, dict[str, str]]]:
    """Return the threads and the versions of runs."""
    runs = schema.runs
    query = sa.select(runs.c.id, runs.c.peak_threads, runs.c.versions).where(runs.c.id.in_(numbers))
    return {
        number: (threads, {str(name): str(version) for name, version in parse_object(versions).items()})
        for number, threads, versions in tx.execute(query)
    }


def _past_run(row: Computation, sums: dict[str, Sums], threads: int, versions: dict[str, str]) -> PastRun:
    return PastRun(
        row.start_us,
        max(0, row.stop_us - row.start_us),
        row.tasks,
        row.sums.nbytes,
        row.sums.transfer_us,
        row.sums.disk_us,
        row.sums.errors,
        threads,
        {prefix: (one.tasks, one.compute_us) for prefix, one in sums.items()},
        versions,
    )
