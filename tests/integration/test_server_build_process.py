"""Large documents are built in a process of their own: the server survives one that needs too much memory."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from tests.helpers.hosted import FRAMES, HostedServer
from tests.helpers.samples import sample_frames, sample_recording
from tests.helpers.server_process import ServerProcess
from tests.helpers.services import ACCESS, BUCKET, Hosting, Postgres

from daskscope.server import documents
from daskscope.server.jobs import Jobs
from daskscope.server.processes.build import BUILD, BuildRequest
from daskscope.server.processes.child import ChildProcesses, MemoryBudget
from daskscope.server.processes.job import Job, Runner
from daskscope.server.settings import Storage
from daskscope.storage import schema

DOCUMENT = "/api/v1/clusters/c/document"
MIB = 1024 * 1024


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build every document in a process of its own."""
    monkeypatch.setattr(documents, "MAX_TASKS_HERE", -1)


def tag_of(server: HostedServer) -> str:
    answer = server.ask("GET", f"{DOCUMENT}/report.json")
    assert answer.status == 200, answer.text
    return str(answer.headers["ETag"])


@pytest.mark.usefixtures("apart")
def test_a_document_built_apart_is_the_same(hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hosted(tmp_path) as server:
        assert server.send(sample_frames("c", ended=True)).status == 200
        there = server.ask("GET", f"{DOCUMENT}/report.json")
        column = there.json()["stream"]["columns"]["gap"]["block"]
        block = server.ask("GET", f"{DOCUMENT}/blocks/{column}").body
        with server.services.archive.write() as tx:
            tx.execute(sa.delete(schema.documents))
        monkeypatch.setattr(documents, "MAX_TASKS_HERE", 100)
        here = server.ask("GET", f"{DOCUMENT}/report.json")
        assert there.headers["ETag"] != here.headers["ETag"]
        assert {**there.json(), "made_us": 0} == {**here.json(), "made_us": 0}
        assert server.ask("GET", f"{DOCUMENT}/blocks/{column}").body == block
        assert server.ask("GET", "/api/v1/clusters/c/computations/none/document/report.json").status == 404


@pytest.mark.usefixtures("apart")
def test_a_document_is_built_apart_from_postgresql_and_s3(
    tmp_path: Path, postgres: Postgres, strong_s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ACCESS.items():
        monkeypatch.setenv(name, value)
    settings: dict[str, Any] = {"database": postgres.prepared(), "store": f"s3://{BUCKET}/{tmp_path.name}"}
    with HostedServer(tmp_path, store_endpoint=strong_s3, **settings) as server:
        assert server.send(sample_frames("c", ended=True)).status == 200
        answer = server.ask("GET", f"{DOCUMENT}/report.json")
        assert (answer.status, answer.json()["totals"]["tasks"]) == (200, 3)


@pytest.mark.usefixtures("apart")
def test_an_uploaded_recording_is_built_apart(tmp_path: Path) -> None:
    with HostedServer(tmp_path) as server:
        made = server.ask("POST", "/api/v1/reports", body=sample_recording())
        assert made.status == 201, made.text
        assert made.json()["n_tasks"] == 3
        report = server.ask("GET", f"/api/v1/reports/{made.json()['id']}/document/report.json").json()
        assert report["totals"]["tasks"] == 3


def claim_tasks(data: Path, tasks: int) -> None:
    import sqlite3

    with closing(sqlite3.connect(data / "catalog.db")) as connection:
        connection.execute("UPDATE runs SET tasks = ?", (tasks,))
        connection.commit()


def test_a_document_that_needs_too_much_memory_fails_and_the_server_survives(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--build-memory", str(120 * MIB))
    server.start()
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)) as connection:

        def ask(method: str, path: str, body: bytes | None = None) -> tuple[int, dict[str, Any]]:
            headers = {"Authorization": f"Bearer {server.secret}", "Content-Type": FRAMES}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())

        assert ask("POST", "/api/v1/ingest", sample_frames("c"))[0] == 200
        claim_tasks(server.data, 5_000_000)
        # The second reader is not made to wait for another attempt.
        for _ in range(2):
            status, answer = ask("GET", f"{DOCUMENT}/report.json")
            assert (status, answer["error"]["code"]) == (503, "build_failed")
            assert "needs more than 120 MiB of memory" in answer["error"]["message"]
            assert "--build-memory" in answer["error"]["message"]
        assert ask("GET", "/readyz")[0] == 200
        assert ask("POST", "/api/v1/ingest", sample_frames("d"))[0] == 200
        assert ask("GET", "/api/v1/clusters/d/document/report.json")[0] == 200
    assert server.stop() == 0
    assert "Traceback" not in server.log()


def storage_in(directory: Path) -> Storage:
    return Storage(str(directory / "catalog.db"), 0, str(directory / "blobs"), "", [bytes(32)])


def test_a_build_process_ends_with_its_server(tmp_path: Path) -> None:
    # A recording that nobody writes: the process waits for it.
    pipe = tmp_path / "never.daskscope"
    os.mkfifo(pipe)
    job = Job(BuildRequest(1, "title", recording=str(pipe)), storage_in(tmp_path), 1024 * MIB)
    process = subprocess.Popen([sys.executable, "-m", BUILD.module], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(msgspec.json.encode(job) + b"\n")
    process.stdin.close()
    assert process.wait(60) == 1
    process.stdout.close()


def test_a_build_is_tried_with_what_it_should_need_and_then_with_all_there_is(tmp_path: Path) -> None:
    runner = Runner(ChildProcesses(), MemoryBudget(1000), storage_in(tmp_path))
    assert runner.memory_attempts(300) == [300, 1000]
    assert runner.memory_attempts(3000) == [1000]


# ---------------------------------------------------------------- upgrades


def set_version(server: HostedServer, version: str) -> None:
    with server.services.archive.write() as tx:
        tx.execute(sa.update(schema.documents).values(version=version))


def test_a_document_of_an_earlier_version_is_shown_and_refreshed_in_the_background(
    hosted: Hosting, tmp_path: Path
) -> None:
    with hosted(tmp_path) as server:
        assert server.send(sample_frames("c", ended=True)).status == 200
        before, jobs = tag_of(server), Jobs(server.services)
        jobs.refresh_document()
        assert tag_of(server) == before
        set_version(server, "0.0.1/2")
        assert [tag_of(server), tag_of(server)] == [before, before]
        jobs.refresh_document()
        after = tag_of(server)
        assert after != before
        # Once.
        jobs.refresh_document()
        assert tag_of(server) == after


def test_a_document_that_the_viewer_cannot_read_is_built_anew_at_once(hosted: Hosting, tmp_path: Path) -> None:
    with hosted(tmp_path) as server:
        assert server.send(sample_frames("c", ended=True)).status == 200
        before = tag_of(server)
        set_version(server, "0.0.1/1")
        assert tag_of(server) != before
