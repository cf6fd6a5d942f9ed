"""Comparisons of computations and clusters of an account."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_type_hints, is_typeddict
from urllib.parse import quote

import pytest
from tests.helpers.compared_runs import compared_tables
from tests.helpers.hosted import HostedServer, HttpResponse

from daskscope import units
from daskscope.report import comparison_schema
from daskscope.server.processes import recordings
from daskscope.server.routes import compare
from daskscope.testing import make_frames

SECOND = 1_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("compare"), login=True) as server:
        server.make_account("ours", olga="owner", vera="viewer")
        server.make_account("theirs", mallory="owner")
        token = server.make_token("olga", "ours")
        for name, score in (("before", 1.0), ("after", 1.3)):
            for seed in range(5):
                cluster = f"{name}-{seed}"
                tables = compared_tables(seed + (100 if name == "after" else 0), score, cluster)
                assert server.send(*make_frames(tables, cluster=cluster), token=token).status == 200
        yield server


def runs(name: str, count: int = 5, computation: str = "/c-1") -> str:
    return ",".join(f"{name}-{seed}{computation}" for seed in range(count))


def path(before: str, after: str) -> str:
    return f"/api/v1/compare?before={quote(before, safe='')}&after={quote(after, safe='')}"


def found(server: HostedServer, before: str, after: str) -> dict[str, Any]:
    answer = server.ask("GET", path(before, after), token=server.make_token("vera", "ours", "read"))
    assert answer.status == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_a_slowed_prefix_is_named(server: HostedServer) -> None:
    comparison = found(server, runs("before"), runs("after"))
    assert {p["prefix"]: p["verdict"] for p in comparison["prefixes"]} == {
        "score": "slower", "load": "no difference shown", "clean": "no difference shown", "store": "no difference shown",
    }  # fmt: skip
    assert "% slower: " in comparison["verdict"]
    assert comparison["before"] == ["job, 2025-11-15 22:00:00 UTC"] * 5
    assert "-factor = 1.0\n+factor = 1.3" in comparison["code"]


def test_whole_clusters_are_compared(server: HostedServer) -> None:
    comparison = found(server, runs("before", computation=""), runs("after", computation=""))
    assert comparison["wall"]["verdict"] == "slower"


def test_one_run_with_its_history_gives_hints(server: HostedServer) -> None:
    comparison = found(server, runs("before"), "after-0/c-1")
    assert comparison["can_prove"] is False
    assert any(note.startswith("A score task took longer than in all 5 earlier runs") for note in comparison["notes"])


def test_the_response_is_what_the_page_expects(server: HostedServer) -> None:
    check(found(server, runs("before"), runs("after")), comparison_schema.Comparison)


def check(value: Any, hint: Any) -> None:
    """Check that a record has exactly the declared fields, also inside of it."""
    if is_typeddict(hint):
        hints = get_type_hints(hint)
        assert set(value) == set(hints), hint
        for name, inner in hints.items():
            check(value[name], inner)
    elif getattr(hint, "__origin__", None) is list and value:
        check(value[0], hint.__args__[0])


@pytest.mark.parametrize(
    ("before", "after", "status", "message"),
    [
        ("before-0/nothing", "after-0/c-1", 404, "No such computation"),
        ("nothing", "after-0/c-1", 404, "No such cluster"),
        (",", "after-0", 400, "Give 1 to 20 runs"),
        (runs("before", 21), "after-0", 400, "Give 1 to 20 runs"),
        ("/c-1", "after-0", 404, "No such cluster"),
    ],
)
def test_a_wrong_request_says_what_to_do(
    before: str, after: str, status: int, message: str, server: HostedServer
) -> None:
    answer = server.ask("GET", path(before, after), token=server.make_token("olga", "ours"))
    assert answer.status == status
    assert message in answer.text


def test_runs_of_another_account_do_not_exist(server: HostedServer) -> None:
    foreign = server.make_token("mallory", "theirs")
    for before, after in (("before-0/c-1", "after-0/c-1"), ("before-0", "after-0")):
        answer = server.ask("GET", path(before, after), token=foreign)
        assert (answer.status, answer.code) == (404, "not_found")
        assert "score" not in answer.text
    assert server.ask("GET", path("before-0", "after-0")).status == 401
    ingest_only = server.make_token("olga", "ours", "ingest")
    assert server.ask("GET", path("before-0", "after-0"), token=ingest_only).status == 403


def test_too_many_tasks_are_refused(server: HostedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "MAX_TASKS", 100)
    answer = server.ask("GET", path(runs("before", 2), "after-0"), token=server.make_token("olga", "ours"))
    assert (answer.status, answer.code) == (413, "too_large")
    assert "These runs have 120 tasks; a page compares up to 100." in answer.text


def test_too_many_rows_are_refused_before_they_are_read(server: HostedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = {name: len(rows) for name, rows in compared_tables(0, 1.0, "before-0").items()}
    token = server.make_token("olga", "ours")

    def ask(limit: int, before: str) -> HttpResponse:
        monkeypatch.setattr(compare, "MAX_ROWS", limit)
        return server.ask("GET", path(before, "after-0/c-1"), token=token)

    assert ask(sum(sent.values()), "before-0").status == 200
    monkeypatch.setattr(recordings, "read", None)
    refused = ask(sum(sent.values()) - 1, "before-0")
    assert (refused.status, refused.json()["error"]["message"]) == (
        413,
        f"job, 2025-11-15 22:00:00 UTC has {units.count(sum(sent.values()))} rows; a page compares runs of up to "
        f"{units.count(sum(sent.values()) - 1)}. Compare single computations, or download the recordings and run daskscope "
        "compare.",
    )
