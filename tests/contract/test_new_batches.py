"""A reader gets every batch once, or is told to start anew."""

from __future__ import annotations

import pytest
from tests.helpers.archive import NOW, Archive, frame, task

from daskscope.storage.runs import new_batches
from daskscope.storage.runs.new_batches import Position, batches_since, position_of, read_recent

TABLES = ("tasks", "events")


def tasks(sequence: int, *, epoch: int = 1, rows: int = 2) -> bytes:
    return frame(
        "tasks", [task(sequence * 10 + n) for n in range(rows)], sequence, epoch=epoch, kept=(sequence + 1) * rows
    )


def since(archive: Archive, position: Position, account: int = 0) -> tuple[list[tuple[int, int]], Position] | None:
    """Return the epochs and sequence numbers of new batches, and the new position."""
    run = archive.run()["id"]
    with archive.snapshot() as tx:
        found = batches_since(tx, account or archive.account, run, position, TABLES)
    if found is None:
        return None
    return [(batch.epoch, batch.sequence) for batch in found[0]], found[1]


def test_a_reader_gets_every_batch_once(archive: Archive) -> None:
    archive.ingest([tasks(0), tasks(1)])
    position: Position = {}
    seen: list[tuple[int, int]] = []
    for new in ([], [tasks(2)], [tasks(3), tasks(4)], [], [tasks(0, epoch=2)]):
        archive.ingest(new)
        found = since(archive, position)
        assert found is not None
        seen += found[0]
        position = found[1]
    assert seen == [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (2, 0)]


def test_batches_of_other_tables_count_but_are_not_read(archive: Archive) -> None:
    archive.ingest([tasks(0), frame("logs", [{"time_us": NOW, "message": "m"}], 1), tasks(2)])
    found = since(archive, {})
    assert found is not None
    assert found[0] == [(1, 0), (1, 2)]
    assert since(archive, found[1]) == ([], found[1])


def test_a_late_batch_starts_the_reader_anew(archive: Archive) -> None:
    archive.ingest([tasks(0), tasks(2)])
    found = since(archive, {})
    assert found is not None
    archive.ingest([tasks(1)])
    assert since(archive, found[1]) is None


def test_a_compaction_starts_a_reader_anew_that_had_not_seen_all(archive: Archive) -> None:
    archive.ingest([tasks(0)])
    found = since(archive, {})
    assert found is not None
    archive.ingest([tasks(1)])
    archive.compact(archive.run()["id"], over=False)
    assert since(archive, found[1]) is None


def test_a_compaction_does_not_disturb_a_reader_that_had_seen_all(archive: Archive) -> None:
    archive.ingest([tasks(0), tasks(1)])
    found = since(archive, {})
    assert found is not None
    archive.compact(archive.run()["id"], over=False)
    archive.ingest([tasks(2)])
    assert since(archive, found[1]) is not None


def test_too_many_bytes_start_the_reader_anew(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.ingest([tasks(0)])
    found = since(archive, {})
    assert found is not None
    archive.ingest([tasks(1), tasks(2)])
    monkeypatch.setattr(new_batches, "MAX_NEW_NBYTES", 10)
    assert since(archive, found[1]) is None


@pytest.mark.parametrize("is_compacted", [False, True])
def test_recent_rows_and_the_position_after_them(archive: Archive, is_compacted: bool) -> None:
    archive.ingest([tasks(0), tasks(1)])
    run = archive.run()["id"]
    if is_compacted:
        archive.compact(run, over=False)
    recording, position = read_recent(archive, archive.account, run, "test", TABLES, 0, 2 * NOW)
    assert recording["tasks"].rows == 4
    with archive.read() as tx:
        assert position == position_of(tx, run)
    archive.ingest([tasks(2)])
    found = since(archive, position)
    assert found is not None
    assert found[0] == [(1, 2)]


def test_batches_before_the_window_are_not_read(archive: Archive) -> None:
    archive.ingest(
        [frame("tasks", [task(1, id=1, stop_us=NOW)], 0), frame("tasks", [task(2, id=2, stop_us=NOW + 10**9)], 1)]
    )
    run = archive.run()["id"]
    recording, _ = read_recent(archive, archive.account, run, "test", TABLES, NOW + 10**8, NOW + 2 * 10**9)
    assert recording["tasks"]["id"].tolist() == [2]
