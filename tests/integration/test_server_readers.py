"""Slow readers of large responses do not fill the server's memory."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from tests.helpers.hosted import HostedServer
from tests.helpers.samples import sample_frames
from tests.helpers.server_process import ServerProcess
from tests.helpers.waiting import until

from daskscope.report.document import build
from daskscope.server import build_document
from daskscope.server.http import protocol

MIB = 1024 * 1024
READERS, SIZE = 60, 8 * MIB


@pytest.fixture
def process(tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path / "data")
    server.start()
    yield server
    server.stop()


def begin(port: int, path: str, secret: str) -> socket.socket:
    """Send a request and read the first bytes of the response, with a small buffer for the rest."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    reader.settimeout(60)
    reader.connect(("127.0.0.1", port))
    headers = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {secret}\r\nSec-Fetch-Dest: iframe\r\nConnection: close"
    head = f"GET {path} HTTP/1.1\r\n{headers}\r\n\r\n"
    reader.sendall(head.encode())
    assert reader.recv(12).startswith(b"HTTP/1.1 200")
    return reader


def test_slow_readers_share_one_copy(process: ServerProcess) -> None:
    page = b"<!doctype html>" + b"x" * SIZE
    connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=60)
    connection.request("POST", "/api/v1/reports", page, {"Authorization": f"Bearer {process.secret}"})
    assert connection.getresponse().status == 201
    assert process.process is not None
    server = psutil.Process(process.process.pid)
    before = server.memory_info().rss

    readers = [begin(process.port, "/api/v1/reports/1/html", process.secret) for _ in range(READERS)]
    grown = server.memory_info().rss - before
    rest = sum(len(part) for part in iter(lambda: readers[0].recv(MIB), b""))
    for reader in readers:
        reader.close()

    # One copy per reader would be 480 MiB.
    assert grown < 150 * MIB
    # A reader that goes on gets everything.
    assert rest >= len(page)


def test_a_reader_that_stops_is_disconnected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "READ_S", 0.2)
    with HostedServer(tmp_path) as server:
        page = b"<!doctype html>" + b"x" * SIZE
        assert server.ask("POST", "/api/v1/reports", body=page).status == 201
        reader = begin(server.port, "/api/v1/reports/1/html", server.secret)
        until(lambda: not server._server.server_state.tasks, "the server gives up on the reader")
        received = sum(len(part) for part in iter(lambda: reader.recv(MIB), b""))
        reader.close()
        assert received < SIZE


def test_a_document_is_built_once_for_many_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []

    def counted(*arguments: object, **named: object) -> object:
        built.append(1)
        return build(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(build_document, "build", counted)
    with HostedServer(tmp_path) as server:
        assert server.send(sample_frames("c")).status == 200
        with ThreadPoolExecutor(10) as threads:
            answers = list(
                threads.map(lambda _: server.ask("GET", "/api/v1/clusters/c/document/report.json"), range(10))
            )
    assert [answer.status for answer in answers] == [200] * 10
    assert len({answer.headers["ETag"] for answer in answers}) == 1
    assert built == [1]
