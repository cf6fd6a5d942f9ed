"""The offset between a scheduler's clock and the server's, from when batches were sent and received; on both databases."""

from __future__ import annotations

from dataclasses import replace

from tests.helpers.archive import NOW, Archive, batch_of, frame, task

from daskscope.storage.runs.ingest import store_batches


def send(archive: Archive, delay_us: int, sequence: int, *frames: bytes) -> None:
    batches = [
        replace(batch_of(data, archive.account), delay_us=delay_us)
        for data in frames or (frame("tasks", [task(sequence)], sequence),)
    ]
    with archive.write() as tx:
        store_batches(tx, batches)


def test_the_smallest_delay_is_the_offset(archive: Archive) -> None:
    seen = []
    for sequence, delay in enumerate((12_400_000, 0, 12_100_000, 30_000_000)):
        send(archive, delay, sequence)
        seen.append(archive.run()["clock_offset_us"])
    # 0: the recorder did not send its time.
    assert seen == [12_400_000, 12_400_000, 12_100_000, 12_100_000]


def test_the_offset_follows_an_adjusted_clock_slowly(archive: Archive) -> None:
    """Slow requests for half a minute do not move it; a clock that is 5 s off for two hours does."""
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


def test_the_offset_of_a_clock_that_is_ahead_is_negative(archive: Archive) -> None:
    send(archive, 200, 0)
    send(archive, -9_000_000, 1)
    send(archive, -8_000_000, 2)
    assert archive.run()["clock_offset_us"] == -9_000_000


def test_an_offset_sent_by_the_cluster_is_ignored(archive: Archive) -> None:
    row = {"cluster": "c", "seen_us": NOW, "start_us": NOW, "clock_offset_us": 77}
    archive.ingest([frame("clusters", [row], 0)])
    assert archive.run()["clock_offset_us"] == 0
    send(archive, 5_000, 1)
    archive.ingest([frame("clusters", [{**row, "seen_us": NOW + 1}], 2)])
    assert archive.run()["clock_offset_us"] == 5_000
