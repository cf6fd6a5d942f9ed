"""Frames are numbered once and reach all subscribers; a subscriber that falls behind loses raw rows first."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.samples import write_frames

from daskscope import open_recording
from daskscope.collector.delivery.outbox import FrameQueue, Outbox, Sealed, SubscriberFailed
from daskscope.model.recording import Completeness
from daskscope.testing import make_columns
from daskscope.wire.decode import read_frame
from daskscope.wire.encode import Body, encode_body, seal

SEAL: dict[str, Any] = {"cluster": "c", "epoch": 5, "sequence": 0, "kept": 3, "dropped": 0}


def body(table: str = "tasks", rows: int = 2) -> Body:
    return encode_body(table, make_columns(table, [{}] * rows))


def sealed(sequence: int, table: str = "tasks", size: int = 10, rows: int = 1) -> Sealed:
    return Sealed(sequence, table, rows, bytes(size))


def test_frames_are_numbered_and_count_the_rows_of_their_table() -> None:
    outbox, got = Outbox("c", 5), list[Sealed]()
    outbox.subscribe("me", got.append)
    outbox.count_dropped("tasks", 7)
    for table in ("tasks", "events", "tasks"):
        outbox.publish(body(table))
    headers = [read_frame(frame.frame).header for frame in got]
    assert [(h.cluster, h.epoch, h.sequence, h.table, h.kept, h.dropped) for h in headers] == [
        ("c", 5, 0, "tasks", 2, 7),
        ("c", 5, 1, "events", 2, 0),
        ("c", 5, 2, "tasks", 4, 7),
    ]


def test_a_subscriber_that_fails_does_not_cost_the_others_their_frame() -> None:
    outbox, got = Outbox("c", 5), list[Sealed]()

    def broken(frame: Sealed) -> None:
        raise ValueError("no")

    outbox.subscribe("broken", broken)
    outbox.subscribe("me", got.append)
    for _ in range(2):
        with pytest.raises(SubscriberFailed):
            outbox.publish(body())
    assert [frame.sequence for frame in got] == [0, 1]


def test_a_body_that_cannot_be_sealed_uses_no_sequence_number() -> None:
    outbox, got = Outbox("c" * 1000, 5), list[Sealed]()
    outbox.subscribe("me", got.append)
    with pytest.raises(ValueError, match="reader"):
        outbox.publish(body())
    outbox.cluster = "c"
    outbox.publish(body())
    assert [(frame.sequence, read_frame(frame.frame).header.kept) for frame in got] == [(0, 2)]


def test_the_event_loop_never_waits_for_a_subscriber() -> None:
    outbox, inside, go_on = Outbox("c", 5), threading.Event(), threading.Event()

    def slow_disk(frame: Sealed) -> None:
        inside.set()
        assert go_on.wait(30)

    outbox.subscribe("disk", slow_disk)
    writer = threading.Thread(target=outbox.publish, args=(body(),))
    writer.start()
    assert inside.wait(30)
    # All of this runs on the event loop; if publish held the lock, it would never return.
    outbox.count_dropped("tasks", 1)
    outbox.subscribe("other", lambda frame: None)
    outbox.unsubscribe("other")
    go_on.set()
    writer.join(30)


def test_a_subscriber_that_unsubscribed_gets_no_more_frames() -> None:
    outbox, mine, others = Outbox("c", 5), list[Sealed](), list[Sealed]()
    outbox.subscribe("me", mine.append)
    outbox.subscribe("other", others.append)
    outbox.publish(body())
    outbox.unsubscribe("other")
    outbox.unsubscribe("nobody")
    outbox.publish(body())
    assert [[frame.sequence for frame in got] for got in (mine, others)] == [[0, 1], [0]]


def test_a_queue_returns_frames_until_they_are_acknowledged() -> None:
    queue = FrameQueue(1000)
    for number in range(5):
        queue.put(sealed(number))
    assert [frame.sequence for frame in queue.peek(25)] == [0, 1]
    assert [frame.sequence for frame in queue.peek(25)] == [0, 1]
    queue.acknowledge(1)
    assert [frame.sequence for frame in queue.peek(1)] == [2]
    assert (len(queue), queue.size) == (3, 30)


def test_popped_frames_can_be_put_back() -> None:
    queue = FrameQueue(1000)
    for number in range(4):
        queue.put(sealed(number))
    taken = queue.pop(20)
    assert (len(queue), queue.size) == (2, 20)
    queue.put_back(taken)
    assert [frame.sequence for frame in queue.pop_all()] == [0, 1, 2, 3]
    assert queue.size == 0


def test_the_oldest_raw_rows_are_dropped_first() -> None:
    queue = FrameQueue(100)
    for number in range(10):
        queue.put(sealed(number, "exceptions" if number % 2 else "tasks"))
    queue.put(sealed(10))
    kept = [frame.sequence for frame in queue.peek(10_000)]
    # The first frame of tasks stays, so that a reader detects that the next are missing.
    assert kept == [0, 1, 3, 5, 7, 9, 10]
    assert queue.size <= 100


@pytest.mark.parametrize("joined", [0, 7], ids=["from the start", "in mid-epoch"])
def test_a_reader_knows_how_many_rows_a_queue_dropped(joined: int, tmp_path: Path) -> None:
    outbox, queue = Outbox("c", 5), FrameQueue(4 * len(seal(body(rows=3), **SEAL)))
    for _ in range(joined):
        outbox.publish(body("edges", rows=3))
    outbox.subscribe("me", queue.put)
    for number in range(60):
        # There are no more edges after the first half.
        outbox.publish(body("edges" if number % 2 and number < 30 else "tasks", rows=3))
    frames = queue.pop_all()
    write_frames(tmp_path / "run.daskscope", [frame.frame for frame in frames])
    held = open_recording(tmp_path / "run.daskscope").completeness
    rows = {table: sum(frame.rows for frame in frames if frame.table == table) for table in ("tasks", "edges")}
    assert held == {
        "tasks": Completeness(rows["tasks"], 0, 45 * 3 - rows["tasks"]),
        "edges": Completeness(rows["edges"], 0, 15 * 3 - rows["edges"]),
    }
    assert held["tasks"].missing > 0
    assert held["edges"].missing > 0


def test_totals_and_errors_are_dropped_only_at_twice_the_limit() -> None:
    queue = FrameQueue(100)
    for number in range(20):
        queue.put(sealed(number, "exceptions"))
    assert len(queue) == 20
    queue.put(sealed(20, "exceptions"))
    assert [frame.sequence for frame in queue.peek(10_000)] == [0, *range(12, 21)]


def test_the_oldest_frames_go_to_the_overflow() -> None:
    queue, spilled = FrameQueue(100), list[int]()

    def overflow(frames: list[Sealed]) -> bool:
        spilled.extend(frame.sequence for frame in frames)
        return True

    queue.overflow = overflow
    for number in range(30):
        queue.put(sealed(number))
    assert spilled + [frame.sequence for frame in queue.pop_all()] == list(range(30))


def test_an_overflow_that_refuses_leaves_the_queue_bounded() -> None:
    queue = FrameQueue(100, overflow=lambda frames: False)
    for number in range(1000):
        queue.put(sealed(number, "exceptions" if number % 60 == 0 else "tasks"))
    assert queue.size <= 300
    assert sum(frame.table == "exceptions" for frame in queue.peek(10**9)) >= 10
