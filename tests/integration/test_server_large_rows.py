"""What the server reads in its own process is limited by rows and bytes of all tables, not by tasks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.hosted import HostedServer

from daskscope.server.documents import HERE, HERE_BESIDE_OTHERS
from daskscope.server.processes import recordings
from daskscope.server.processes.child import ChildProcesses
from daskscope.testing import make_frames
from daskscope.wire.file import Row, read_recording

ROWS = HERE.rows + 1
T = time.time_ns() // 1000 - 60_000_000
CLUSTER = "/api/v1/clusters/many-rows"
PATHS = {
    "daskscope.server.processes.build": [
        f"{CLUSTER}/document/report.json",
        f"{CLUSTER}/computations/c/document/report.json",
    ],
    "daskscope.server.processes.recordings": [
        "/api/v1/compare?before=many-rows&after=many-rows",
        "/api/v1/compare?before=many-rows/c&after=many-rows/c",
        f"{CLUSTER}/recording",
    ],
    "daskscope.server.processes.replay": [f"{CLUSTER}/computations/c/what-if"],
}


def frames(cluster: str, **tables: list[Row]) -> list[bytes]:
    task: Row = {
        "key": "inc-1", "prefix": "inc", "worker": "w", "status": "ok", "computation": "c", "start_us": T,
        "stop_us": T + 1_000, "thread": 1,
    }  # fmt: skip
    rows: dict[str, list[Row]] = {
        "clusters": [{"cluster": cluster, "seen_us": T, "start_us": T}],
        "workers": [{"worker": "w", "server_id": "s", "seen_us": T, "start_us": T, "nthreads": 1}],
        "computations": [{"computation": "c", "seen_us": T, "start_us": T, "stop_us": T + 1_000, "tasks": 1}],
        "tasks": [task],
    }
    return make_frames({**rows, **tables}, cluster=cluster)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("rows")) as server:
        sample: Row = {"time_us": T + 500, "worker": "w", "memory": 1}
        assert server.send(*frames("many-rows", samples=[sample] * ROWS)).status == 200
        log: Row = {"time_us": T + 500, "worker": "w", "level": 40}
        assert (
            server.send(
                *frames("many-bytes", logs=[{**log, "message": f"{n}" + "x" * 1_000_000} for n in range(40)])
            ).status
            == 200
        )
        yield server


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the modules of the processes that are started during a test."""
    modules: list[str] = []
    start = ChildProcesses.start

    def noted(self: ChildProcesses, module: str, *args: Any, **options: Any) -> Any:
        modules.append(module)
        return start(self, module, *args, **options)

    monkeypatch.setattr(ChildProcesses, "start", noted)
    return modules


@pytest.mark.parametrize(("module", "path"), [(module, path) for module, paths in PATHS.items() for path in paths])
def test_many_rows_of_one_task_are_read_in_a_limited_process(
    server: HostedServer, started: list[str], module: str, path: str
) -> None:
    response = server.ask("GET", path)
    assert response.status == 200, response.text
    assert started == [module]


def test_few_rows_with_many_bytes_are_read_in_a_limited_process(server: HostedServer, started: list[str]) -> None:
    assert server.ask("GET", "/api/v1/clusters/many-bytes/document/report.json").status == 200
    # Once more with all the memory there is: the first estimate is made of tasks.
    assert set(started) == {"daskscope.server.processes.build"}


def test_small_runs_are_read_in_the_server(server: HostedServer, started: list[str]) -> None:
    assert server.send(*frames("small")).status == 200
    for path in ("/document/report.json", "/recording", "/computations/c/what-if"):
        assert server.ask("GET", f"/api/v1/clusters/small{path}").status == 200
    assert server.ask("GET", "/api/v1/compare?before=small&after=small").status == 200
    assert started == []


def test_beside_other_accounts_the_server_reads_less_itself(server: HostedServer, started: list[str]) -> None:
    sample: Row = {"time_us": T + 500, "worker": "w", "memory": 1}
    compare = "/api/v1/compare?before=medium&after=medium"
    assert server.send(*frames("medium", samples=[sample] * (HERE_BESIDE_OTHERS.rows + 1))).status == 200
    assert server.ask("GET", compare).status == 200
    assert started == []
    server.services.pools.shares.begin(OTHER_ACCOUNT)
    assert server.ask("GET", compare).status == 200
    assert started == ["daskscope.server.processes.recordings"]


OTHER_ACCOUNT = 999_999


def test_a_large_recording_is_the_same_file_as_a_small_one(server: HostedServer, tmp_path: Path) -> None:
    path = tmp_path / "many.daskscope"
    path.write_bytes(server.ask("GET", f"{CLUSTER}/recording").body)
    recording = read_recording(path)
    assert {name: table.rows for name, table in recording.tables.items() if table.rows} == {
        "clusters": 1, "workers": 1, "computations": 1, "tasks": 1, "samples": ROWS,
    }  # fmt: skip
    assert (recording.damage, recording.missing_batches) == ("", 0)


@pytest.mark.parametrize(
    ("name", "value"),
    # Less memory than the process has before it reads anything, and less time than it takes to start.
    [("nbytes", 1 << 20), ("seconds", 0.01)],
)
def test_a_comparison_that_is_too_large_says_what_to_do(
    server: HostedServer, monkeypatch: pytest.MonkeyPatch, name: str, value: float
) -> None:
    if name == "seconds":
        monkeypatch.setattr(recordings, "READ", replace(recordings.READ, timeout_s=value))
    else:
        monkeypatch.setattr(server.services.build_memory, "nbytes", int(value))
    response = server.ask("GET", PATHS["daskscope.server.processes.recordings"][0])
    assert (response.status, response.code) == (413, "too_large")
    assert "Choose single computations" in _message(response.json())


def test_a_table_that_is_too_large_to_list_is_refused(server: HostedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from daskscope.server.routes import rows
    from daskscope.storage.runs.read import Amount

    monkeypatch.setattr(rows, "LISTED", Amount(nbytes=1 << 20, rows=0))
    response = server.ask("GET", f"{CLUSTER}/tasks")
    assert (response.status, response.code) == (413, "too_large")
    assert "Ask for a shorter time" in _message(response.json())


def _message(body: Mapping[str, Any]) -> str:
    return json.dumps(body["error"]["message"])
