"""Errors of a server without its database or store: they name the problem, but no address."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.helpers.hosted import HostedServer, HttpResponse
from tests.helpers.samples import sample_frames, sample_recording
from tests.helpers.services import ACCESS

from daskscope.server.jobs import Jobs
from daskscope.storage.base import database as database_module
from daskscope.storage.base.blobs import S3Store
from daskscope.storage.base.database import Database

#: Nothing listens there.
SECRET_HOST, SECRET_USER, SECRET_BUCKET = "127.0.0.1", "secret-user", "secret-bucket"
AWAY = f"postgresql://{SECRET_USER}@{SECRET_HOST}:1/secret-name"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostedServer]:
    monkeypatch.setattr(database_module, "CONNECT_S", 2)
    for name, value in ACCESS.items():
        monkeypatch.setenv(name, value)
    with HostedServer(tmp_path / "data") as server:
        kept = server.services.archive.database, server.services.archive.store
        yield server
        server.services.archive.database, server.services.archive.store = kept


def lose_database(server: HostedServer) -> None:
    server.services.archive.database = Database(AWAY)


def lose_store(server: HostedServer) -> None:
    server.services.archive.store = S3Store(f"s3://{SECRET_BUCKET}/x", f"http://{SECRET_HOST}:1", retry_s=0.1)


def hides_addresses(answer: HttpResponse) -> bool:
    return not any(part in answer.text for part in (SECRET_HOST, SECRET_USER, SECRET_BUCKET, "secret-name", "refused"))


def logged(caplog: pytest.LogCaptureFixture, part: str) -> int:
    return sum(part in record.getMessage() for record in caplog.records)


def test_an_unreachable_database_is_reported_and_its_address_is_logged_once(
    server: HostedServer, caplog: pytest.LogCaptureFixture
) -> None:
    kept = server.services.archive.database
    lose_database(server)
    answers = [server.ask("GET", "/readyz") for _ in range(3)]
    for answer in answers:
        assert answer.status == 503
        assert answer.json()["checks"]["database"] == "the database cannot be reached"
        assert hides_addresses(answer)
    assert logged(caplog, SECRET_HOST) == 1
    server.services.archive.database = server.services.archive.database = kept
    with caplog.at_level(logging.INFO, "daskscope.server"):
        assert server.ask("GET", "/readyz").status == 200
    assert logged(caplog, "the database works again") == 1


def test_no_response_reveals_the_database_address(server: HostedServer) -> None:
    lose_database(server)
    for answer in (server.ask("GET", "/api/v1/clusters"), server.send(sample_frames("c"))):
        assert (answer.status, answer.code) == (503, "unavailable")
        assert hides_addresses(answer)


def test_a_failing_writer_reports_a_public_message(server: HostedServer) -> None:
    assert server.send(sample_frames("c")).status == 200
    # Only the writer's own connections: the server can still authenticate callers.
    server.services.writer.archive = replace(server.services.archive, database=Database(AWAY))
    answer = server.send(sample_frames("d"))
    assert (answer.status, answer.code) == (503, "unavailable")
    assert "the database cannot be reached" in answer.text
    ready = server.ask("GET", "/readyz")
    assert ready.json()["checks"] == {"database": "ok", "store": "ok", "writer": "the database cannot be reached"}
    assert hides_addresses(answer)
    assert hides_addresses(ready)


def test_an_unreachable_object_store_is_reported_without_its_address(
    server: HostedServer, caplog: pytest.LogCaptureFixture
) -> None:
    report = server.ask("POST", "/api/v1/reports", body=sample_recording()).json()
    other = server.ask("POST", "/api/v1/reports", body=b"<!doctype html><p>x").json()
    assert (report["id"], other["id"]) == (1, 2)
    lose_store(server)
    # Batches are stored without it.
    ready = server.ask("GET", "/readyz")
    assert (ready.status, server.send(sample_frames("c")).status) == (200, 200)
    assert ready.json()["checks"]["store"] == "the object store cannot be used"
    assert ready.json()["roles"] == {"ingest": "ok", "read": "the object store cannot be used"}
    assert server.ask("GET", "/readyz/read").status == 503
    shown = server.ask("GET", "/api/v1/reports/2/html")
    assert (shown.status, shown.code) == (503, "unavailable")
    assert hides_addresses(ready)
    assert hides_addresses(shown)
    assert logged(caplog, SECRET_BUCKET)


def test_a_failing_local_store_does_not_reveal_its_directory(server: HostedServer, tmp_path: Path) -> None:
    (tmp_path / "data" / "blobs").rename(tmp_path / "aside")
    (tmp_path / "data" / "blobs").write_text("in the way")
    ready = server.ask("GET", "/readyz")
    assert ready.json()["checks"]["store"] == "the disk cannot be used: Not a directory"


def test_a_failing_job_reports_a_public_message(server: HostedServer, caplog: pytest.LogCaptureFixture) -> None:
    jobs = Jobs(server.services)

    def own_bug() -> None:
        raise ValueError(f"a bug at {SECRET_HOST}")

    for _ in range(2):
        jobs._do("sweep", own_bug)
    lose_store(server)
    jobs._do("retention", server.services.archive.store.list().__next__)
    ready = server.ask("GET", "/readyz")
    checks = ready.json()["checks"]
    assert checks["sweep"] == "it failed; see the server's log"
    assert checks["retention"] == "the object store cannot be used"
    assert hides_addresses(ready)
    assert logged(caplog, "the sweep job fails: a bug at") == 1
