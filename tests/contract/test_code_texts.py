"""Code is stored once per content and account, encrypted, and goes with the last computation that has it."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.archive import NOW, Archive, frame

from daskscope.storage import schema
from daskscope.storage.catalog import code_texts
from daskscope.storage.catalog.clusters import delete_cluster
from daskscope.storage.catalog.code_texts import code_place, move_codes, remove_unused_codes
from daskscope.storage.catalog.computations import list_computations

CODE = "import dask\nsecret_name = 1\n"


def add(archive: Archive, cluster: str, *codes: str, seen_us: int = NOW, sequence: int = 1) -> None:
    rows: list[dict[str, Any]] = [
        {"computation": f"c{n}", "seen_us": seen_us, "start_us": NOW + n, "code": code} for n, code in enumerate(codes)
    ]
    archive.ingest([frame("computations", rows, sequence, cluster=cluster)])


def codes(archive: Archive) -> list[str]:
    with archive.read() as tx:
        return sorted(row.code for row in list_computations(tx, archive.account))


def store_as_before(archive: Archive, cluster: str) -> None:
    """Store the code of a run's computations as servers of earlier versions do."""
    run, table = int(archive.run(cluster)["id"]), schema.computations
    with archive.write() as tx:
        for row in list_computations(tx, archive.account, run=run):
            sealed = tx.seal_text(archive.account, row.code, code_place(run, row.computation))
            mine = (table.c.run_id == run) & (table.c.computation == row.computation)
            tx.execute(sa.update(table).where(mine).values(sealed_code=sealed, code_text=""))
        remove_unused_codes(tx, archive.account)


def test_equal_code_is_stored_once_and_encrypted(archive: Archive) -> None:
    for cluster in ("one", "two"):
        add(archive, cluster, CODE, CODE, "other()", "")
    assert codes(archive) == sorted(2 * ["", CODE, CODE, "other()"])
    assert archive.count(schema.code_texts) == 2
    assert not any(b"secret_name" in bytes(row["sealed"]) for row in archive.rows(schema.code_texts))
    assert all(row["sealed_code"] is None for row in archive.rows(schema.computations))


def test_code_goes_with_the_last_computation_that_has_it(archive: Archive) -> None:
    add(archive, "one", CODE, "only in one")
    add(archive, "two", CODE)
    with archive.write() as tx:
        delete_cluster(tx, int(archive.run("one")["id"]))
    assert codes(archive) == [CODE]
    assert archive.count(schema.code_texts) == 1
    with archive.write() as tx:
        delete_cluster(tx, int(archive.run("two")["id"]))
    assert archive.count(schema.code_texts) == 0


def test_code_of_an_earlier_version_is_readable_and_moved(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_texts, "STEP", 2)
    add(archive, "one", CODE, "b()", CODE, "")
    add(archive, "two", CODE)
    for cluster in ("one", "two"):
        store_as_before(archive, cluster)
    assert archive.count(schema.code_texts) == 0
    before = codes(archive)
    assert before == sorted([CODE, "b()", CODE, "", CODE])
    assert move_codes(archive) == 4
    assert codes(archive) == before
    assert archive.count(schema.code_texts) == 2
    assert all(row["sealed_code"] is None for row in archive.rows(schema.computations))
    assert move_codes(archive) == 0


def test_a_newer_row_replaces_the_code_that_an_earlier_version_stored(archive: Archive) -> None:
    add(archive, "one", "old()")
    store_as_before(archive, "one")
    add(archive, "one", "new()", seen_us=NOW + 1, sequence=2)
    assert codes(archive) == ["new()"]


def test_code_that_cannot_be_decrypted_stays(archive: Archive) -> None:
    add(archive, "one", CODE, "b()")
    store_as_before(archive, "one")
    table = schema.computations
    archive.execute(sa.update(table).where(table.c.computation == "c0").values(sealed_code=b"x" * 60))
    assert move_codes(archive) == 1
    (left,) = (row for row in archive.rows(table) if row["sealed_code"] is not None)
    assert left["computation"] == "c0"
