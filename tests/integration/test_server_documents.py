"""The documents of a cluster and of its computations cover the right time range."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.documents import SECOND, Documents
from tests.helpers.hosted import HostedServer
from tests.helpers.samples import sample_tables

from daskscope.server import documents as memory
from daskscope.server.caches import Shared
from daskscope.testing import make_frames


@pytest.fixture
def documents(tmp_path: Path) -> Iterator[Documents]:
    """A cluster of one minute, with a computation of ten seconds and a report of another five seconds."""
    tables = sample_tables("c", ended=True)
    start = tables["clusters"][0]["start_us"]
    tables["computations"][0].update(start_us=start + 20 * SECOND, stop_us=start + 30 * SECOND)
    for number, task in enumerate(tables["tasks"]):
        task.update(start_us=start + (21 + number) * SECOND, stop_us=start + (22 + number) * SECOND)
    window = {"window": "w", "kind": "report", "seen_us": start, "start_us": start + 50 * SECOND, "status": "ok"}
    tables["windows"] = [{**window, "stop_us": start + 55 * SECOND}]
    with HostedServer(tmp_path) as server:
        assert server.send(b"".join(make_frames(tables, cluster="c"))).status == 200
        yield Documents(server, start)


def test_a_cluster_document_covers_its_whole_run(documents: Documents) -> None:
    begin, end, report = documents("/api/v1/clusters/c")
    assert (begin, end) == (0, 60)
    assert report["totals"]["tasks"] == 3


def test_a_computation_document_covers_the_computation(documents: Documents) -> None:
    begin, end, report = documents("/api/v1/clusters/c/computations/sample-comp")
    assert (begin, end) == (20, 30)
    assert "10.0 s" in report["answer"]["headline"]


def test_a_shared_computation_covers_the_same_time(documents: Documents) -> None:
    made = documents.server.ask("POST", "/api/v1/clusters/c/computations/sample-comp/share").json()
    begin, end, _ = documents(f"/api/v1/reports/{made['id']}")
    assert (begin, end) == (20, 30)


def test_columns_belong_to_the_document_that_the_page_read(documents: Documents) -> None:
    server, path = documents.server, "/api/v1/clusters/c/document"
    before = server.ask("GET", f"{path}/report.json")
    tag = before.headers["ETag"].strip('"')
    column = before.json()["stream"]["columns"]["gap"]["block"]
    held = server.ask("GET", f"{path}/blocks/{column}").body
    more = sample_tables("c")["tasks"]
    assert server.send(b"".join(make_frames({"tasks": more}, cluster="c", epoch=2))).status == 200

    assert server.ask("GET", f"{path}/report.json").headers["ETag"].strip('"') != tag
    assert server.ask("GET", f"{path}/blocks/{column}?of={tag}").body == held
    assert server.ask("GET", f"{path}/blocks/{column}").body != held
    # Never the columns of another document.
    answer = server.ask("GET", f"{path}/blocks/{column}?of=document-0000")
    assert (answer.status, answer.code) == (410, "replaced")
    assert "Reload the page" in answer.text


def test_another_server_returns_the_columns_of_the_same_document(documents: Documents) -> None:
    """The page may have got its document from a server that has it in memory, and asks one that has not."""
    server, path = documents.server, "/api/v1/clusters/c/document"
    document = server.ask("GET", f"{path}/report.json")
    tag, column = document.headers["ETag"].strip('"'), document.json()["stream"]["columns"]["gap"]["block"]
    held = server.ask("GET", f"{path}/blocks/{column}?of={tag}").body
    more = sample_tables("c")["tasks"]
    assert server.send(b"".join(make_frames({"tasks": more}, cluster="c", epoch=2))).status == 200
    assert server.ask("GET", f"{path}/report.json").status == 200

    cached, memory._cache = memory._cache, Shared(0)
    try:
        assert server.ask("GET", f"{path}/blocks/{column}?of={tag}").body == held
    finally:
        memory._cache = cached


def test_cached_documents_of_a_deleted_cluster_are_not_found(documents: Documents) -> None:
    server, path = documents.server, "/api/v1/clusters/c/document"
    document = server.ask("GET", f"{path}/report.json")
    tag, column = document.headers["ETag"].strip('"'), document.json()["stream"]["columns"]["gap"]["block"]
    assert server.ask("GET", f"{path}/blocks/{column}?of={tag}").status == 200
    assert server.ask("GET", f"/api/v1/clusters/none/document/blocks/{column}?of={tag}").status == 404
    assert server.ask("DELETE", "/api/v1/clusters/c").status == 200
    assert server.ask("GET", f"{path}/blocks/{column}?of={tag}").status == 404


def test_a_tag_gives_another_account_no_access(tmp_path: Path) -> None:
    with HostedServer(tmp_path, login=True) as server:
        server.make_account("ours", mia="member")
        server.make_account("theirs", mallory="owner")
        mine, theirs = server.make_token("mia", "ours"), server.make_token("mallory", "theirs")
        tables = sample_tables("c")
        assert server.send(b"".join(make_frames(tables, cluster="c")), token=mine).status == 200
        fewer = {**tables, "tasks": tables["tasks"][:1]}
        assert server.send(b"".join(make_frames(fewer, cluster="c")), token=theirs).status == 200
        path = "/api/v1/clusters/c/document"
        document = server.ask("GET", f"{path}/report.json", token=mine)
        tag, column = document.headers["ETag"].strip('"'), document.json()["stream"]["columns"]["gap"]["block"]
        ours = server.ask("GET", f"{path}/blocks/{column}?of={tag}", token=mine).body
        # They have a cluster with the same name, but no document of ours.
        assert server.ask("GET", f"{path}/blocks/{column}?of={tag}", token=theirs).status == 410
        assert server.ask("GET", f"{path}/blocks/{column}", token=theirs).body != ours
        for garbage in ("../" + tag, "%00", "x" * 200, f"1/documents/{tag}"):
            assert server.ask("GET", f"{path}/blocks/{column}?of={garbage}", token=theirs).status in (400, 410)
        assert server.ask("GET", f"{path}/blocks/{column}?of={tag}").status == 401
