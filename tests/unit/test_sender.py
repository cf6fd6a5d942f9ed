"""Every frame arrives once and in order, whatever the server does, and stopping takes no longer than its timeout."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.ingest_server import Server, error_of
from tests.helpers.waiting import until

from daskscope import open_recording
from daskscope.collector.delivery.outbox import FrameQueue, Sealed
from daskscope.collector.delivery.poster import ServerReply, StackRequest, poster
from daskscope.collector.delivery.sender import Sender
from daskscope.collector.delivery.spool import Spool
from daskscope.testing import make_columns
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
def test_a_failed_post_is_retried_and_logged_once(
    server: Server, bench: Bench, trouble: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "daskscope")
    server.answers = list(trouble)
    bench.put(4)
    bench.sender.start()
    until(lambda: bench.sender.sent == 4)
    assert server.sequences == [0, 1, 2, 3]
    assert len(complaints(caplog)) == 1
    assert "the server is available again" in caplog.records[-1].getMessage()
    # The next outage is logged again.
    server.answers = [(500, {}, b"")]
    bench.put()
    until(lambda: bench.sender.sent == 5)
    assert len(complaints(caplog)) == 2


def test_the_server_is_left_alone_as_long_as_it_asks(server: Server, bench: Bench) -> None:
    server.answers = [(429, {"Retry-After": "300"}, b"")]
    bench.put()
    bench.sender.start()
    until(lambda: bench.sender.is_server_down)
    assert len(server.posts) == 1
    bench.sender.stop(2.0)
    assert len(server.posts) == 1
    assert list(open_recording(bench.spool.directory)["events"]["topic"]) == ["t0"]


def test_an_idle_connection_closed_by_the_server_is_not_an_outage(
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


@pytest.mark.parametrize(
    "page",
    [(404, b"<html>default backend - 404"), (401, b"no"), (403, b"{}"), (413, b"<html>nginx"), (400, b""), (405, b"[]"),
     (404, b'{"error":{"code":404,"message":"a gateway"}}'), (404, b'{"error":"not_found"}'), (422, b"{")],
    ids=lambda page: str(page[0]),
)  # fmt: skip
def test_a_page_of_a_proxy_is_an_outage_and_not_a_refusal(
    server: Server, bench: Bench, page: tuple[int, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = [(page[0], {}, page[1])] * 3
    bench.put(3)
    bench.sender.start()
    until(lambda: bench.sender.sent == 3)
    assert server.sequences == [0, 1, 2]
    assert (bench.sender.refusal, bench.sender.left_out) == ("", {})
    assert len(complaints(caplog)) == 1


@pytest.mark.parametrize(
    ("status", "code"), [(401, "unauthorized"), (403, "forbidden"), (403, "other_account"), (422, "newer_format")]
)
def test_a_server_that_refuses_the_recorder_is_asked_again_later(
    server: Server, bench: Bench, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.default = (status, {}, error_of(code))
    bench.put(3)
    bench.sender.start()
    until(lambda: bench.sender.refusal)
    bench.put(2)
    assert (len(server.posts), len(complaints(caplog))) == (1, 1)
    assert f"{status} " in bench.sender.refusal
    assert code in bench.sender.refusal
    # As after the delay, which is some minutes.
    bench.sender.retry()
    until(lambda: len(server.posts) == 2)
    server.default = (200, {}, b"ok")
    bench.sender.retry()
    until(lambda: bench.sender.sent == 5)
    assert server.sequences == list(range(5))
    assert (bench.sender.refusal, len(complaints(caplog))) == ("", 1)


def test_a_refused_recorder_asks_again_by_itself(server: Server, bench: Bench) -> None:
    bench.sender.refused_delay = 0.02
    server.answers = [(401, {}, error_of("unauthorized"))] * 4
    bench.put(3)
    bench.sender.start()
    until(lambda: bench.sender.sent == 3)
    assert (len(server.posts), server.sequences) == (5, [0, 1, 2])


def test_a_recorder_that_stops_while_it_is_refused_leaves_its_frames_on_disk(server: Server, bench: Bench) -> None:
    server.default = (401, {}, error_of("unauthorized"))
    bench.put(3)
    bench.sender.start()
    until(lambda: bench.sender.refusal)
    bench.put(2)
    bench.sender.stop(2.0)
    assert len(server.posts) == 1
    assert list(open_recording(bench.spool.directory)["events"]["topic"]) == [f"t{n}" for n in range(5)]


def test_a_new_token_replaces_a_refused_one(server: Server, bench: Bench) -> None:
    bench.put()
    bench.sender.start()
    until(lambda: bench.sender.sent == 1)
    # Not refused: the recorder keeps its own token.
    bench.sender.retry(poster(server.url, "token-2"))
    server.answers = [(401, {}, error_of("unauthorized"))]
    bench.put()
    until(lambda: bench.sender.refusal)
    bench.sender.retry(poster(server.url, "token-3"))
    until(lambda: bench.sender.sent == 2)
    assert [token for _, token in server.posts] == ["Bearer token-1", "Bearer token-1", "Bearer token-3"]


@pytest.mark.parametrize("limit", [10**9, 3_000], ids=["in memory", "on disk"])
def test_a_body_with_too_much_is_sent_in_parts(server: Server, tmp_path: Path, limit: int) -> None:
    bench = Bench(server.url, tmp_path, limit=limit)
    server.max_frames = 3
    bench.put(50)
    bench.sender.start()
    until(lambda: len(server.sequences) >= 50)
    bench.sender.stop(5.0)
    assert server.sequences == list(range(50))
    assert (bench.spool.segments(), bench.sender.left_out, bench.sender.refusal) == ([], {}, "")


@pytest.mark.parametrize("code", ["too_large", "bad_request"])
def test_only_the_frame_that_is_refused_alone_is_left_out(server: Server, bench: Bench, code: str) -> None:
    # Four frames, then two, then the first alone.
    server.answers = [(413 if code == "too_large" else 400, {}, error_of(code))] * 3
    bench.put(4)
    bench.sender.start()
    until(lambda: bench.sender.sent == 3)
    assert server.sequences == [1, 2, 3]
    assert bench.sender.left_out == {"events": 1}
    bench.put()
    until(lambda: bench.sender.sent == 4)


def test_the_limits_of_a_server_are_respected(server: Server, bench: Bench) -> None:
    server.default = (200, {"Daskscope-Limits": "bytes=2000000, frames=2, rows=500000, characters=9, new=x"}, b"ok")
    bench.put()
    bench.sender.start()
    until(lambda: bench.sender.sent == 1)
    server.go_on.clear()
    server.asked.clear()
    bench.put(1)
    assert server.asked.wait(30)
    bench.put(6)
    server.go_on.set()
    until(lambda: bench.sender.sent == 8)
    assert len(server.posts) == 5
    assert server.sequences == list(range(8))


def test_an_unexpected_error_does_not_end_the_thread(
    server: Server, bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bench.spool, "segments", lambda: 1 / 0)
    bench.sender.has_spooled = True
    bench.put()
    bench.sender.start()
    until(lambda: complaints(caplog))
    monkeypatch.undo()
    bench.sender.retry()
    until(lambda: bench.sender.sent == 1)


def test_during_an_outage_frames_go_to_disk_and_arrive_later_in_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone = Server()
    gone.close()
    bench = Bench(gone.url, tmp_path, limit=3_000)
    bench.sender.start()
    bench.put(100)
    until(lambda: bench.sender.is_server_down)
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


def test_an_outage_while_catching_up_repeats_no_frame(server: Server, tmp_path: Path) -> None:
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


def test_a_server_that_hangs_does_not_delay_stopping(server: Server, tmp_path: Path) -> None:
    bench = Bench(server.url, tmp_path)
    server.go_on.clear()
    bench.put(3)
    bench.sender.start()
    assert server.asked.wait(30)
    bench.put(2)
    began = time.monotonic()
    bench.sender.stop(0.3)
    # The post itself would take its timeout of 30 s.
    assert time.monotonic() - began < 10
    assert list(open_recording(tmp_path)["events"]["topic"]) == [f"t{n}" for n in range(5)]


def test_a_server_that_hangs_counts_as_down_after_the_timeout(server: Server, tmp_path: Path) -> None:
    bench = Bench(server.url, tmp_path, timeout=0.05)
    server.go_on.clear()
    bench.put()
    bench.sender.start()
    until(lambda: bench.sender.is_server_down)
    server.go_on.set()
    until(lambda: bench.sender.sent == 1)
    bench.sender.stop(2.0)
    assert set(server.sequences) == {0}


def test_stopping_sends_the_remaining_frames(server: Server, bench: Bench) -> None:
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
def test_an_invalid_token_does_not_end_the_thread(server: Server, tmp_path: Path, token: str) -> None:
    bench = Bench(server.url, tmp_path)
    bench.sender.post = poster(server.url, token)
    bench.put()
    bench.sender.start()
    until(lambda: bench.sender.is_server_down)
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
def test_replies_are_classified_by_status(status: int, accepted: bool, refused: bool) -> None:
    reply = ServerReply(status)
    assert (reply.is_accepted, reply.is_refused) == (accepted, refused)


def test_a_request_for_stacks_is_read_from_the_reply() -> None:
    text = '{"taken":1,"stacks":{"cluster":"c","request":17,"worker":"tcp://w"}}'
    assert ServerReply(200, reason=text).asked_stacks == StackRequest("c", 17, "tcp://w")
    assert ServerReply(500, reason=text).asked_stacks is None


@pytest.mark.parametrize(
    "text", ['{"taken":1}', '{"stacks":3}', '{"stacks":{"cluster":"c"}}', '{"stacks":{', '{"stacks":{"request":"x"}}']
)
def test_a_reply_without_a_valid_request_for_stacks_is_no_problem(text: str) -> None:
    assert ServerReply(200, reason=text).asked_stacks is None


def test_the_sender_passes_a_request_for_stacks_on(bench: Bench) -> None:
    asked: list[StackRequest] = []
    bench.sender.post = lambda _: ServerReply(200, reason='{"stacks":{"cluster":"c","request":17,"worker":""}}')
    bench.sender.on_stacks = asked.append
    bench.sender.start()
    bench.put()
    until(lambda: asked)
    assert asked == [StackRequest("c", 17, "")]
