"""The history of a computation: runs of the same code in clusters of the same name, with what may explain a change."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import sqlalchemy as sa

from daskscope.analysis.compare.history import PastRun
from daskscope.analysis.running.progress import EarlierRun
from daskscope.analysis.running.rollup import Sums
from daskscope.model.untrusted import parse_object
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.base.database import of_row
from daskscope.storage.catalog.computations import Computation, earlier_runs, prefix_sums
from daskscope.storage.catalog.overview import PaidRun

#: A run, and the ID of a computation in it.
Key = tuple[int, str]


@dataclass(frozen=True)
class StoredRun:
    """A finished run of a computation."""

    cluster: str
    computation: str
    past: PastRun
    #: Its cluster; thread time, memory and compute time count the computation only.
    paid: PaidRun


def past_runs(tx: Transaction, account: int, row: Computation, limit: int) -> list[StoredRun]:
    """Return the finished runs of a computation's code up to this one, oldest first."""
    rows = [one for one in (row, *earlier_runs(tx, account, row, limit)) if one.state == "finished" and one.stop_us]
    keys = [(one.run_id, one.computation) for one in rows]
    sums, uptimes = prefix_sums(tx, keys), _uptimes(tx, keys)
    clusters = _clusters(tx, sorted({one.run_id for one in rows}))
    found = []
    for one, key in zip(rows, keys, strict=True):
        paid, threads, versions = clusters[one.run_id]
        thread_us, memory_byte_s = uptimes.get(key, (0, 0.0))
        mine = replace(paid, thread_us=thread_us, memory_byte_s=memory_byte_s, compute_us=one.sums.compute_us)
        past = _past_run(one, sums.get(key, {}), threads, versions)
        found.append(StoredRun(one.cluster, one.computation, past, mine))
    return found[::-1]


def finished_runs(tx: Transaction, account: int, row: Computation, limit: int) -> list[EarlierRun]:
    """Return the runs that finished among the last earlier runs of a computation's code, newest first."""
    found = [one for one in earlier_runs(tx, account, row, limit) if one.state == "finished"]
    sums = prefix_sums(tx, [(one.run_id, one.computation) for one in found])
    return [
        EarlierRun(max(0, one.stop_us - one.start_us), one.tasks, _means(sums.get((one.run_id, one.computation), {})))
        for one in found
    ]


def _means(sums: dict[str, Sums]) -> dict[str, float]:
    return {name: part.compute_us / part.tasks for name, part in sums.items() if part.tasks}


def _clusters(tx: Transaction, numbers: list[int]) -> dict[int, tuple[PaidRun, int, dict[str, str]]]:
    """Return the cost data, the peak of threads and the versions of runs."""
    runs = schema.runs
    columns = [runs.c[item.name] for item in fields(PaidRun)]
    query = sa.select(runs.c.id, runs.c.peak_threads, runs.c.versions, *columns).where(runs.c.id.in_(numbers))
    return {
        row["id"]: (
            of_row(PaidRun, row),
            row["peak_threads"],
            {str(name): str(version) for name, version in parse_object(row["versions"]).items()},
        )
        for row in tx.execute(query).mappings()
    }


def _uptimes(tx: Transaction, keys: list[Key]) -> dict[Key, tuple[int, float]]:
    """Return Σ threads × time in microseconds, and Σ memory limit × time in byte-seconds, of workers while computations ran."""
    if not keys:
        return {}
    table, workers = schema.computations, schema.workers
    first = sa.case((workers.c.start_us > table.c.start_us, workers.c.start_us), else_=table.c.start_us)
    has_left = sa.and_(workers.c.end_us > 0, workers.c.end_us < table.c.stop_us)
    last = sa.case((has_left, workers.c.end_us), else_=table.c.stop_us)
    # Floats: bytes × microseconds of a day overflow a 64-bit integer from 100 MB on.
    uptime_us = sa.cast(last, sa.Float) - sa.cast(first, sa.Float)
    query = (
        sa.select(
            table.c.run_id,
            table.c.computation,
            sa.func.sum(uptime_us * workers.c.nthreads),
            sa.func.sum(uptime_us * workers.c.memory_limit),
        )
        .join(workers, workers.c.run_id == table.c.run_id)
        .where(
            table.c.run_id.in_(sorted({run for run, _ in keys})),
            table.c.computation.in_(sorted({name for _, name in keys})),
            last > first,
        )
        .group_by(table.c.run_id, table.c.computation)
    )
    return {(run, name): (round(threads), memory / 1e6) for run, name, threads, memory in tx.execute(query)}


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
