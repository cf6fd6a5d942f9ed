"""Requests that are too large, too slow or too many are refused, and the server stays available."""

from __future__ import annotations

import base64
import json
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.hosted import HostedServer
from tests.helpers.samples import sample_frames, sample_recording, sample_tables
from tests.helpers.waiting import until

from daskscope.analysis.running.rollup import RollUp
from daskscope.collector.delivery import pace, poster
from daskscope.server.http import protocol
from daskscope.server.ingest import parsing
from daskscope.server.ingest.limits import InFlight, NewNames
from daskscope.server.pools import HEAVY, READ
from daskscope.server.processes.parse import roll_up_frames
from daskscope.server.routes import ingest
from daskscope.server.routes.ingest import MAX_CLUSTERS
from daskscope.server.run import make_server
from daskscope.server.settings import Settings
from daskscope.storage.base import postgresql
from daskscope.storage.base.database import LOCK_S
from daskscope.testing import make_frames
from daskscope.wire.decode import Frame


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("requests")) as server:
        yield server


def raw(server: HostedServer, request: bytes, *more: bytes) -> bytes:
    """Send bytes and return everything until the server closes the connection."""
    received = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection, suppress(ConnectionError):
        for part in (request, *more):
            connection.sendall(part)
        while part := connection.recv(65_536):
            received += part
    return received


