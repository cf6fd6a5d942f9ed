"""Everything arrives once and in order, whatever the server does, and shutting down takes the time it is given."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from daskscope import open_recording
from daskscope.collector.outbox import FrameQueue, Sealed
from daskscope.collector.sender import Answer, Sender, poster
from daskscope.collector.spool import Spool
from daskscope.testing import make_columns
from daskscope.testing.server import Server
from daskscope.wire.encode import encode_body, seal


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


class Bench:
    def __init__(self, url: str, directory: Path, *, limit: int = 10**9, timeout: float = 30.0) -> None:
        self.queue = FrameQueue(limit)
        self.spool = Spool(directory, "c-1", 10**9, segment=2_000)
        self.sender = Sender(poster(url, "token-1", timeout), self.queue, self.spool, first_delay=0.01)
        self.sequence = 0

    def put(self, count: int = 1) -> None:
        for _ in range(count):
            body = encode_body("events", make_columns("events", [{"topic": f"t{self.sequence}"}]))
            data = seal(body, cluster="c", epoch=1, sequence=self.sequence, kept=self.sequence + 1, dropped=0)
            self.queue.put(Sealed(self.sequence, "events", 1, data))
            self.sequence += 1


@pytest.fixture
def bench(server: Server, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(server.url, tmp_path)
    yield made
    made.sender.stop(1.0)


def until(condition: Callable[[], Any]) -> None:
    """Wait for what another thread does."""
    deadline, waiter = time.monotonic() + 30, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        waiter.wait(0.005)


def has_sent(bench: Bench, count: int) -> bool:
    return bench.sender.sent == count


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_frames_are_posted_with_the_token(server: Server, bench: Bench) -> None:
    bench.sender.start()
    bench.put(3)
    until(lambda: server.sequences == [0, 1, 2])
    assert set(server.posts) == {("/base/api/v1/ingest", "Bearer token-1")}
    until(lambda: bench.sender.sent == 3)
    assert bench.spool.segments() == []


def test_one_connection_is_used_for_all(server: Server, bench: Bench) -> None:
    bench.sender.start()
    for number in range(5):
        bench.put()
        until(partial(has_sent, bench, number + 1))
    assert len(server.connections) == 1


@pytest.mark.parametrize(
    "trouble",
    [
        [(500, {}, b"oops")] * 3,
        [(503, {}, b"x" * 100_000)] * 2,
        [(429, {"Retry-After": "0.02"}, b"slow down")] * 2,
        [(429, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, b"")],
        [(0, {}, b"")] * 2,
    ],
    ids=["500", "a long page", "429", "429 with a date", "hangs up"],
)
def test_what_fails_is_sent_again_and_complained_about_once(
    server: Server, bench: Bench, trouble: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "daskscope")
    server.answers = list(trouble)
    bench.put(4)
    bench.sender.start()
    until(lambda: bench.sender.sent == 4)
    assert server.sequences == [0, 1, 2, 3]
    assert len(complaints(caplog)) == 1
    assert "the server is back" in caplog.records[-1].getMessage()
    # The next outage is another one.
    server.answers = [(500, {}, b"")]
    bench.put()
    until(lambda: bench.sender.sent == 5)
    assert len(complaints(caplog)) == 2


def test_the_server_is_left_alone_as_long_as_it_asks(server: Server, bench: Bench) -> None:
    server.answers = [(429, {"Retry-After": "300"}, b"")]
    bench.put()
    bench.sender.start()
    until(lambda: bench.sender.away)
    assert len(server.posts) == 1
    bench.sender.stop(2.0)
    assert len(server.posts) == 1
    assert list(open_recording(bench.spool.directory)["events"]["topic"]) == ["t0"]


def test_a_connection_the_server_closed_while_it_was_idle_is_no_outage(
    server: Server, bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = [(200, {"X-Close": "1"}, b"ok")]
    bench.sender.start()
    bench.put()
    until(lambda: bench.sender.sent == 1)
    bench.put()
    until(lambda: bench.sender.sent == 2)
    assert server.sequences == [0, 1]
    assert complaints(caplog) == []


@pytest.mark.parametrize("status", [401, 403, 404, 413])
def test_a_server_that_refuses_is_not_asked_again(
    server: Server, bench: Bench, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    server.default = (status, {}, b"no")
    bench.put(3)
    bench.sender.start()
    until(lambda: bench.sender.refused)
    bench.put(2)
    bench.sender.stop(2.0)
    assert len(server.posts) == 1
    assert len(complaints(caplog)) == 1
    assert f"{status} no" in bench.sender.refused
    assert list(open_recording(bench.spool.directory)["events"]["topic"]) == [f"t{n}" for n in range(5)]


def test_while_nobody_listens_frames_go_to_disk_and_arrive_later_in_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone = Server()
    gone.close()
    bench = Bench(gone.url, tmp_path, limit=3_000)
    bench.sender.start()
    bench.put(100)
    until(lambda: bench.sender.away)
    assert len(bench.spool.segments()) > 2
    server = Server(gone.port)
    try:
        until(lambda: len(server.sequences) >= 100)
        bench.put(5)
        until(lambda: len(server.sequences) >= 105)
        assert server.sequences == list(range(105))
        until(lambda: bench.spool.segments() == [])
        assert len(complaints(caplog)) == 1
    finally:
        bench.sender.stop(1.0)
        server.close()


def test_an_outage_in_the_middle_of_catching_up_doubles_nothing(server: Server, tmp_path: Path) -> None:
    bench = Bench(server.url, tmp_path, limit=3_000)
    server.default = (500, {}, b"")
    bench.put(200)
    assert len(bench.spool.segments()) > 5
    server.answers = [(500, {}, b""), (200, {}, b""), (200, {}, b""), (0, {}, b""), (200, {}, b""), (503, {}, b"")]
    bench.sender.start()
    until(lambda: len(server.posts) > 6)
    server.default = (200, {}, b"ok")
    until(lambda: len(server.sequences) >= 200)
    bench.sender.stop(5.0)
    assert server.sequences == list(range(200))
    assert bench.spool.segments() == []


def test_frames_that_overflow_during_a_post_stay_in_order(server: Server, tmp_path: Path) -> None:
    bench = Bench(server.url, tmp_path, limit=3_000)
    server.go_on.clear()
    bench.put(2)
    bench.sender.start()
    assert server.asked.wait(30)
    bench.put(100)
    server.go_on.set()
    until(lambda: len(server.sequences) >= 102)
    bench.sender.stop(5.0)
    assert server.sequences == list(range(102))


def test_a_server_that_hangs_does_not_keep_us(server: Server, tmp_path: Path) -> None:
    bench = Bench(server.url, tmp_path)
    server.go_on.clear()
    bench.put(3)
    bench.sender.start()
    assert server.asked.wait(30)
    bench.put(2)
    began = time.monotonic()
    bench.sender.stop(0.3)
    # The post itself would take its time-out of 30 s.
    assert time.monotonic() - began < 10
    assert list(open_recording(tmp_path)["events"]["topic"]) == [f"t{n}" for n in range(5)]


def test_a_server_that_hangs_is_away_after_the_time_out(server: Server, tmp_path: Path) -> None:
    bench = Bench(server.url, tmp_path, timeout=0.05)
    server.go_on.clear()
    bench.put()
    bench.sender.start()
    until(lambda: bench.sender.away)
    server.go_on.set()
    until(lambda: bench.sender.sent == 1)
    bench.sender.stop(2.0)
    assert set(server.sequences) == {0}


def test_stopping_sends_what_there_is(server: Server, bench: Bench) -> None:
    bench.sender.start()
    bench.put(50)
    bench.sender.stop(30.0)
    assert server.sequences == list(range(50))
    assert bench.spool.segments() == []


def test_stopping_a_sender_that_never_started_keeps_the_frames(bench: Bench) -> None:
    bench.put(2)
    bench.sender.stop(1.0)
    assert list(open_recording(bench.spool.directory)["events"]["topic"]) == ["t0", "t1"]


@pytest.mark.parametrize("token", ["with\nnewline", "não-latin-☃"])
def test_an_odd_token_does_not_end_the_thread(server: Server, tmp_path: Path, token: str) -> None:
    bench = Bench(server.url, tmp_path)
    bench.sender.post = poster(server.url, token)
    bench.put()
    bench.sender.start()
    until(lambda: bench.sender.away)
    assert bench.sender._thread.is_alive()
    bench.sender.stop(2.0)


def test_a_segment_that_disappears_does_not_end_the_thread(server: Server, tmp_path: Path) -> None:
    bench = Bench(server.url, tmp_path, limit=3_000)
    bench.put(100)
    bench.spool.segments()[0].write_bytes(b"")
    bench.spool.segments()[1].unlink()
    bench.sender.start()
    until(lambda: server.sequences and server.sequences[-1] == 99)
    bench.sender.stop(5.0)
    assert server.sequences == sorted(server.sequences)


@pytest.mark.parametrize(("status", "accepted", "refused"), [(200, True, False), (204, True, False), (0, False, False)])
def test_answers(status: int, accepted: bool, refused: bool) -> None:
    answer = Answer(status)
    assert (answer.accepted, answer.refused) == (accepted, refused)
