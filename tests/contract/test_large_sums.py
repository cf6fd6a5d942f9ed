"""Sums of the largest values a row can hold are capped and never fail. On SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from tests.helpers.archive import DAY, NOW, Archive, frame

from daskscope.model.states import RUN_STATES
from daskscope.model.untrusted import LARGEST
from daskscope.storage import schema
from daskscope.storage.base.bulk import summed
from daskscope.storage.catalog.clusters import prefixes_of
from daskscope.storage.catalog.computations import list_computations
from daskscope.storage.catalog.error_groups import occurrences
from daskscope.storage.catalog.overview import Fleet, fleet_of

#: 1,024 times the largest value of a row overflows 64 bits.
MANY = 1_100


def test_totals_of_hostile_runs_are_capped(archive: Archive) -> None:
    most = dict.fromkeys(("tasks", "exceptions", "buffered_nbytes", "workers", "threads"), LARGEST)
    rows = [{"account_id": archive.account, "cluster": f"c{n}", "received_us": NOW, **most} for n in range(MANY)]
    with archive.write() as tx:
        tx.execute(sa.insert(schema.runs), rows)
        fleet = fleet_of(tx)
    clusters: dict[str, int] = {**dict.fromkeys(RUN_STATES, 0), "running": MANY}
    assert fleet == Fleet(clusters, LARGEST, LARGEST, LARGEST, LARGEST, LARGEST)


def test_totals_without_runs_are_zero(archive: Archive) -> None:
    with archive.read() as tx:
        fleet = fleet_of(tx)
    assert fleet == Fleet(dict.fromkeys(RUN_STATES, 0), 0, 0, 0, 0, 0)


def test_sums_over_the_prefixes_of_a_run_are_capped(archive: Archive) -> None:
    archive.ingest([frame("computations", [{"computation": "c0", "seen_us": NOW, "start_us": NOW, "code": "x"}])])
    run = archive.run()["id"]
    names = ("tasks", "errors", "compute_us", "transfer_us", "nbytes")
    most = dict.fromkeys(names, LARGEST)
    rows = [{"run_id": run, "computation": "c0", "prefix": f"p{n}", **most} for n in range(MANY)]
    rows += [{"run_id": run, "computation": f"c{n}", "prefix": "p0", **most} for n in range(1, MANY)]
    with archive.write() as tx:
        tx.execute(sa.insert(schema.prefixes), rows)
        (computation,) = list_computations(tx, archive.account)
        prefixes = prefixes_of(tx, run)
    assert {name: getattr(computation.sums, name) for name in names} == most
    assert len(prefixes) == MANY
    assert {sums.nbytes for _, sums in prefixes} == {LARGEST}


def test_sums_over_failures_are_capped(archive: Archive) -> None:
    archive.ingest([frame("logs", [{"time_us": NOW, "message": "m"}])])
    run = archive.run()["id"]
    row = {"account_id": archive.account, "run_id": run, "fingerprint": "f", "time_us": NOW, "count": LARGEST}
    with archive.write() as tx:
        tx.execute(sa.insert(schema.exceptions), [row] * MANY)
        found = occurrences(tx, archive.account, ["f"], NOW // DAY, DAY, 2)["f"]
    assert (found.counts, found.fatal) == ([LARGEST, 0], [LARGEST, 0])


@pytest.mark.parametrize("values", [[], [0], [1, 2, 3], [LARGEST - 1, 1], [LARGEST // 3] * 3])
def test_sums_below_the_maximum_are_exact(archive: Archive, values: list[int]) -> None:
    rows = [
        {"account_id": archive.account, "cluster": f"c{n}", "tasks": value, "received_us": NOW}
        for n, value in enumerate(values)
    ]
    with archive.write() as tx:
        if rows:
            tx.execute(sa.insert(schema.runs), rows)
        assert tx.execute(sa.select(summed(schema.runs.c.tasks))).scalar_one() == sum(values)
