"""The limit on the total size of an account's reports, and the error above it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.hosted import HostedServer, HttpResponse, MovingClock
from tests.helpers.samples import sample_frames, sample_recording
from tests.helpers.waiting import until

PAGE = b"<!doctype html>" + b"x" * 985
LIMIT = 2_500


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def server(tmp_path: Path, clock: MovingClock) -> Iterator[HostedServer]:
    with HostedServer(tmp_path / "data", clock=clock, max_reports=LIMIT) as server:
        yield server


def blobs(server: HostedServer) -> int:
    return len(list(server.services.archive.store.list()))


def test_an_upload_above_the_limit_is_refused_with_a_suggestion(server: HostedServer) -> None:
    for _ in range(2):
        assert server.ask("POST", "/api/v1/reports", body=PAGE).status == 201
    # With and without a Content-Length.
    for body in (PAGE, iter([PAGE[:500], PAGE[500:]])):
        answer = server.ask("POST", "/api/v1/reports", body=body)
        assert (answer.status, answer.code) == (413, "too_large")
        message = answer.json()["error"]["message"]
        assert "1.95 KiB of 2.44 KiB" in message
        assert "daskscope reports delete N" in message
        assert "--max-reports" in message
    assert blobs(server) == 2

    assert server.ask("DELETE", "/api/v1/reports/1").status == 200
    assert server.ask("POST", "/api/v1/reports", body=PAGE).status == 201


def test_concurrent_uploads_share_the_limit(server: HostedServer, tmp_path: Path) -> None:
    """They are on disk until they are complete, and need not declare their size."""
    go_on, answers = threading.Event(), list[HttpResponse]()

    def slow() -> Iterator[bytes]:
        yield PAGE
        assert go_on.wait(60)
        yield b"."

    def upload() -> None:
        answers.append(server.ask("POST", "/api/v1/reports", body=slow()))

    threads = [threading.Thread(target=upload) for _ in range(2)]
    for thread in threads:
        thread.start()
    arriving = server.services.arriving
    until(lambda: arriving.nbytes[server.services.local_account] == 2 * len(PAGE), "most of both uploads")

    refused = server.ask("POST", "/api/v1/reports", body=iter([PAGE]))
    assert (refused.status, refused.code) == (413, "too_large")
    assert "--max-reports" in refused.text

    go_on.set()
    for thread in threads:
        thread.join(60)
    assert [answer.status for answer in answers] == [201, 201]
    assert arriving.nbytes[server.services.local_account] == 0
    assert list((tmp_path / "data").glob("upload-*")) == []


def test_an_expired_report_frees_space(server: HostedServer, clock: MovingClock) -> None:
    assert server.ask("POST", "/api/v1/reports?days_to_expire=1", body=PAGE + PAGE).status == 201
    assert server.ask("POST", "/api/v1/reports", body=PAGE).status == 413
    clock.move(days=1.1)
    assert server.ask("POST", "/api/v1/reports", body=PAGE).status == 201


def test_a_shared_computation_counts_towards_the_limit(server: HostedServer) -> None:
    assert server.send(sample_frames("c", "sample")).status == 200
    before = blobs(server)
    answer = server.ask("POST", "/api/v1/clusters/c/computations/sample-comp/share")
    assert (answer.status, answer.code) == (413, "too_large")
    # The stored document of the computation stays, the copy for the report does not.
    assert blobs(server) == before + 1
    assert server.ask("GET", "/api/v1/reports").json()["items"] == []


def test_without_a_limit_any_upload_is_accepted(tmp_path: Path) -> None:
    with HostedServer(tmp_path, max_reports=0) as server:
        assert server.ask("POST", "/api/v1/reports", body=sample_recording()).status == 201
