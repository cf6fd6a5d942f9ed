"""Batches over HTTP: a valid body is stored exactly once, an invalid one changes nothing."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.hosted import FRAMES, HostedServer, HttpResponse, MovingClock
from tests.helpers.samples import sample_frames, sample_tables
from tests.helpers.services import Hosting
from tests.helpers.waiting import until

from daskscope.collector.delivery.outbox import FrameQueue, Sealed
from daskscope.collector.delivery.poster import BodyLimits, limits_of, poster
from daskscope.collector.delivery.sender import Sender
from daskscope.collector.delivery.spool import Spool
from daskscope.server.http.identity import Identity
from daskscope.server.processes.parse import roll_up_frames
from daskscope.server.routes.ingest import batches_of, split
from daskscope.storage.people.accounts import Account, get_account
from daskscope.testing import make_columns, make_frames
from daskscope.wire.encode import encode_body, seal

pytestmark = pytest.mark.each_database


@pytest.fixture(scope="module")
def server(hosted_once: Hosting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with hosted_once(tmp_path_factory.mktemp("ingest"), clock=MovingClock()) as server:
        yield server


def clusters(server: HostedServer, token: str = "") -> dict[str, int]:
    items = server.ask("GET", "/api/v1/clusters?limit=1000", token=token).json()["items"]
    return {item["id"]: item["n_tasks"] for item in items}


def reseal(frame: bytes, **header: Any) -> bytes:
    """Return the frame with a changed header and a matching checksum."""
    magic, (header_size, body_size, _) = frame[:4], struct.unpack_from("<III", frame, 4)
    fields = {**json.loads(frame[16 : 16 + header_size]), **header}
    text, body = json.dumps(fields).encode(), frame[16 + header_size :]
    sizes = struct.pack("<II", len(text), body_size)
    return magic + sizes + struct.pack("<I", zlib.crc32(body, zlib.crc32(text, zlib.crc32(sizes)))) + text + body


class TestValidBodies:
    def test_a_repeated_body_is_stored_once(self, server: HostedServer) -> None:
        frames = make_frames(sample_tables("once"), cluster="once")
        assert server.send(*frames).json() == {"taken": len(frames), "duplicates": 0}
        assert server.send(*frames).json() == {"taken": 0, "duplicates": len(frames)}
        assert clusters(server)["once"] == 3

    def test_a_failure_has_the_key_of_its_task(self, server: HostedServer) -> None:
        assert server.send(*make_frames(sample_tables("named"), cluster="named")).status == 200
        (failure,) = server.ask("GET", "/api/v1/exceptions?cluster_id=named").json()["items"]
        assert failure["key"] == "sample-inc-2"

    def test_batches_may_arrive_in_any_order_and_in_parts(self, server: HostedServer) -> None:
        frames = make_frames(sample_tables("shuffled"), cluster="shuffled")
        random.Random(3).shuffle(frames)
        for frame in frames:
            assert server.send(frame).json()["taken"] == 1
        assert server.send(*frames, *frames).json() == {"taken": 0, "duplicates": 2 * len(frames)}
        assert clusters(server)["shuffled"] == 3

    def test_pages_of_events_have_no_gaps_while_more_arrive(self, server: HostedServer) -> None:
        def send(epoch: int, *moments: int) -> None:
            rows = [{"time_us": moment, "topic": "t", "kind": str(moment), "detail": "{}"} for moment in moments]
            assert server.send(*make_frames({"events": rows}, cluster="eventful", epoch=epoch)).status == 200

        send(1, *range(1, 8))
        seen, cursor = list[str](), ""
        for page in range(3):
            answer = server.ask("GET", f"/api/v1/clusters/eventful/events?limit=3&cursor={cursor}").json()
            seen += [item["kind"] for item in answer["items"]]
            cursor = answer["next"] or ""
            send(2 + page, 100 + page)
        assert (seen, cursor) == (["7", "6", "5", "4", "3", "2", "1"], "")

    def test_a_chunked_body_is_accepted(self, server: HostedServer) -> None:
        body = sample_frames("chunked")
        parts = (body[i : i + 100] for i in range(0, len(body), 100))
        answer = server.ask(
            "POST", "/api/v1/ingest", parts, headers={"Content-Type": FRAMES, "Transfer-Encoding": "chunked"}
        )
        assert answer.status == 200
        assert clusters(server)["chunked"] == 3

    def test_several_clusters_may_share_a_body(self, server: HostedServer) -> None:
        assert server.send(sample_frames("left"), sample_frames("right")).status == 200
        assert {"left", "right"} <= set(clusters(server))

    def test_ingested_batches_can_be_downloaded_as_a_recording(self, server: HostedServer) -> None:
        assert server.send(sample_frames("back")).status == 200
        body = server.ask("GET", "/api/v1/clusters/back/recording").body
        again = server.ask("POST", "/api/v1/reports", body)
        assert again.status == 201
        assert again.json()["n_tasks"] == 3


class TestInvalidBodies:
    @pytest.fixture(autouse=True)
    def nothing_is_stored(self, server: HostedServer) -> Iterator[None]:
        before = clusters(server)
        yield
        assert clusters(server) == before

    def test_a_truncated_body_is_refused_entirely(self, server: HostedServer) -> None:
        body = sample_frames("cut-off")
        for length in (1, 15, 16, 40, len(body) // 2, len(body) - 1):
            assert server.send(body[:length]).code == "bad_request"

    def test_a_body_with_a_flipped_bit_is_refused_entirely(self, server: HostedServer) -> None:
        body, chance = sample_frames("flipped"), random.Random(7)
        for _ in range(60):
            damaged = bytearray(body)
            damaged[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
            answer = server.send(bytes(damaged))
            assert answer.status in (400, 422), answer
            assert answer.code in ("bad_request", "newer_format")

    @pytest.mark.parametrize("body", [b"", b"{}", b"DSK", b"\x00" * 100, b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 10_000])
    def test_a_body_without_a_valid_frame_is_refused(self, server: HostedServer, body: bytes) -> None:
        assert server.send(body).code == "bad_request"

    @pytest.mark.parametrize(
        "header",
        [
            {"cluster": ""}, {"cluster": "a\x00b"}, {"cluster": "a/b"}, {"cluster": "a\\b"}, {"cluster": ".."},
            {"cluster": "a\nb"}, {"cluster": "\u202e"}, {"cluster": "x" * 201}, {"cluster": 5}, {"cluster": "\ud800"},
            {"epoch": -1}, {"epoch": 1 << 70}, {"sequence": -1}, {"sequence": 1.5}, {"rows": 0}, {"rows": 1 << 60},
            {"raw": 0}, {"raw": 1}, {"raw": 1 << 40}, {"table": "users"}, {"table": "../etc"}, {"schema": -1}, {"kept": -5},
        ],
        ids=str,
    )  # fmt: skip
    def test_an_invalid_header_is_refused(self, server: HostedServer, header: dict[str, Any]) -> None:
        frame = make_frames({"events": [{"time_us": 1, "topic": "t"}]}, cluster="liar")[0]
        answer = server.send(reseal(frame, **header))
        assert (answer.status, answer.code) == (400, "bad_request")

    def test_a_newer_format_or_schema_has_its_own_error_code(self, server: HostedServer) -> None:
        frame = make_frames({"events": [{"time_us": 1, "topic": "t"}]})[0]
        for newer in (reseal(frame, schema=10**6), frame[:3] + bytes([frame[3] + 1]) + frame[4:]):
            answer = server.send(newer)
            assert (answer.status, answer.code) == (422, "newer_format")

    def test_a_body_that_is_too_large_is_refused_before_it_is_read(self, server: HostedServer) -> None:
        limit = server.settings.max_body
        tx = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        tx.putrequest("POST", "/api/v1/ingest")
        tx.putheader("Authorization", f"Bearer {server.secret}")
        tx.putheader("Content-Length", str(limit + 1))
        tx.endheaders()
        response = tx.getresponse()
        assert response.status == 413
        assert json.loads(response.read())["error"]["code"] == "too_large"
        tx.close()

    def test_a_chunked_body_that_grows_too_large_is_refused(self, server: HostedServer) -> None:
        parts = (b"x" * 65_536 for _ in range(1000))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            answer = server.ask("POST", "/api/v1/ingest", parts, headers={"Transfer-Encoding": "chunked"})
            assert answer.status == 413

    def test_a_text_shared_by_many_rows_is_counted_for_each_row(self, server: HostedServer) -> None:
        row = {"time_us": 1, "type": "E", "fingerprint": "f", "count": 1, "traceback": "t" * 8_000}
        bombs = [make_frames({"exceptions": [row] * 1_000}, cluster="bomb", epoch=n)[0] for n in range(1, 7)]
        answer = server.send(*bombs)
        assert (sum(map(len, bombs)) < 10_000, answer.status, answer.code) == (True, 413, "too_large")
        assert "too much text" in answer.text

    def test_a_body_of_too_many_frames_is_refused(self, server: HostedServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("daskscope.server.routes.ingest.MAX_FRAMES", 3)
        frames = make_frames(sample_tables("many"), cluster="many")
        answer = server.send(*frames)
        assert (answer.status, answer.code) == (413, "too_large")
        assert "Send it in parts" in answer.text

    def test_a_decompression_bomb_is_refused_by_its_header_or_its_contents(self, server: HostedServer) -> None:
        body = encode_body("events", make_columns("events", [{"topic": "x" * 1_000_000} for _ in range(50)]))
        bomb = seal(body, cluster="bomb", epoch=1, sequence=0, kept=50, dropped=0)
        assert len(bomb) < 200_000
        claimed = json.loads(bomb[16 : 16 + struct.unpack_from("<I", bomb, 4)[0]])["raw"]
        answer = server.send(*[reseal(bomb, sequence=i) for i in range(2 + 256 * 1024 * 1024 // claimed)])
        assert answer.code == "too_large"
        assert server.send(reseal(bomb, raw=1000)).code == "bad_request"


class TestLimits:
    def test_every_response_names_the_limits(self, server: HostedServer) -> None:
        limits = "bytes=2097152, frames=2000, rows=500000, characters=32000000"
        for body, status in ((sample_frames("c"), 200), (b"x", 400), (b"x" * (server.settings.max_body + 1), 413)):
            answer = server.send(body)
            assert (answer.status, answer.headers["Daskscope-Limits"]) == (status, limits)
        # Recorders stay below them by themselves.
        assert limits_of(limits) == BodyLimits()

    def test_a_response_says_whether_the_cluster_is_watched(self, server: HostedServer) -> None:
        assert server.send(sample_frames("c")).headers["Daskscope-Pace"] == "watched=0, followed=0, silence=30"
        # A list of clusters is not a look at one of them.
        server.ask("GET", "/api/v1/clusters")
        assert server.send(sample_frames("c")).headers["Daskscope-Pace"] == "watched=0, followed=0, silence=30"
        server.ask("GET", "/api/v1/clusters/c")
        assert server.send(sample_frames("c")).headers["Daskscope-Pace"] == "watched=1, followed=0, silence=30"
        assert server.send(sample_frames("d")).headers["Daskscope-Pace"] == "watched=0, followed=0, silence=30"
        server.ask("GET", "/api/v1/clusters/c/increments")
        assert server.send(sample_frames("c")).headers["Daskscope-Pace"] == "watched=1, followed=1, silence=30"

    def test_a_server_that_loses_clusters_early_asks_for_more_posts(self, hosted: Hosting, tmp_path: Path) -> None:
        with hosted(tmp_path / "early", lost_after=7) as server:
            assert server.send(sample_frames("c")).headers["Daskscope-Pace"] == "watched=0, followed=0, silence=3"

    def test_a_token_above_its_rate_limit_gets_a_retry_time(self, hosted: Hosting, tmp_path: Path) -> None:
        with hosted(tmp_path, login=True, rows_per_minute=50) as server:
            server.make_account("ours", mia="member")
            token, other = server.make_token("mia", "ours"), server.make_token("mia", "ours")
            answers = [server.send(sample_frames(f"c{i}"), token=token) for i in range(8)]
            refused = [answer for answer in answers if answer.status == 429]
            assert refused
            assert {answer.code for answer in refused} == {"too_many"}
            assert all(1 <= int(answer.headers["Retry-After"]) <= 60 for answer in refused)
            assert server.send(sample_frames("another"), token=other).status == 200
            assert len(clusters(server, token)) == 9 - len(refused)

    def test_a_slow_body_times_out(self, hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("daskscope.server.http.routing.read_limited.__defaults__", (0.2,))
        with hosted(tmp_path) as server:
            tx = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            tx.putrequest("POST", "/api/v1/ingest")
            tx.putheader("Authorization", f"Bearer {server.secret}")
            tx.putheader("Content-Length", "1000")
            tx.endheaders(b"x")
            response = tx.getresponse()
            assert response.status == 408
            assert json.loads(response.read())["error"]["code"] == "too_slow"
            tx.close()

    def test_slow_bodies_do_not_block_threads(self, server: HostedServer) -> None:
        slow = []
        for _ in range(100):
            tx = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            tx.putrequest("POST", "/api/v1/ingest")
            tx.putheader("Authorization", f"Bearer {server.secret}")
            tx.putheader("Content-Length", "1000")
            tx.endheaders(b"x")
            slow.append(tx)
        assert server.send(sample_frames("quick")).status == 200
        for tx in slow:
            tx.close()

    def test_batches_above_the_pending_limit_are_refused_at_once(
        self, server: HostedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("daskscope.server.ingest.writer.MAX_WAITING_NBYTES", 0)
        answer = server.send(sample_frames("overload"))
        assert (answer.status, answer.code) == (503, "unavailable")
        assert answer.headers["Retry-After"]

    def test_a_batch_is_stored_even_if_its_sender_disconnects(self, server: HostedServer) -> None:
        identity = Identity("local", account=local_account(server))
        frames = split(sample_frames("left-behind"))
        waiting = server.services.writer.submit(batches_of(frames, roll_up_frames(frames), identity))
        assert not waiting.cancel()
        assert waiting.result(10).fresh == 7
        assert server.send(sample_frames("after")).status == 200


def local_account(server: HostedServer) -> Account:
    with server.services.archive.read() as tx:
        return get_account(tx, server.services.local_account)


class TestClusterToken:
    @pytest.fixture
    def team(self, hosted: Hosting, tmp_path: Path) -> Iterator[HostedServer]:
        self.clock = MovingClock()
        with hosted(tmp_path, login=True, clock=self.clock) as server:
            server.make_account("ours", mia="member", olga="owner")
            yield server

    def token(self, server: HostedServer, cluster: str, user: str = "mia") -> str:
        own = server.make_token(user, "ours")
        answer = server.ask("POST", "/api/v1/ingest-tokens", {"cluster": cluster}, token=own)
        assert answer.status == 201
        return str(answer.json()["token"])

    def test_the_cluster_belongs_to_the_user_of_the_token(self, team: HostedServer) -> None:
        assert team.send(sample_frames("mine"), token=self.token(team, "mine")).status == 200
        items = team.ask("GET", "/api/v1/clusters", token=team.make_token("mia", "ours")).json()["items"]
        assert [(item["id"], item["user"]) for item in items] == [("mine", "mia")]

    def test_it_may_send_batches_of_a_lost_cluster_of_the_same_user(self, team: HostedServer) -> None:
        lost, later = make_frames(sample_tables("gone"), cluster="gone"), self.token(team, "later")
        assert team.send(*lost[:2], token=self.token(team, "gone")).status == 200
        assert team.send(*lost[2:], token=later).code == "forbidden"
        self.clock.move(seconds=61)
        assert team.send(*lost[2:], sample_frames("later"), token=later).status == 200

    def test_it_may_send_batches_of_a_registered_cluster_that_never_sent_any(self, team: HostedServer) -> None:
        self.token(team, "silent")
        assert team.send(sample_frames("silent"), token=self.token(team, "later")).status == 200

    def test_it_may_not_send_batches_of_another_user(self, team: HostedServer) -> None:
        assert team.send(sample_frames("gone"), token=self.token(team, "gone")).status == 200
        self.token(team, "silent")
        self.clock.move(seconds=61)
        other = self.token(team, "later", "olga")
        assert team.send(sample_frames("gone", epoch=2), token=other).code == "forbidden"
        assert team.send(sample_frames("silent"), token=other).code == "forbidden"

    @pytest.mark.parametrize("name", ["a/b", "..", "\x00", "\u202e"])
    def test_an_invalid_cluster_name_is_refused(self, team: HostedServer, name: str) -> None:
        own = team.make_token("mia", "ours")
        assert team.ask("POST", "/api/v1/ingest-tokens", {"cluster": name}, token=own).code == "bad_request"


class TestHostileTexts:
    def test_hostile_texts_do_not_break_lists(self, hosted: Hosting, tmp_path: Path) -> None:
        nested, half = "[" * 100_000, json.dumps({"\ud800": ["\udfff"]})
        with hosted(tmp_path) as server:
            for number, text in enumerate(
                (nested, half, "null", "NaN", "[1e999]", '{"core_hour": "x"}', "\x00", "{", "5")
            ):
                tables = sample_tables(f"hostile-{number}")
                for column in ("versions", "platform", "config", "prices", "unrunnable_needs", "dropped"):
                    tables["clusters"][0][column] = text
                tables["events"][0]["detail"] = text
                assert server.send(*make_frames(tables, cluster=f"hostile-{number}")).status == 200
            assert len(server.ask("GET", "/api/v1/clusters").json()["items"]) == 9
            for number in range(9):
                one = f"/api/v1/clusters/hostile-{number}"
                for part in (
                    "",
                    "/explain",
                    "/events",
                    "/history",
                    "/fine-metrics",
                    "/tasks",
                    "/document/report.json",
                    "/recording",
                ):
                    answer = server.ask("GET", one + part)
                    assert answer.status == 200, (number, part, answer.text[:300])
            for path in ("/api/v1/usage", "/api/v1/exceptions", "/api/v1/errors", "/api/v1/computations", "/metrics"):
                assert server.ask("GET", path).status == 200


class TestSender:
    """The recorder's sender against the real server."""

    def sealed(self, first: int, count: int) -> list[Sealed]:
        made = []
        for sequence in range(first, first + count):
            rows = [{"time_us": 1_700_000_000_000_000 + sequence, "topic": f"t{sequence}"}]
            body = encode_body("events", make_columns("events", rows))
            data = seal(body, cluster="sent", epoch=1, sequence=sequence, kept=sequence + 1, dropped=0)
            made.append(Sealed(sequence, "events", 1, data))
        return made

    def test_it_spools_while_the_server_is_down_and_catches_up(self, hosted: Hosting, tmp_path: Path) -> None:
        queue, spool = FrameQueue(10**7), Spool(tmp_path / "spool", "sent-1", 10**8)
        with hosted(tmp_path / "data") as server:
            port = server.port
            sender = Sender(poster(server.url, server.secret, 5.0), queue, spool, first_delay=0.01)
            sender.start()
            for sealed in self.sealed(0, 20):
                queue.put(sealed)
            until(lambda: sender.sent == 20)
        for sealed in self.sealed(20, 20):
            queue.put(sealed)
        until(lambda: sender.is_server_down)
        with hosted(tmp_path / "data", port=port) as server:
            until(lambda: sender.sent == 40)
            sender.stop(5.0)
            events = server.ask("GET", "/api/v1/clusters/sent/events?limit=100").json()
        assert sorted(item["topic"] for item in events["items"]) == sorted(f"t{i}" for i in range(40))
        assert spool.segments() == []

    def test_a_revoked_token_stops_it_with_a_reason(self, hosted: Hosting, tmp_path: Path) -> None:
        with hosted(tmp_path / "data", login=True) as server:
            queue, spool = FrameQueue(10**7), Spool(tmp_path / "spool", "sent-1", 10**8)
            sender = Sender(poster(server.url, "dscope_revoked", 5.0), queue, spool)
            queue.put(self.sealed(0, 1)[0])
            sender.start()
            until(lambda: sender.refusal)
            assert "401" in sender.refusal or "token" in sender.refusal
            sender.stop(1.0)


def test_unknown_routes_and_methods_have_clear_errors(server: HostedServer) -> None:
    answer: HttpResponse = server.ask("GET", "/api/v1/nothing")
    assert (answer.status, answer.code) == (404, "not_found")
    assert server.ask("PUT", "/api/v1/ingest").code == "method_not_allowed"
    assert server.ask("GET", "/api/v1/clusters/").status == 404
