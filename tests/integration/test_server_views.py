"""What the viewer shows of a cluster and of one of its computations: from when to when, whatever else was made of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from daskscope.testing.factories import make_frames
from daskscope.testing.hosted import HostedServer
from daskscope.testing.samples import sample_tables

SECOND = 1_000_000


@dataclass
class Shown:
    """What the viewer is given, with times in seconds since the cluster began."""

    server: HostedServer
    start_us: int

    def __call__(self, path: str) -> tuple[float, float, dict[str, Any]]:
        report: dict[str, Any] = self.server.ask("GET", f"{path}/view/report.json").json()
        begin, end = ((report[name] - self.start_us) / SECOND for name in ("start_us", "stop_us"))
        return begin, end, report


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Shown]:
    """A cluster of a minute, a computation of ten seconds in it, and a report somebody made of five others."""
    tables = sample_tables("c", ended=True)
    start = tables["clusters"][0]["start_us"]
    tables["computations"][0].update(start_us=start + 20 * SECOND, stop_us=start + 30 * SECOND)
    for number, task in enumerate(tables["tasks"]):
        task.update(start_us=start + (21 + number) * SECOND, stop_us=start + (22 + number) * SECOND)
    window = {"window": "w", "kind": "report", "seen_us": start, "start_us": start + 50 * SECOND, "status": "ok"}
    tables["windows"] = [{**window, "stop_us": start + 55 * SECOND}]
    with HostedServer(tmp_path) as server:
        assert server.send(b"".join(make_frames(tables, cluster="c"))).status == 200
        yield Shown(server, start)


def test_a_cluster_is_shown_from_its_beginning_to_its_end(shown: Shown) -> None:
    begin, end, report = shown("/api/v1/clusters/c")
    assert (begin, end) == (0, 60)
    assert report["totals"]["tasks"] == 3


def test_a_computation_is_shown_for_the_time_it_took(shown: Shown) -> None:
    begin, end, report = shown("/api/v1/clusters/c/computations/sample-comp")
    assert (begin, end) == (20, 30)
    assert "10.0 s" in report["answer"]["headline"]


def test_shared_it_is_of_the_same_time(shown: Shown) -> None:
    made = shown.server.ask("POST", "/api/v1/clusters/c/computations/sample-comp/share").json()
    begin, end, _ = shown(f"/api/v1/reports/{made['id']}")
    assert (begin, end) == (20, 30)


def test_columns_are_those_of_the_document_a_page_has_read(shown: Shown) -> None:
    server, path = shown.server, "/api/v1/clusters/c/view"
    before = server.ask("GET", f"{path}/report.json")
    tag = before.headers["ETag"].strip('"')
    column = before.json()["stream"]["columns"]["gap"]["block"]
    held = server.ask("GET", f"{path}/blocks/{column}").body
    more = sample_tables("c")["tasks"]
    assert server.send(b"".join(make_frames({"tasks": more}, cluster="c", epoch=2))).status == 200

    assert server.ask("GET", f"{path}/report.json").headers["ETag"].strip('"') != tag
    assert server.ask("GET", f"{path}/blocks/{column}?of={tag}").body == held
    assert server.ask("GET", f"{path}/blocks/{column}").body != held
    # One that nobody remembers is of the newest.
    assert server.ask("GET", f"{path}/blocks/{column}?of=view-0000").status == 200


def test_what_is_remembered_of_a_deleted_cluster_is_not_shown(shown: Shown) -> None:
    server, path = shown.server, "/api/v1/clusters/c/view"
    document = server.ask("GET", f"{path}/report.json")
    tag, column = document.headers["ETag"].strip('"'), document.json()["stream"]["columns"]["gap"]["block"]
    assert server.ask("GET", f"{path}/blocks/{column}?of={tag}").status == 200
    assert server.ask("GET", f"/api/v1/clusters/none/view/blocks/{column}?of={tag}").status == 404
    assert server.ask("DELETE", "/api/v1/clusters/c").status == 200
    assert server.ask("GET", f"{path}/blocks/{column}?of={tag}").status == 404


def test_a_tag_opens_nothing_to_another_account(tmp_path: Path) -> None:
    with HostedServer(tmp_path, login=True) as server:
        server.make_account("ours", mia="member")
        server.make_account("theirs", mallory="owner")
        mine, theirs = server.make_token("mia", "ours"), server.make_token("mallory", "theirs")
        tables = sample_tables("c")
        assert server.send(b"".join(make_frames(tables, cluster="c")), token=mine).status == 200
        fewer = {**tables, "tasks": tables["tasks"][:1]}
        assert server.send(b"".join(make_frames(fewer, cluster="c")), token=theirs).status == 200
        path = "/api/v1/clusters/c/view"
        document = server.ask("GET", f"{path}/report.json", token=mine)
        tag, column = document.headers["ETag"].strip('"'), document.json()["stream"]["columns"]["gap"]["block"]
        ours = server.ask("GET", f"{path}/blocks/{column}?of={tag}", token=mine).body
        # They have a cluster of the same name: with our tag they get a column of their own.
        got = server.ask("GET", f"{path}/blocks/{column}?of={tag}", token=theirs).body
        assert got == server.ask("GET", f"{path}/blocks/{column}", token=theirs).body
        assert got != ours
        for garbage in ("../" + tag, "%00", "x" * 200, f"1/renderings/{tag}"):
            assert server.ask("GET", f"{path}/blocks/{column}?of={garbage}", token=theirs).status in (200, 400)
        assert server.ask("GET", f"{path}/blocks/{column}?of={tag}").status == 401
