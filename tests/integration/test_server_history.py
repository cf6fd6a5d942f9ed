"""The history of a cluster for its page, also with impossible data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.helpers.hosted import HostedServer

from daskscope.model.untrusted import LARGEST
from daskscope.testing import make_frames

START, SECOND = 1_700_000_000_000_000, 1_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("history")) as server:
        yield server


def history(server: HostedServer, cluster: str, workers: list[dict[str, Any]], details: list[str]) -> dict[str, Any]:
    """Return the history of a 40-second cluster, with one event in the middle of every ten seconds."""
    asked = [
        {"time_us": START + (10 * number + 5) * SECOND, "topic": "adaptive", "kind": "wanted-workers", "detail": detail}
        for number, detail in enumerate(details)
    ]
    tables: dict[str, list[dict[str, Any]]] = {
        "clusters": [{"cluster": cluster, "start_us": START, "seen_us": START + 40 * SECOND}],
        "workers": [{"seen_us": START, "nthreads": 2, **row} for row in workers],
        "events": asked,
    }
    assert server.send(*make_frames(tables, cluster=cluster)).status == 200
    answer = server.ask("GET", f"/api/v1/clusters/{cluster}/history")
    assert answer.status == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_workers_and_wanted_workers_share_the_same_steps(server: HostedServer) -> None:
    workers = [
        {"server_id": "a", "worker": "tcp://a", "start_us": START},
        {"server_id": "b", "worker": "tcp://b", "start_us": START + 10 * SECOND, "end_us": START + 25 * SECOND},
    ]
    found = history(server, "honest", workers, [json.dumps({"wanted": n, "workers": 1}) for n in (1, 2, 0)])
    assert (found["step"], found["edges"]) == (10, [0, 10, 20, 30, 40])
    assert found["workers"] == [1, 2, 1.5, 1]
    assert found["threads"] == [2, 4, 3, 2]
    # The maximum of each step: two were wanted when the third began.
    assert found["wanted"] == [1, 2, 2, 0]


@pytest.mark.parametrize(
    "detail",
    [
        "",
        "[]",
        "{",
        "{}",
        '{"wanted": "7"}',
        '{"wanted": 1.5}',
        '{"wanted": NaN}',
        '{"wanted": true}',
        '{"wanted": null}',
    ],
)
def test_an_event_without_a_valid_number_is_ignored(server: HostedServer, detail: str) -> None:
    cluster = f"none-{abs(hash(detail))}"
    assert history(server, cluster, [], [detail, '{"wanted": 3}', detail])["wanted"] == [None, 3, 3, 3]


def test_impossible_numbers_of_wanted_workers_are_capped(server: HostedServer) -> None:
    found = history(server, "huge", [], [f'{{"wanted": {number}}}' for number in (-5, 10**100, 1 << 63)])
    assert found["wanted"] == [0, LARGEST, LARGEST, LARGEST]


def test_impossible_worker_times_do_not_count(server: HostedServer) -> None:
    year_9999 = 253_402_300_799 * SECOND
    workers = [
        {"server_id": "backwards", "start_us": START + 30 * SECOND, "end_us": START + 10 * SECOND},
        {"server_id": "later", "start_us": year_9999, "end_us": 0},
        {"server_id": "forever", "start_us": START, "end_us": year_9999},
    ]
    assert history(server, "impossible", workers, [])["workers"] == [1, 1, 1, 1]


def test_a_young_cluster_is_shown_second_by_second(server: HostedServer) -> None:
    tasks = [
        {"start_us": START + 2 * SECOND, "stop_us": START + 5 * SECOND + SECOND // 2, "status": "ok"},
        {"start_us": START + 4 * SECOND, "stop_us": START + 5 * SECOND, "status": "error"},
    ]
    tables: dict[str, list[dict[str, Any]]] = {
        "clusters": [{"cluster": "young", "start_us": START, "seen_us": START + 8 * SECOND}],
        "workers": [{"seen_us": START, "nthreads": 2, "server_id": "a", "worker": "tcp://a", "start_us": START}],
        "tasks": [{"id": number, "worker": "tcp://a", **task} for number, task in enumerate(tasks)],
    }
    assert server.send(*make_frames(tables, cluster="young")).status == 200
    found = server.ask("GET", "/api/v1/clusters/young/history").json()
    assert (found["step"], found["edges"]) == (1, [0, 1, 2, 3, 4, 5, 6, 7, 8])
    assert found["busy"] == [0, 0, 1, 1, 2, 0.5, 0, 0]
    assert (found["tasks"], found["errors"]) == ([0, 0, 0, 0, 0, 2, 0, 0], [0, 0, 0, 0, 0, 1, 0, 0])
