"""How often a recorder posts, and that frames that wait for their turn are on disk."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.helpers.ingest_server import Server
from tests.helpers.waiting import until

from daskscope.collector.delivery.outbox import FrameQueue, Sealed
from daskscope.collector.delivery.pace import (
    FEW_S,
    FIRST_S,
    FOLLOWED_S,
    HANDOVER_ROWS,
    HANDOVER_S,
    IDLE_S,
    LINGER_S,
    WATCHED_S,
    WORKING_S,
    Pace,
)
from daskscope.collector.delivery.poster import BodyLimits, poster
from daskscope.collector.delivery.sender import Sender
from daskscope.collector.delivery.spool import Spool, read_bodies
from daskscope.testing import make_columns
from daskscope.wire.encode import encode_body, seal

UNWATCHED = {"Daskscope-Pace": "watched=0, silence=30"}
WATCHED = {"Daskscope-Pace": "watched=1, silence=30"}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pace(clock: Clock) -> Pace:
    """A pace past its first seconds, unwatched and idle."""
    made = Pace(clock)
    made.note_reply("watched=0, silence=30")
    clock.now += FIRST_S + LINGER_S
    return made


class TestPace:
    def test_a_new_recorder_posts_often(self, clock: Clock) -> None:
        pace = Pace(clock)
        pace.note_reply("watched=0, silence=30")
        assert pace.interval_s == WATCHED_S
        assert pace.remaining_s == 0.0

    def test_watched_working_and_idle_clusters(self, pace: Pace, clock: Clock) -> None:
        assert (pace.interval_s, pace.is_idle) == (IDLE_S, True)
        pace.note_work()
        assert (pace.interval_s, pace.is_idle) == (WORKING_S, False)
        clock.now += LINGER_S + 1
        assert pace.interval_s == IDLE_S
        pace.note_reply("watched=1, silence=30")
        assert (pace.interval_s, pace.is_idle) == (WATCHED_S, False)

    def test_a_cluster_that_begins_to_work_need_not_wait_for_the_next_idle_post(self, pace: Pace, clock: Clock) -> None:
        pace.note_post()
        clock.now += 6
        assert pace.remaining_s == IDLE_S - 6
        pace.note_work()
        assert pace.remaining_s == 0.0

    def test_an_urgent_row_is_sent_soon_and_once(self, pace: Pace, clock: Clock) -> None:
        pace.note_post()
        clock.now += WATCHED_S
        pace.note_urgent()
        assert pace.remaining_s == 0.0
        pace.note_post()
        assert pace.remaining_s == IDLE_S

    @pytest.mark.parametrize(
        ("header", "is_watched", "silence"),
        [
            ("", True, IDLE_S),
            ("watched=0", False, IDLE_S),
            ("watched=1, silence=4", True, 4.0),
            ("watched=x, a, =", True, IDLE_S),
        ],
    )
    def test_what_the_server_says(self, pace: Pace, header: str, is_watched: bool, silence: float) -> None:
        pace.note_reply(header)
        assert (pace.is_watched, pace.max_silence_s) == (is_watched, silence)

    def test_a_server_that_loses_clusters_early_hears_more_often(self, pace: Pace) -> None:
        pace.note_reply("watched=0, silence=4")
        assert pace.interval_s == 4.0


class Paced:
    """A sender whose clock stands still."""

    def __init__(self, url: str, directory: Path, pace: Pace) -> None:
        self.queue = FrameQueue(10**9)
        self.spool = Spool(directory, "c-1", 10**9)
        self.sender = Sender(poster(url, "token-1"), self.queue, self.spool, first_delay=0.01, pace=pace)
        self.sequence = 0

    def put(self, table: str = "events") -> None:
        body = encode_body(table, make_columns(table, [{}]))
        frame = seal(body, cluster="c", epoch=1, sequence=self.sequence, kept=1, dropped=0)
        self.queue.put(Sealed(self.sequence, table, 1, frame))
        self.sequence += 1

    def spooled(self) -> int:
        return sum(len(body) for path in self.spool.segments() for body in read_bodies(path, BodyLimits()))


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    made.default = (200, UNWATCHED, b"ok")
    yield made
    made.close()


@pytest.fixture
def paced(server: Server, tmp_path: Path, pace: Pace) -> Iterator[Paced]:
    made = Paced(server.url, tmp_path, pace)
    made.sender.start()
    made.put()
    until(lambda: server.sequences == [0] and pace.remaining_s > 0)
    yield made
    made.sender.stop(2.0)


class TestSender:
    def test_frames_that_wait_are_on_disk_and_share_one_post(self, server: Server, paced: Paced, clock: Clock) -> None:
        for _ in range(3):
            paced.put()
            until(lambda: len(paced.queue) == 0)
        until(lambda: paced.spooled() == 3)
        assert (server.sequences, len(server.posts)) == ([0], 1)
        clock.now += IDLE_S
        paced.put()
        until(lambda: server.sequences == [0, 1, 2, 3, 4])
        assert len(server.posts) == 2
        until(lambda: paced.spool.segments() == [])

    @pytest.mark.parametrize("table", ["exceptions", "workers"])
    def test_failures_and_workers_do_not_wait(self, server: Server, paced: Paced, clock: Clock, table: str) -> None:
        clock.now += WATCHED_S
        paced.put(table)
        until(lambda: server.sequences == [0, 1])

    def test_a_watched_cluster_does_not_wait(self, server: Server, paced: Paced, clock: Clock, pace: Pace) -> None:
        server.default = (200, WATCHED, b"ok")
        clock.now += IDLE_S
        paced.put()
        until(lambda: server.sequences == [0, 1] and pace.remaining_s > 0)
        clock.now += WATCHED_S
        paced.put()
        until(lambda: server.sequences == [0, 1, 2])

    def test_the_end_does_not_wait(self, server: Server, paced: Paced) -> None:
        paced.put()
        until(lambda: paced.spooled() == 1)
        paced.put()
        paced.sender.stop(5.0)
        assert server.sequences == [0, 1, 2]
        assert paced.spool.segments() == []

    def test_an_end_while_frames_are_moved_to_disk_does_not_leave_them_there(
        self, server: Server, paced: Paced, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        append, stop = paced.spool.append, threading.Thread(target=paced.sender.stop, args=(5.0,))

        def append_during_stop(frames: Iterable[Sealed]) -> bool:
            monkeypatch.undo()
            stop.start()
            until(paced.sender._stopping.is_set)
            return append(frames)

        monkeypatch.setattr(paced.spool, "append", append_during_stop)
        paced.put()
        until(lambda: stop.ident is not None)
        stop.join()
        assert server.sequences == [0, 1]
        assert paced.spool.segments() == []

    def test_without_a_disk_nothing_waits(self, server: Server, paced: Paced, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(paced.spool, "append", lambda frames: False)
        paced.put()
        until(lambda: server.sequences == [0, 1])


def test_frames_of_a_followed_cluster_hardly_wait() -> None:
    clock = Clock()
    pace = Pace(clock)
    clock.now += 100
    pace.note_reply("watched=1, followed=1, silence=30")
    assert pace.interval_s == FOLLOWED_S
    assert not pace.is_idle
    pace.note_reply("watched=1, followed=0, silence=30")
    assert pace.interval_s == WATCHED_S


@pytest.mark.parametrize(
    ("since_s", "executions", "is_due"),
    [
        (HANDOVER_S, HANDOVER_ROWS, True),
        (HANDOVER_S / 2, 100 * HANDOVER_ROWS, False),
        (HANDOVER_S, HANDOVER_ROWS - 1, False),
        (FEW_S, 1, True),
        (60.0, 1, True),
    ],
)
def test_a_followed_cluster_hands_over_full_batches_soon_and_small_ones_later(
    since_s: float, executions: int, is_due: bool
) -> None:
    assert Pace.is_handover_due(since_s, executions) is is_due
