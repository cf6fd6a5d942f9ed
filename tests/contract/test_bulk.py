"""Rows that are inserted together are stored as they are. On SQLite and on PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.archive import NOW, Archive, batch_of, frame

from daskscope.storage import schema
from daskscope.storage.base.bulk import insert_rows, replace_older
from daskscope.storage.catalog.clusters import ask_to_close
from daskscope.storage.runs.ingest import store_batches

#: Texts with every character that has a meaning in an array of PostgreSQL, or that needs more than a byte.
TEXTS = [
    "",
    "plain",
    'a "quoted" one',
    "back\\slash\\",
    "{1,2}",
    "NULL",
    "null",
    " spaces ",
    "new\nline\ttab",
    "täxt",
    "🦆",
    "%s %(x)s",
    "'",
]


@pytest.fixture
def run(archive: Archive) -> int:
    archive.ingest([frame("logs", [{"time_us": NOW, "message": "m"}])])
    return int(archive.run()["id"])


def test_any_text_is_stored(archive: Archive, run: int) -> None:
    with archive.write() as tx:
        rows = [{"run_id": run, "name": f"n{n}", "path": f"{n} {text}"} for n, text in enumerate(TEXTS)]
        insert_rows(tx.connection, schema.files, rows)
        found = tx.execute(sa.select(schema.files.c.path).order_by(schema.files.c.id)).scalars().all()
    assert found == [row["path"] for row in rows]


def test_texts_that_no_database_stores_are_changed(archive: Archive, run: int) -> None:
    with archive.write() as tx:
        rows = [{"run_id": run, "name": "n", "path": path} for path in ("nul\0", "lone \ud800")]
        insert_rows(tx.connection, schema.files, rows)
        found = tx.execute(sa.select(schema.files.c.path).order_by(schema.files.c.id)).scalars().all()
    assert found == ["nul�", "lone ?"]


def test_bytes_and_missing_bytes_are_stored(archive: Archive, run: int) -> None:
    frames: list[Any] = [bytes(range(256)), None, b""]
    with archive.write() as tx:
        insert_rows(
            tx.connection,
            schema.batches,
            [{"run_id": run, "epoch": 7, "sequence": n, "name": "n", "frame": data} for n, data in enumerate(frames)],
        )
        stored = schema.batches
        found = tx.execute(sa.select(stored.c.frame).where(stored.c.epoch == 7).order_by(stored.c.sequence)).scalars()
        assert [None if data is None else bytes(data) for data in found] == frames


def test_numbers_are_exact_and_an_older_row_is_not_stored(archive: Archive, run: int) -> None:
    def row(worker: str, time_us: int, cpu: float) -> dict[str, Any]:
        return {"run_id": run, "worker": worker, "time_us": time_us, "memory": 2**53, "cpu_percent": cpu}

    with archive.write() as tx:
        # Whole numbers and others in one column.
        replace_older(tx, schema.memories, [row("a", 5, 0.1), row("b", 5, 3)], newer="time_us")
        replace_older(tx, schema.memories, [row("a", 4, 9.0), row("b", 6, 1e300)], newer="time_us")
        table = schema.memories
        found = tx.execute(sa.select(table.c.worker, table.c.time_us, table.c.memory, table.c.cpu_percent))
        assert sorted(map(tuple, found)) == [("a", 5, 2**53, 0.1), ("b", 6, 2**53, 1e300)]


def test_a_run_that_should_close_is_named_until_it_ends(archive: Archive, run: int) -> None:
    def closing(*rows: dict[str, Any], sequence: int) -> bool:
        sent = frame("clusters", list(rows), sequence=sequence)
        with archive.write() as tx:
            return bool(store_batches(tx, [batch_of(sent, archive.account)]).requests)

    cluster = {"cluster": "c", "seen_us": NOW}
    assert not closing(cluster, sequence=1)
    with archive.write() as tx:
        ask_to_close(tx, run)
    assert closing({**cluster, "seen_us": NOW + 1}, sequence=2)
    # A duplicate is answered in the same way.
    assert closing({**cluster, "seen_us": NOW + 1}, sequence=2)
    assert not closing({**cluster, "seen_us": NOW + 2, "end_us": NOW + 2}, sequence=3)
    assert not closing({**cluster, "seen_us": NOW + 2, "end_us": NOW + 2}, sequence=4)