class TestHeaders:
    def test_large_headers_are_refused(self, server: HostedServer) -> None:
        small = {"X-Padding": "x" * (protocol.MAX_HEADERS - 2_000)}
        assert server.ask("GET", "/healthz", headers=small).status == 200
        head = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-Padding: "
        # At once, and in parts that never end.
        answer = raw(server, head + b"x" * 70_000 + b"\r\n\r\n")
        assert answer.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400")), answer[:200]
        # The server closes the connection while parts are under way, and the system may drop its response with them.
        assert raw(server, head, *(b"x" * 10_000 for _ in range(8)))[:12] in (b"HTTP/1.1 400", b"")

    def test_a_request_with_two_lengths_is_refused_and_its_rest_is_no_request(self, server: HostedServer) -> None:
        head = b"POST /api/v1/ingest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = raw(server, head + b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1") == 1

    def test_a_large_address_is_refused(self, server: HostedServer) -> None:
        answer = raw(
            server, b"GET /healthz?" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        )
        assert answer.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400")), answer[:200]

    def test_headers_that_do_not_arrive_in_time_close_the_connection(
        self, server: HostedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(protocol, "HEADERS_S", 0.3)
        slow = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
        assert raw(server, slow).startswith(b"HTTP/1.1 408")
        # Not a byte.
        assert raw(server, b"").startswith(b"HTTP/1.1 408")
        # The second request of a connection.
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
            connection.sendall(slow)
            rest = b"".join(iter(lambda: connection.recv(65_536), b""))
            assert b"HTTP/1.1 408" in rest

    def test_a_request_that_takes_longer_than_its_headers_may_is_answered(
        self, server: HostedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(protocol, "HEADERS_S", 0.3)
        body = sample_frames("patient")

        def slow_body() -> Iterator[bytes]:
            yield body[:100]
            # Longer than the headers may take.
            assert not threading.Event().wait(0.6)
            yield body[100:]

        assert server.ask("POST", "/api/v1/ingest", body=slow_body()).status == 200


def test_the_connection_of_a_recorder_outlasts_the_time_between_two_posts(server: HostedServer) -> None:
    # A second for a slow post.
    assert make_server(server.services).config.timeout_keep_alive > pace.WORKING_S + 1


def test_a_public_route_takes_small_bodies_only(tmp_path: Path) -> None:
    with HostedServer(tmp_path, login=True) as server:
        body = {"user": "nobody", "password": "x" * 5_000}
        for path in ("/api/v1/session", "/api/v1/setup"):
            answer = server.ask("POST", path, body={**body, "secret": "s"})
            assert (answer.status, answer.code) == (413, "too_large")


@pytest.mark.parametrize("depth", [100, 3_000])
def test_a_nested_cursor_is_invalid(server: HostedServer, depth: int) -> None:
    cursor = base64.urlsafe_b64encode(b"[" * (depth // 2) + b"]" * (depth // 2)).decode().rstrip("=")[:4_000]
    answer = server.ask("GET", f"/api/v1/clusters?cursor={cursor}")
    assert (answer.status, answer.code) == (400, "bad_request")


class TestNeighbours:
    def test_a_search_for_errors_takes_one_of_the_few_threads_for_heavy_requests(
        self, server: HostedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pools, used = server.services.pools, list[str]()
        run = pools.run

        def watched(pool: str, *args: Any) -> Any:
            used.append(pool)
            return run(pool, *args)

        monkeypatch.setattr(pools, "run", watched)
        assert server.ask("GET", "/api/v1/errors?search=x").status == 200
        assert server.ask("GET", "/api/v1/preferences").status == 200
        assert used == [HEAVY, READ]

    def test_a_body_names_few_clusters(self, server: HostedServer) -> None:
        few = b"".join(sample_frames(f"few-{number}") for number in range(MAX_CLUSTERS))
        assert server.send(few).status == 200
        many = b"".join(sample_frames(f"many-{number}") for number in range(MAX_CLUSTERS + 1))
        answer = server.send(many)
        assert (answer.status, answer.code) == (413, "too_large")
        assert "at most 8" in answer.text
        listed = server.ask("GET", "/api/v1/clusters?limit=1000").json()["items"]
        assert not [row for row in listed if row["id"].startswith("many-")]

    def test_new_names_are_limited_per_account_and_minute(self, tmp_path: Path) -> None:
        with HostedServer(tmp_path, login=True) as server:
            server.services.new_names = NewNames(
                {"clusters": 3, "workers": 5, "computations": 7, "error groups": 11}, lambda: 0.0
            )
            for account in ("ours", "theirs"):
                server.make_account(account, olga="owner")
            ours, theirs = (server.make_token("olga", account) for account in ("ours", "theirs"))
            for number in range(3):
                assert server.send(sample_frames(f"c{number}"), token=ours).status == 200
            refused = server.send(sample_frames("c3"), token=ours)
            assert (refused.status, refused.code) == (429, "too_many")
            assert "3 new clusters per minute" in refused.text
            assert int(refused.headers["Retry-After"]) >= 1
            # A known cluster and another account are not affected.
            more = make_frames({"tasks": sample_tables("c1")["tasks"]}, cluster="c1", epoch=7)
            assert server.send(b"".join(more), token=ours).status == 200
            assert server.send(sample_frames("c3"), token=theirs).status == 200

            named = {"workers": ("server_id", 5), "computations": ("computation", 7), "exceptions": ("fingerprint", 11)}
            for epoch, (table, (column, limit)) in enumerate(named.items(), start=10):
                kind = "error groups" if table == "exceptions" else table
                answers = [
                    server.send(
                        b"".join(
                            make_frames({table: [{column: f"n{number}"}]}, cluster="c3", epoch=epoch + 10 * number)
                        ),
                        token=theirs,
                    )
                    for number in range(limit + 1)
                ]
                assert answers[-1].status == 429, kind
                assert f"{limit} new {kind} per minute" in answers[-1].text
                # The sample had some, too.
                assert [answer.status for answer in answers].count(200) in (limit - 1, limit), kind


def test_padding_does_not_buy_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are limited by the bytes of valid frames: zeros after them do not count."""
    monkeypatch.setattr("daskscope.server.routes.reports.SPARE_ROWS", 10)
    constants = [{"worker": "w", "time_us": 1}] * 20_000
    recording = sample_recording() + b"".join(make_frames({"samples": constants}, cluster="sample", epoch=5))
    with HostedServer(tmp_path) as server:
        for padding in (b"", bytes(100_000)):
            answer = server.ask("POST", "/api/v1/reports", body=recording + padding)
            assert (answer.status, answer.code) == (400, "bad_request")
            assert "too large when unpacked" in json.loads(answer.body)["error"]["message"]
        until(lambda: not list(tmp_path.glob("upload-*")), "the upload's directory is removed")


def test_a_full_account_is_refused_and_others_are_not(tmp_path: Path) -> None:
    with HostedServer(tmp_path, login=True, max_storage=1_500) as server:
        for account in ("ours", "theirs"):
            server.make_account(account, olga="owner")
        ours, theirs = (server.make_token("olga", account) for account in ("ours", "theirs"))
        quota = server.services.storage_quota
        now = [0.0]
        quota.clock = lambda: now[0]
        assert server.send(sample_frames("first"), token=ours).status == 200
        # The size is measured once a minute.
        now[0] += 61
        refused = server.send(sample_frames("second"), token=ours)
        assert (refused.status, refused.code) == (507, "storage_full")
        assert "The account ours uses" in refused.text
        assert "--max-storage" in refused.text
        assert refused.headers["Retry-After"]
        assert server.send(sample_frames("second"), token=theirs).status == 200

        assert server.ask("DELETE", "/api/v1/clusters/first", token=ours).status == 200
        now[0] += 61
        assert server.send(sample_frames("second"), token=ours).status == 200


class TestBacklog:
    def test_duplicates_are_not_decoded_while_requests_wait(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        decoded: list[int] = []

        def counted(frames: list[Frame]) -> list[RollUp]:
            decoded.append(len(frames))
            return roll_up_frames(frames)

        monkeypatch.setattr(parsing, "roll_up_frames", counted)
        monkeypatch.setattr(ingest, "BUSY", 0)
        with HostedServer(tmp_path) as server:
            first = server.send(sample_frames("c")).json()
            again = server.send(sample_frames("c")).json()
            more = b"".join(make_frames({"tasks": sample_tables("c")["tasks"]}, cluster="c", epoch=7))
            mixed = server.send(sample_frames("c") + more).json()
            tasks = server.ask("GET", "/api/v1/clusters/c").json()["n_tasks"]
        assert (first["taken"], first["duplicates"]) == (7, 0)
        assert (again["taken"], again["duplicates"]) == (0, 7)
        assert (mixed["taken"], mixed["duplicates"]) == (1, 7)
        # One frame of a body of duplicates is enough to see that the cluster lives.
        assert decoded == [7, 1, 1]
        assert tasks == 6

    def test_duplicates_of_a_large_body_are_never_decoded(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        decoded: list[int] = []

        def counted(frames: list[Frame]) -> list[RollUp]:
            decoded.append(len(frames))
            return roll_up_frames(frames)

        monkeypatch.setattr(parsing, "roll_up_frames", counted)
        rows = [
            {**task, "key": f"{random.Random(n).random()}"}
            for n in range(10_000)
            for task in sample_tables("c")["tasks"][:1]
        ]
        body = sample_frames("c") + b"".join(make_frames({"tasks": rows}, cluster="c", epoch=7))
        assert len(body) > ingest.CHECK_NBYTES
        with HostedServer(tmp_path) as server:
            answers = [server.send(body).json() for _ in range(2)]
            # A small body costs less to decode than to look up.
            server.send(sample_frames("c"))
        assert [(answer["taken"], answer["duplicates"]) for answer in answers] == [(8, 0), (0, 8)]
        assert decoded == [8, 1, 7]

    def test_a_recorder_waits_longer_than_the_server(self) -> None:
        assert Settings().database_timeout + postgresql.SPARE_S < ingest.ANSWER_S < poster.TIMEOUT
        assert LOCK_S < ingest.ANSWER_S

    def test_a_commit_that_takes_too_long_is_answered(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ingest, "ANSWER_S", 0.2)
        released = threading.Event()
        with HostedServer(tmp_path) as server:
            write = server.services.writer._write

            def slow(group: Any) -> None:
                released.wait(30)
                write(group)

            monkeypatch.setattr(server.services.writer, "_write", slow)
            answer = server.send(sample_frames("c"))
            assert (answer.status, answer.code) == (503, "unavailable")
            assert 5 <= int(answer.headers["Retry-After"]) <= 15
            released.set()
            # It was stored all the same, and the recorder's next attempt is a duplicate.
            until(lambda: server.ask("GET", "/api/v1/clusters/c").status == 200, "the batch")
            monkeypatch.setattr(ingest, "ANSWER_S", 30)
            assert server.send(sample_frames("c")).json()["taken"] == 0

    def test_more_bytes_than_fit_are_refused_before_they_are_read(self, tmp_path: Path) -> None:
        with HostedServer(tmp_path) as server:
            server.services.in_flight = InFlight(1_000)
            with server.services.in_flight.hold(900):
                answers = [server.send(sample_frames("c")) for _ in range(5)]
            assert {answer.status for answer in answers} == {503}
            assert all(2 <= int(answer.headers["Retry-After"]) <= 15 for answer in answers)
            # One alone always has room.
            assert server.send(sample_frames("c")).status == 200
