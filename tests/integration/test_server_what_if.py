"""The server predicts stored computations, and only for callers who may read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.eight_tasks import MS, S, T, eight_task_rows, row
from tests.helpers.hosted import HostedServer

from daskscope.server.processes import replay
from daskscope.server.routes import what_if
from daskscope.testing import make_frames

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


def test_tasks_can_do_without_disk_and_stragglers(server: HostedServer) -> None:
    tables = eight_task_rows()
    # Thirty-nine tasks of 100 ms and one of 4 s; then one of 500 ms, whose inputs take a second to read from disk.
    read = {"interval_start_us": [T + 7900 * MS], "interval_stop_us": [T + 8900 * MS], "interval_action": ["disk-read"]}
    spilled = {**read, "interval_source": [""], "key": "sum", "group": "sum", "prefix": "sum"}
    loads = [*(row(i, 100 * i, 100 * i + 100) for i in range(39)), row(39, 3900, 7900)]
    tables["tasks"] = [*loads, row(40, 8900, 9400, **spilled)]
    tables["edges"] = []
    tables["computations"][0].update(stop_us=T + 9400 * MS, tasks=41)
    tables["clusters"][0].update(cluster="slow", seen_us=T + 10 * S, end_us=T + 10 * S)
    assert server.send(b"".join(make_frames(tables, cluster="slow"))).status == 200

    def seconds(query: str) -> float:
        found = server.ask("GET", f"/api/v1/clusters/slow/computations/c/what-if?workers=1{query}").json()
        assert found["reason"] == ""
        return round(float(found["predictions"][0]["duration"]), 1)

    assert seconds("") == 9.4
    assert seconds("&no_spill=true") == 8.4
    assert seconds("&no_stragglers=true") == 5.5
    assert seconds("&no_spill=true&no_stragglers=true") == 4.5
    refused = server.ask("GET", "/api/v1/clusters/slow/computations/c/what-if?no_spill=maybe")
    assert refused.status == 400


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("workers=two", "workers='two' is not a list of up to 8 numbers, such as 1,2,4."),
        ("workers=0", "0 workers can't be replayed. Give a number from 1 to 10,000."),
        (
            "chunks=1.5",
            "Chunks can't be 1.5 times as large. Give a whole number from 2 to 8, or one divided by it, such as 0.5.",
        ),
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
        "This computation has 9 tasks. The server replays up to 8. Run daskscope what-if eight --computation c instead."
    )


def test_smaller_chunks_count_as_the_tasks_they_make(server: HostedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(what_if, "MAX_TASKS", 20)

    assert server.ask("GET", f"{PATH}?chunks=0.5").status == 200
    response = server.ask("GET", f"{PATH}?chunks=0.25")
    assert response.status == 413
    assert "This computation has 9 tasks, 36 with such chunks. The server replays up to 20." in response.text


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay every computation in a process of its own."""
    monkeypatch.setattr(replay, "MAX_TASKS_HERE", 0)


def test_a_replay_in_another_process_has_the_same_answer(server: HostedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    query = (
        f"{PATH}?workers=2,4&threads=2&prefix=load&times=2&no_transfers=true&no_spill=true&no_stragglers=true&chunks=2"
    )
    here = server.ask("GET", query).json()
    asked: list[str] = []
    run = server.services.child_processes.run

    def counted(module: str, *args: Any, **options: Any) -> Any:
        asked.append(module)
        return run(module, *args, **options)

    monkeypatch.setattr(server.services.child_processes, "run", counted)
    assert server.ask("GET", query).json() == here
    assert asked == []
    monkeypatch.setattr(replay, "MAX_TASKS_HERE", 8)
    assert server.ask("GET", query).json() == here
    assert asked == [replay.REPLAY.module]
    assert [item["workers"] for item in here["predictions"]] == [2, 4]


@pytest.mark.usefixtures("apart")
def test_impossible_questions_are_refused_by_another_process(server: HostedServer) -> None:
    response = server.ask("GET", f"{PATH}?prefix=lod&times=2")

    assert (response.status, response.json()["error"]["message"]) == (
        400,
        "No task has the prefix 'lod'. The prefixes are load, sum.",
    )


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize(
    ("name", "value"),
    # Less memory than the process has before it reads anything, and less time than it takes to start.
    [("PROCESS_NBYTES", 1 << 20), ("REPLAY", replace(replay.REPLAY, timeout_s=0.01))],
)
def test_a_replay_beyond_its_limits_is_for_the_command_line(
    server: HostedServer, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setattr(replay, name, value)
    response = server.ask("GET", PATH)

    assert (response.status, response.json()["error"]["message"]) == (
        413,
        "Its replay took too much time or memory. Run daskscope what-if eight --computation c instead.",
    )
    assert server.ask("GET", "/healthz").status == 200


@pytest.mark.usefixtures("apart")
def test_a_stopping_server_starts_no_replay(server: HostedServer) -> None:
    server.services.child_processes.close()
    response = server.ask("GET", PATH)

    assert (response.status, response.json()["error"]["message"]) == (
        503,
        "The server is shutting down. Try again in a minute.",
    )


@pytest.mark.parametrize("max_here", [0, 100])
def test_executions_are_counted_before_a_replay(
    server: HostedServer, monkeypatch: pytest.MonkeyPatch, max_here: int
) -> None:
    monkeypatch.setattr(replay, "MAX_TASKS_HERE", max_here)
    rows = eight_task_rows()
    # The recorder said that there is one task.
    rows["computations"][0]["tasks"] = 1
    rows["clusters"][0]["cluster"] = "other"
    assert server.send(b"".join(make_frames(rows, cluster="other"))).status == 200
    monkeypatch.setattr(what_if, "MAX_TASKS", 4)
    response = server.ask("GET", PATH.replace("eight", "other"))

    assert (response.status, response.json()["error"]["message"]) == (
        413,
        "This computation has 9 executions. Run daskscope what-if other --computation c instead.",
    )
