"""The list of runs by name: rows, filters, counts and pages, and the list of one name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from tests.helpers.hosted import HostedServer
from tests.helpers.hostile import HOSTILE
from tests.helpers.services import Hosting

from daskscope.server.services import now_us
from daskscope.testing import make_frames

pytestmark = pytest.mark.each_database

MINUTE = 60_000_000


def send(server: HostedServer, cluster: str, name: str, minutes_ago: int, **tables: list[dict[str, Any]]) -> None:
    """Send a cluster that ran for ``minutes_ago`` seconds, so that durations differ."""
    start = now_us() - minutes_ago * MINUTE
    row = {
        "cluster": cluster,
        "name": name,
        "user": "mia",
        "start_us": start,
        "seen_us": start + minutes_ago * 1_000_000,
    }
    row |= {"end_us": row["seen_us"], "end_reason": "closed"}
    assert server.send(*make_frames({"clusters": [row], **tables}, cluster=cluster)).status == 200


def failed_task(cluster: str) -> dict[str, list[dict[str, Any]]]:
    at = now_us() - MINUTE
    where = {"worker": "tcp://1", "prefix": "parse", "computation": "comp", "key": "parse-1"}
    error = {
        **where,
        "time_us": at,
        "type": "ValueError",
        "message": "not a\nnumber: '1.204,50'",
        "traceback": "Traceback",
    }
    return {
        "tasks": [{**where, "id": 0, "start_us": at - 5, "stop_us": at, "status": "error"}],
        "exceptions": [{**error, "fingerprint": f"f-{cluster}", "count": 1}],
    }


def lost_worker() -> dict[str, list[dict[str, Any]]]:
    at = now_us() - MINUTE
    killed = {"server_id": "s", "worker": "tcp://1", "name": "w-5", "nthreads": 1, "memory_limit": 100, "seen_us": at}
    evidence = "its nanny killed it at 95 B of resident memory, over the terminate limit"
    return {"workers": [{**killed, "start_us": at - 5, "end_us": at, "verdict": "memory kill", "evidence": evidence}]}


@pytest.fixture(scope="module")
def server(hosted_once: Hosting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with hosted_once(tmp_path_factory.mktemp("runs")) as server:
        send(server, "etl-1", "etl", 90)
        send(server, "etl-2", "etl", 60, **failed_task("etl-2"))
        send(server, "scores-1", "scores", 50, **lost_worker())
        send(server, "alone-1", "", 40)
        send(server, "alone-2", "", 30)
        send(server, "hostile", HOSTILE, 20)
        send(server, "etl-3", "etl", 10)
        yield server


def ask(server: HostedServer, query: str = "", route: str = "runs") -> dict[str, Any]:
    answer = server.ask("GET", f"/api/v1/{route}?{query}")
    assert answer.status == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_name_has_one_row_with_its_last_runs(server: HostedServer) -> None:
    found = ask(server)
    rows = [(row["name"], row["newest"]["id"], row["runs"]) for row in found["items"]]
    assert rows == [
        ("etl", "etl-3", 3), (HOSTILE, "hostile", 1), ("", "alone-2", 1), ("", "alone-1", 1), ("scores", "scores-1", 1),
    ]  # fmt: skip
    etl, *_, scores = found["items"]
    shown = [(run["id"], run["state"], run["duration"], run["lost_workers"]) for run in etl["recent"]]
    assert shown == [("etl-1", "finished", 90, 0), ("etl-2", "failed", 60, 0), ("etl-3", "finished", 10, 0)]
    assert (scores["newest"]["lost_workers"], scores["recent"][0]["lost_workers"]) == (1, 1)
    assert scores["newest"]["problem"] == "Worker w-5 was killed at 95 % of its memory limit"
    assert found["next"] is None
    assert {state: n for state, n in found["states"].items() if n} == {"finished": 6, "failed": 1}
    assert found["lost_workers"] == 1


def test_filters_select_runs_and_counts_ignore_the_state(server: HostedServer) -> None:
    failed = ask(server, "state=failed")
    (row,) = failed["items"]
    assert (row["newest"]["id"], row["runs"]) == ("etl-2", 1)
    assert row["newest"]["problem"] == "ValueError: not a number: '1.204,50'"
    assert len(row["recent"]) == 3
    assert failed["states"]["finished"] == 6
    assert [row["newest"]["id"] for row in ask(server, "lost_workers=true")["items"]] == ["scores-1"]
    searched = ask(server, f"search={quote(HOSTILE)}")
    assert [row["newest"]["id"] for row in searched["items"]] == ["hostile"]
    assert sum(searched["states"].values()) == 1
    assert ask(server, "since=35+minutes")["states"]["finished"] == 7 - 1, "a run that was heard from counts"
    assert server.ask("GET", "/api/v1/runs?state=nonsense").status == 400


def test_pages_have_no_gaps_or_repeats(server: HostedServer) -> None:
    seen: list[str] = []
    cursor = ""
    for _ in range(9):
        page = ask(server, f"limit=2&cursor={cursor}")
        seen += [row["newest"]["id"] for row in page["items"]]
        if page["next"] is None:
            break
        cursor = page["next"]
    assert seen == ["etl-3", "hostile", "alone-2", "alone-1", "scores-1"]


def test_the_runs_of_a_name_are_listed_with_what_went_wrong(server: HostedServer) -> None:
    runs = ask(server, "same_name_as=etl-1", "clusters")["items"]
    problems = {run["id"]: run["problem"] for run in runs}
    assert problems == {"etl-3": "", "etl-2": "ValueError: not a number: '1.204,50'", "etl-1": ""}
    assert [run["id"] for run in ask(server, "same_name_as=hostile", "clusters")["items"]] == ["hostile"]
    assert [run["id"] for run in ask(server, "lost_workers=true", "clusters")["items"]] == ["scores-1"]
    assert server.ask("GET", "/api/v1/clusters?same_name_as=nothing").status == 404


def test_runs_of_another_account_are_neither_listed_nor_counted(
    hosted_once: Hosting, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Both accounts have a cluster of the same name: a name must not join them."""
    with hosted_once(tmp_path_factory.mktemp("two-accounts"), login=True) as server:
        server.make_account("ours", olga="owner")
        server.make_account("theirs", mallory="owner")
        tokens = {"ours": server.make_token("olga", "ours"), "theirs": server.make_token("mallory", "theirs")}
        for account, token in tokens.items():
            cluster = f"etl-{account}"
            row = {"cluster": cluster, "name": "etl", "start_us": now_us() - MINUTE, "seen_us": now_us()}
            assert server.send(*make_frames({"clusters": [row]}, cluster=cluster), token=token).status == 200
        for account, token in tokens.items():
            found = server.ask("GET", "/api/v1/runs?since=all", token=token).json()
            (group,) = found["items"]
            assert (group["runs"], [run["id"] for run in group["recent"]]) == (1, [f"etl-{account}"])
            assert sum(found["states"].values()) == 1
            one = server.ask("GET", f"/api/v1/clusters/etl-{account}", token=token).json()
            assert [run["id"] for run in one["recent"]] == [f"etl-{account}"]
        foreign = server.ask("GET", "/api/v1/clusters?same_name_as=etl-ours", token=tokens["theirs"])
        assert (foreign.status, foreign.code) == (404, "not_found")
        assert server.ask("GET", "/api/v1/runs").status == 401
        ingest_only = server.make_token("olga", "ours", "ingest")
        assert server.ask("GET", "/api/v1/runs", token=ingest_only).status == 403
