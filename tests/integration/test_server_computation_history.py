"""The history of a computation on a server: runs of the same code, a change, and its cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.hosted import HostedServer

from daskscope.testing.factories import make_frames

S = 1_000_000
BEGIN = 1_700_000_000 * S
RUNS, SLOWER_FROM = 24, 16


def frames(number: int, seconds: float, version: str) -> list[bytes]:
    start = BEGIN + number * 3600 * S
    stop = start + round(seconds * S)
    tables: dict[str, list[dict[str, Any]]] = {
        "clusters": [
            {
                "cluster": f"c{number}", "name": "nightly", "start_us": start, "seen_us": stop, "end_us": stop,
                "end_reason": "closed", "versions": f'{{"pandas": "{version}"}}',
            }
        ],
        "workers": [{"worker": "w", "server_id": "s", "nthreads": 4, "start_us": start, "seen_us": stop}],
        "computations": [
            {
                "computation": f"k{number}", "seen_us": stop, "start_us": start, "stop_us": stop, "state": "done", "tasks": 2,
                "code": "df.sum().compute()", "code_line": 0, "code_file": "job.py",
            }
        ],
        "tasks": [
            {
                "id": n, "key": f"load-{n}", "prefix": "load", "computation": f"k{number}", "worker": "w", "status": "ok",
                "start_us": start, "stop_us": stop, "nbytes": 1_000,
            }
            for n in range(2)
        ],
    }  # fmt: skip
    return make_frames(tables, cluster=f"c{number}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("computation-history")) as server:
        for number in range(RUNS):
            is_later = number >= SLOWER_FROM
            seconds = (13.0 if is_later else 10.0) + number % 4 / 10
            assert server.send(*frames(number, seconds, "2.3" if is_later else "2.2")).status == 200
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


def test_the_history_of_an_early_run_has_no_change(server: HostedServer) -> None:
    found = history(server, SLOWER_FROM - 1)
    assert (len(found["runs"]), found["changes"]) == (SLOWER_FROM, [])


def test_an_unknown_computation(server: HostedServer) -> None:
    assert server.ask("GET", "/api/v1/clusters/c0/computations/none/history").status == 404
