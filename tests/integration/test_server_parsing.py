"""A busy server checks and rolls up batches in another process, with the same result, and does without it if it ends."""

from __future__ import annotations

import os
import signal
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import psutil
import pytest
from tests.helpers.hosted import HostedServer, HttpResponse
from tests.helpers.samples import sample_frames, sample_tables
from tests.helpers.waiting import until

from daskscope.server.ingest import parsing
from daskscope.server.ingest.parsing import ParseProcess
from daskscope.server.processes import parse
from daskscope.server.processes.parse import Reply, RollUpFailed, TooMuchText, reply_to, roll_up_frames
from daskscope.server.routes.ingest import split
from daskscope.testing import make_frames
from daskscope.wire.layout import MAGIC, PREFIX

TASKS = len(sample_tables("c")["tasks"])


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostedServer]:
    """A server that counts as busy from its first batch on."""
    monkeypatch.setattr(parsing, "BUSY_RATE", -1.0)
    with HostedServer(tmp_path) as server:
        yield server


def process_of(server: HostedServer) -> ParseProcess:
    """Send a batch and return the process that the server starts."""
    assert server.send(sample_frames("first")).status == 200
    until(lambda: any(process.is_alive for process in server.services.parsing.processes))
    return server.services.parsing.processes[0]


def cpu_s(process: ParseProcess) -> float:
    times = psutil.Process(process.process.pid).cpu_times()
    return float(times.user + times.system)


def tasks_of(server: HostedServer, cluster: str) -> int:
    return int(server.ask("GET", f"/api/v1/clusters/{cluster}").json()["n_tasks"])


def outcome(answer: HttpResponse) -> tuple[int, str, str]:
    return answer.status, answer.code, answer.text


def damaged() -> bytes:
    """Return a body whose frames have valid checksums and invalid columns."""
    frames = make_frames({"tasks": sample_tables("c")["tasks"]}, cluster="c", epoch=5)
    return b"".join(_with_other_columns(frame) for frame in frames)


def _with_other_columns(frame: bytes) -> bytes:
    _, header, body, _ = PREFIX.unpack_from(frame)
    start = PREFIX.size + header
    changed = frame[start:-1] + bytes([frame[-1] ^ 0xFF])
    crc = zlib.crc32(changed, zlib.crc32(frame[PREFIX.size : start], zlib.crc32(frame[4:12])))
    return PREFIX.pack(MAGIC, header, body, crc) + frame[PREFIX.size : start] + changed


def test_a_reply_has_what_a_thread_computes() -> None:
    body = sample_frames("c")
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(reply_to(body)), type=Reply)
    assert sent.result() == roll_up_frames(split(body))


def test_a_busy_server_uses_another_process(server: HostedServer) -> None:
    process = process_of(server)
    before = cpu_s(process)
    for number in range(100):
        assert server.send(sample_frames(f"c{number}")).status == 200
    assert cpu_s(process) > before
    assert {tasks_of(server, f"c{number}") for number in (0, 50, 99)} == {TASKS}


def test_a_quiet_server_has_no_other_process(tmp_path: Path) -> None:
    with HostedServer(tmp_path) as server:
        assert server.send(sample_frames("c")).status == 200
        assert server.services.parsing.processes == []


def test_an_invalid_body_is_refused_with_the_same_words(
    server: HostedServer, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    process_of(server)
    with_process = outcome(server.send(damaged()))
    monkeypatch.setattr(parsing, "BUSY_RATE", 1e9)
    with HostedServer(tmp_path_factory.mktemp("quiet")) as quiet:
        assert outcome(quiet.send(damaged())) == with_process
    assert with_process[:2] == (400, "bad_request")


def test_invalid_frames_cost_their_sender_cpu_time() -> None:
    assert reply_to(damaged()).error == "invalid"
    assert reply_to(damaged()).cpu_s > 0


def test_errors_of_the_process_are_those_of_a_thread() -> None:
    with pytest.raises(TooMuchText):
        Reply(error="text").result()
    with pytest.raises(MemoryError):
        Reply(error="memory").result()


def test_batches_are_stored_although_the_process_ends(server: HostedServer) -> None:
    process = process_of(server)
    os.kill(process.process.pid, signal.SIGSTOP)
    with ThreadPoolExecutor() as threads:
        during = threads.submit(server.send, sample_frames("during"))
        until(lambda: process.waiting == 1)
        os.kill(process.process.pid, signal.SIGKILL)
        assert during.result().status == 200
    assert server.send(sample_frames("after")).status == 200
    assert not process.is_alive
    assert [tasks_of(server, cluster) for cluster in ("during", "after")] == [TASKS, TASKS]


def test_the_process_ends_with_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "BUSY_RATE", -1.0)
    with HostedServer(tmp_path) as server:
        process = process_of(server)
        assert psutil.pid_exists(process.process.pid)
    process.process.wait(10)
    assert process.process.returncode is not None


def test_only_the_process_that_ended_is_replaced(server: HostedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "PARSERS", 2)
    process_of(server)
    until(lambda: len(server.services.parsing.processes) == 2)
    first, second = server.services.parsing.processes
    monkeypatch.setattr(parsing, "RESTART_S", 0.0)
    first.process.kill()
    until(lambda: not first.is_alive)
    assert server.send(sample_frames("after")).status == 200
    until(lambda: len(server.services.parsing.processes) == 2 and first not in server.services.parsing.processes)
    kept, new = server.services.parsing.processes
    assert kept is second
    assert new.is_alive
    server.services.parsing.close()
    assert [process.process.wait(10) for process in (first, second, new)] == [-signal.SIGKILL] * 3


def test_a_bug_in_the_roll_up_does_not_end_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(parse, "roll_up", broken)
    reply = reply_to(sample_frames("c"))
    assert (reply.error, reply.message) == ("failed", "ZeroDivisionError()")
    with pytest.raises(RollUpFailed):
        reply.result()


def test_too_much_text_is_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "MAX_TEXT", 1)
    assert reply_to(sample_frames("c")).error == "text"


def test_a_server_without_memory_asks_the_recorder_to_send_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(parsing, "roll_up_frames", exhausted)
    with HostedServer(tmp_path) as server:
        answer = server.send(sample_frames("c"))
    assert (answer.status, answer.code) == (503, "unavailable")
    assert answer.headers["Retry-After"]
