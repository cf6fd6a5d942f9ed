"""Sums over rows that claim as much as a row can: cut, and never a reason to fail. On SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from tests.archive import LOST_AFTER, NOW, Archive, frame

from daskscope.analysis.rollup import LARGEST
from daskscope.storage import schema
from daskscope.storage.clusters import prefixes_of
from daskscope.storage.computations import list_computations
from daskscope.storage.failures import hours_of
from daskscope.storage.fleet import Fleet, fleet_of
from daskscope.storage.sums import summed

#: 1,024 times the largest number a row may hold is what 64 bits do not.
MANY = 1_100


def test_a_fleet_of_hostile_runs_is_counted(archive: Archive) -> None:
    most = dict.fromkeys(("tasks", "exceptions", "buffered_nbytes", "workers", "threads"), LARGEST)
    rows = [{"account_id": archive.account, "cluster": f"c{n}", "received_us": NOW, **most} for n in range(MANY)]
    with archive.database.write() as connection:
        connection.execute(sa.insert(schema.runs), rows)
        fleet = fleet_of(connection, NOW, LOST_AFTER)
    clusters = {"running": MANY, "idle": 0, "finished": 0, "lost": 0}
    assert fleet == Fleet(clusters, LARGEST, LARGEST, LARGEST, LARGEST, LARGEST)


def test_an_empty_fleet_has_nothing(archive: Archive) -> None:
    with archive.database.read() as connection:
        fleet = fleet_of(connection, NOW, LOST_AFTER)
    assert fleet == Fleet({"running": 0, "idle": 0, "finished": 0, "lost": 0}, 0, 0, 0, 0, 0)


def test_prefixes_of_one_run_that_claim_too_much_are_added_up(archive: Archive) -> None:
    archive.take([frame("computations", [{"computation": "c0", "seen_us": NOW, "start_us": NOW, "code": "x"}])])
    run = archive.run()["id"]
    names = ("tasks", "errors", "compute_us", "transfer_us", "nbytes")
    most = dict.fromkeys(names, LARGEST)
    rows = [{"run_id": run, "computation": "c0", "prefix": f"p{n}", **most} for n in range(MANY)]
    rows += [{"run_id": run, "computation": f"c{n}", "prefix": "p0", **most} for n in range(1, MANY)]
    with archive.database.write() as connection:
        connection.execute(sa.insert(schema.prefixes), rows)
        (computation,) = list_computations(connection, archive.vault, archive.account, NOW, LOST_AFTER)
        prefixes = prefixes_of(connection, run)
    assert {name: computation["sums"][name] for name in names} == most
    assert len(prefixes) == MANY
    assert {prefix["nbytes"] for prefix in prefixes} == {LARGEST}


def test_failures_that_claim_to_be_many_are_added_up(archive: Archive) -> None:
    archive.take([frame("logs", [{"time_us": NOW, "message": "m"}])])
    run = archive.run()["id"]
    row = {"account_id": archive.account, "run_id": run, "fingerprint": "f", "time_us": NOW, "count": LARGEST}
    with archive.database.write() as connection:
        connection.execute(sa.insert(schema.exceptions), [row] * MANY)
        assert max(hours_of(connection, archive.account, ["f"], NOW, 48)["f"]) == LARGEST


@pytest.mark.parametrize("values", [[], [0], [1, 2, 3], [LARGEST - 1, 1], [LARGEST // 3] * 3])
def test_what_fits_is_added_up_exactly(archive: Archive, values: list[int]) -> None:
    rows = [
        {"account_id": archive.account, "cluster": f"c{n}", "tasks": value, "received_us": NOW}
        for n, value in enumerate(values)
    ]
    with archive.database.write() as connection:
        if rows:
            connection.execute(sa.insert(schema.runs), rows)
        assert connection.execute(sa.select(summed(schema.runs.c.tasks))).scalar_one() == sum(values)
