"""A cluster over time, as its page asks for it; also of one whose recorder lies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from daskscope.analysis.rollup import LARGEST
from daskscope.testing.factories import make_frames
from daskscope.testing.hosted import HostedServer

START, SECOND = 1_700_000_000_000_000, 1_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("history")) as server:
        yield server


def history(server: HostedServer, cluster: str, workers: list[dict[str, Any]], details: list[str]) -> dict[str, Any]:
    """What is answered of a cluster of 40 seconds; of the events one comes every ten seconds, in the middle of them."""
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


def test_workers_and_what_was_wanted_lie_on_the_same_steps(server: HostedServer) -> None:
    lives = [
        {"server_id": "a", "worker": "tcp://a", "start_us": START},
        {"server_id": "b", "worker": "tcp://b", "start_us": START + 10 * SECOND, "end_us": START + 25 * SECOND},
    ]
    found = history(server, "honest", lives, [json.dumps({"wanted": n, "workers": 1}) for n in (1, 2, 0)])
    assert (found["step"], found["edges"]) == (10, [0, 10, 20, 30, 40])
    assert found["workers"] == [1, 2, 1.5, 1]
    assert found["threads"] == [2, 4, 3, 2]
    # The most of each step: two were wanted when the third began.
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
def test_an_event_that_names_no_number_changes_nothing(server: HostedServer, detail: str) -> None:
    cluster = f"none-{abs(hash(detail))}"
    assert history(server, cluster, [], [detail, '{"wanted": 3}', detail])["wanted"] == [None, 3, 3, 3]


def test_numbers_nobody_can_want_are_cut(server: HostedServer) -> None:
    found = history(server, "huge", [], [f'{{"wanted": {number}}}' for number in (-5, 10**100, 1 << 63)])
    assert found["wanted"] == [0, LARGEST, LARGEST, LARGEST]


def test_lives_that_cannot_be_count_for_no_time(server: HostedServer) -> None:
    year_9999 = 253_402_300_799 * SECOND
    lives = [
        {"server_id": "backwards", "start_us": START + 30 * SECOND, "end_us": START + 10 * SECOND},
        {"server_id": "later", "start_us": year_9999, "end_us": 0},
        {"server_id": "for ever", "start_us": START, "end_us": year_9999},
    ]
    assert history(server, "impossible", lives, [])["workers"] == [1, 1, 1, 1]
