"""Code is stored once per content and account, encrypted, and goes with the last computation that has it."""

from __future__ import annotations

from typing import Any

from tests.helpers.archive import NOW, Archive, frame

from daskscope.storage import schema
from daskscope.storage.catalog.clusters import delete_cluster
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


def test_equal_code_is_stored_once_and_encrypted(archive: Archive) -> None:
    for cluster in ("one", "two"):
        add(archive, cluster, CODE, CODE, "other()", "")
    assert codes(archive) == sorted(2 * ["", CODE, CODE, "other()"])
    assert archive.count(schema.code_texts) == 2
    assert not any(b"secret_name" in bytes(row["sealed"]) for row in archive.rows(schema.code_texts))


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


def test_a_newer_row_replaces_the_code(archive: Archive) -> None:
    add(archive, "one", "old()")
    add(archive, "one", "new()", seen_us=NOW + 1, sequence=2)
    assert codes(archive) == ["new()"]
