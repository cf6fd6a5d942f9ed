"""The history of a computation on a server: runs of the same code, a change, and its cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.helpers.hosted import HostedServer
from tests.helpers.repeated_runs import repeated_frames
from tests.helpers.services import Hosting

RUNS, SLOWER_FROM = 24, 16


@pytest.fixture(scope="module")
def server(hosted_once: Hosting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with hosted_once(tmp_path_factory.mktemp("computation-history")) as server:
        for number in range(RUNS):
            is_later = number >= SLOWER_FROM
            seconds = (13.0 if is_later else 10.0) + number % 4 / 10
            assert server.send(*repeated_frames(number, seconds, "2.3" if is_later else "2.2")).status == 200
        yield server


def history(server: HostedServer, number: int) -> dict[str, Any]:
    answer = server.ask("GET", f"/api/v1/clusters/c{number}/computations/k{number}/history")
    assert answer.status == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_slowdown_is_found_and_explained(server: HostedServer) -> None:
    found = history(server, RUNS - 1)
    assert [run["duration"] for run in found["runs"]][:2] == [10.0, 10.1]
    assert len(found["runs"]) == RUNS
    (change,) = found["changes"]
    assert change["at"] == found["runs"][SLOWER_FROM]["start"]
    assert change["sentence"] == "30 % slower: 13.2 s instead of 10.2 s (medians of 8 and 16 runs)."
    assert change["causes"] == ["Tasks of load take 13.2 s instead of 10.2 s.", "Versions changed: pandas 2.2 → 2.3."]


def test_a_run_has_its_measures_and_the_cost_of_its_workers(server: HostedServer) -> None:
    first = history(server, RUNS - 1)["runs"][0]
    core_hours, gib_hours = (4 * 10 + 1) / 3600, (10 + 1) / 3600
    assert first == {
        "id": "k0", "cluster_id": "c0", "start": "2023-11-14T22:13:20Z", "duration": 10.0,
        "cost": pytest.approx(core_hours * 0.05 + gib_hours * 0.005, abs=1e-6), "compute": 20.0, "transfer": 0.0,
        "disk": 0.0, "n_tasks": 2, "n_errors": 0, "nbytes": 2_000, "threads": 5,
    }  # fmt: skip


def test_the_levels_are_medians_between_changes(server: HostedServer) -> None:
    levels = history(server, RUNS - 1)["levels"]
    assert levels == [{"first": 0, "duration": 10.15}, {"first": SLOWER_FROM, "duration": 13.15}]


def test_without_prices_there_is_no_cost(server: HostedServer) -> None:
    free = {"core_hour": 0.0, "gib_hour": 0.0}
    assert server.ask("PATCH", "/api/v1/preferences", free).status == 200
    assert {run["cost"] for run in history(server, RUNS - 1)["runs"]} == {None}
    assert server.ask("PATCH", "/api/v1/preferences", {"core_hour": 0.05, "gib_hour": 0.005}).status == 200


def test_the_history_of_an_early_run_has_no_change(server: HostedServer) -> None:
    found = history(server, SLOWER_FROM - 1)
    assert (len(found["runs"]), found["changes"]) == (SLOWER_FROM, [])


def test_an_unknown_computation(server: HostedServer) -> None:
    assert server.ask("GET", "/api/v1/clusters/c0/computations/none/history").status == 404
