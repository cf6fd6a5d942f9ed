"""What a server says when what it stands on is away: what is wrong, and nothing about where it is."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.services import ACCESS

from daskscope.server.jobs import Jobs
from daskscope.storage import database as database_module
from daskscope.storage.blobs import S3Store
from daskscope.storage.database import Database
from daskscope.testing.hosted import Answer, HostedServer
from daskscope.testing.samples import sample_frames, sample_recording

#: Nobody listens there.
SECRET_HOST, SECRET_USER, SECRET_BUCKET = "127.0.0.1", "secret-user", "secret-bucket"
AWAY = f"postgresql://{SECRET_USER}@{SECRET_HOST}:1/secret-name"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostedServer]:
    monkeypatch.setattr(database_module, "CONNECT_S", 2)
    for name, value in ACCESS.items():
        monkeypatch.setenv(name, value)
    with HostedServer(tmp_path / "data") as server:
        kept = server.services.database, server.services.store
        yield server
        server.services.database, server.services.store = kept
        server.services.writer.database = kept[0]


def lose_database(server: HostedServer) -> None:
    server.services.database = server.services.writer.database = Database(AWAY)


def lose_store(server: HostedServer) -> None:
    server.services.store = S3Store(f"s3://{SECRET_BUCKET}/x", f"http://{SECRET_HOST}:1", retry_s=0.1)


def tells_nothing(answer: Answer) -> bool:
    return not any(part in answer.text for part in (SECRET_HOST, SECRET_USER, SECRET_BUCKET, "secret-name", "refused"))


def logged(caplog: pytest.LogCaptureFixture, part: str) -> int:
    return sum(part in record.getMessage() for record in caplog.records)


def test_a_database_that_is_away_is_said_to_be_and_its_address_only_logged_once(
    server: HostedServer, caplog: pytest.LogCaptureFixture
) -> None:
    kept = server.services.database
    lose_database(server)
    answers = [server.ask("GET", "/readyz") for _ in range(3)]
    for answer in answers:
        assert answer.status == 503
        assert answer.json()["checks"]["database"] == "the database cannot be reached"
        assert tells_nothing(answer)
    assert logged(caplog, SECRET_HOST) == 1
    server.services.database = server.services.writer.database = kept
    with caplog.at_level(logging.INFO, "daskscope.server"):
        assert server.ask("GET", "/readyz").status == 200
    assert logged(caplog, "the database is well again") == 1


def test_nobody_who_asks_something_else_learns_its_address_either(server: HostedServer) -> None:
    lose_database(server)
    for answer in (server.ask("GET", "/api/v1/clusters"), server.send(sample_frames("c"))):
        assert (answer.status, answer.code) == (503, "unavailable")
        assert tells_nothing(answer)


def test_a_writer_that_cannot_write_says_so_in_our_words(server: HostedServer) -> None:
    assert server.send(sample_frames("c")).status == 200
    # The writer's own connections only: whoever asks is still known.
    server.services.writer.database = Database(AWAY)
    answer = server.send(sample_frames("d"))
    assert (answer.status, answer.code) == (503, "unavailable")
    assert "the database cannot be reached" in answer.text
    ready = server.ask("GET", "/readyz")
    assert ready.json()["checks"] == {"database": "ok", "store": "ok", "writer": "the database cannot be reached"}
    assert tells_nothing(answer)
    assert tells_nothing(ready)


def test_an_object_store_that_is_away_is_said_to_be_and_nothing_else(
    server: HostedServer, caplog: pytest.LogCaptureFixture
) -> None:
    report = server.ask("POST", "/api/v1/reports", body=sample_recording()).json()
    other = server.ask("POST", "/api/v1/reports", body=b"<!doctype html><p>x").json()
    assert (report["id"], other["id"]) == (1, 2)
    lose_store(server)
    ready = server.ask("GET", "/readyz")
    assert ready.status == 503
    assert ready.json()["checks"]["store"] == "the object store cannot be used"
    shown = server.ask("GET", "/api/v1/reports/2/html")
    assert (shown.status, shown.code) == (503, "unavailable")
    assert tells_nothing(ready)
    assert tells_nothing(shown)
    assert logged(caplog, SECRET_BUCKET)


def test_a_store_on_a_disk_that_fails_does_not_name_its_directory(server: HostedServer, tmp_path: Path) -> None:
    (tmp_path / "data" / "blobs").rename(tmp_path / "aside")
    (tmp_path / "data" / "blobs").write_text("in the way")
    ready = server.ask("GET", "/readyz")
    assert ready.json()["checks"]["store"] == "the disk cannot be used: Not a directory"


def test_a_job_that_fails_shows_in_our_words(server: HostedServer, caplog: pytest.LogCaptureFixture) -> None:
    jobs = Jobs(server.services)

    def own_bug() -> None:
        raise ValueError(f"a bug at {SECRET_HOST}")

    for _ in range(2):
        jobs._do("sweep", own_bug)
    lose_store(server)
    jobs._do("retention", server.services.store.list().__next__)
    ready = server.ask("GET", "/readyz")
    checks = ready.json()["checks"]
    assert checks["sweep"] == "it failed; the server's log says why"
    assert checks["retention"] == "the object store cannot be used"
    assert tells_nothing(ready)
    assert logged(caplog, "the sweep job fails: a bug at") == 1
