"""The server predicts stored computations, and only for callers who may read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.eight_tasks import eight_task_rows
from tests.hosted import HostedServer

from daskscope.server.routes import what_if
from daskscope.testing.factories import make_frames

PATH = "/api/v1/clusters/eight/computations/c/what-if"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HostedServer]:
    with HostedServer(tmp_path) as server:
        assert server.send(b"".join(make_frames(eight_task_rows(), cluster="eight"))).status == 200
        yield server


def test_a_stored_computation_is_predicted(server: HostedServer) -> None:
    found = server.ask("GET", f"{PATH}?workers=2,4&threads=1&prefix=load&times=2").json()

    assert [(item["workers"], round(item["duration"], 1)) for item in found["predictions"]] == [(2, 2.5), (4, 1.5)]
    assert found["check"] == "The replay of the recorded run takes 8.51 s; the run took 8.50 s."
    assert (found["reason"], found["workers"], found["threads"], found["duration"]) == ("", 1, 1, 8.5)
    assert found["prefixes"] == ["load", "sum"]
    assert all(item["cost"] > 0 for item in found["predictions"])


def test_by_default_the_recorded_cluster_is_among_the_predictions(server: HostedServer) -> None:
    found = server.ask("GET", PATH).json()

    assert [item["workers"] for item in found["predictions"]] == [1, 2, 4, 8]
    assert found["predictions"][0]["duration"] == found["replayed"]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("workers=two", "workers='two' is not a list of up to 8 numbers, such as 1,2,4."),
        ("workers=0", "0 workers can't be replayed. Give a number from 1 to 10,000."),
        ("prefix=lod&times=2", "No task has the prefix 'lod'. The prefixes are load, sum."),
    ],
)
def test_impossible_questions_are_refused(server: HostedServer, query: str, problem: str) -> None:
    response = server.ask("GET", f"{PATH}?{query}")

    assert (response.status, response.json()["error"]["message"]) == (400, problem)


def test_an_unknown_computation_is_not_found(server: HostedServer) -> None:
    assert server.ask("GET", PATH.replace("/c/", "/other/")).status == 404


def test_a_large_computation_is_for_the_command_line(server: HostedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(what_if, "MAX_TASKS", 8)
    response = server.ask("GET", PATH)

    assert response.status == 413
    assert response.json()["error"]["message"] == (
        "This computation has 9 tasks, and the server replays up to 8. "
        "Run daskscope what-if eight --computation c instead."
    )
