"""How far a scheduler's clock is from the server's, by when its batches were sent and came; on SQLite and on PostgreSQL."""

from __future__ import annotations

from dataclasses import replace

from tests.archive import NOW, Archive, batch_of, frame, task

from daskscope.storage.ingest import take


def send(archive: Archive, delay_us: int, sequence: int, *frames: bytes) -> None:
    batches = [
        replace(batch_of(data, archive.account), delay_us=delay_us)
        for data in frames or (frame("tasks", [task(sequence)], sequence),)
    ]
    with archive.database.write() as connection:
        take(connection, archive.vault, batches, archive.now_us)


def test_the_least_delay_is_what_is_kept(archive: Archive) -> None:
    seen = []
    for sequence, delay in enumerate((12_400_000, 0, 12_100_000, 30_000_000)):
        send(archive, delay, sequence)
        seen.append(archive.run()["clock_offset_us"])
    # 0 is a recorder that does not say.
    assert seen == [12_400_000, 12_400_000, 12_100_000, 12_100_000]


def test_a_clock_that_was_set_is_followed_slowly(archive: Archive) -> None:
    """Half a minute of slower answers does not move it; a clock that is 5 s off for two hours does."""
    minute = 60_000_000
    send(archive, 1_000, 0)
    archive.now_us += minute // 2
    send(archive, 5_000_000, 1)
    assert archive.run()["clock_offset_us"] == 1_000 + 30_000
    seen = []
    for sequence in range(2, 122):
        archive.now_us += minute
        send(archive, 5_000_000, sequence)
        seen.append(archive.run()["clock_offset_us"])
    assert seen == sorted(seen)
    assert seen[-1] == 5_000_000


def test_a_clock_that_is_ahead_makes_it_negative(archive: Archive) -> None:
    send(archive, 200, 0)
    send(archive, -9_000_000, 1)
    send(archive, -8_000_000, 2)
    assert archive.run()["clock_offset_us"] == -9_000_000


def test_what_the_cluster_says_of_its_own_clock_is_not_taken(archive: Archive) -> None:
    row = {"cluster": "c", "seen_us": NOW, "start_us": NOW, "clock_offset_us": 77}
    archive.take([frame("clusters", [row], 0)])
    assert archive.run()["clock_offset_us"] == 0
    send(archive, 5_000, 1)
    archive.take([frame("clusters", [{**row, "seen_us": NOW + 1}], 2)])
    assert archive.run()["clock_offset_us"] == 5_000
