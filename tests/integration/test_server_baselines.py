"""Baselines on a real server: the routes, and ``pytest --daskscope-server`` in a pytest of its own with a real cluster."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.compared_runs import measured_run
from tests.helpers.hosted import HostedServer
from tests.helpers.pytest_project import Project
from tests.helpers.services import Hosting, free_port

from daskscope.server.http.routing import MAX_JSON
from daskscope.storage.catalog import baselines

RUNS = [measured_run(seed).to_dict() for seed in range(2)]
PATH = "/api/v1/baselines/main/test-a"


@pytest.fixture
def server(hosted: Hosting, tmp_path: Path) -> Iterator[HostedServer]:
    with hosted(tmp_path / "data", login=True) as server:
        server.make_account("ours", mia="member", vera="viewer")
        server.make_account("theirs", mallory="owner")
        yield server


@pytest.fixture
def token(server: HostedServer) -> str:
    return server.make_token("mia", "ours", "read", "write")


@pytest.mark.each_database
def test_a_baseline_is_kept_read_listed_and_deleted(server: HostedServer, token: str) -> None:
    assert server.ask("GET", PATH, token=token).code == "not_found"
    kept = server.ask("PUT", PATH, {"runs": RUNS}, token=token).json()
    assert (kept["name"], kept["test"], kept["repeats"], kept["user"]) == ("main", "test-a", 2, "mia")
    assert server.ask("GET", PATH, token=token).json() == {**kept, "runs": RUNS}
    assert server.ask("GET", "/api/v1/baselines", token=token).json() == {"items": [kept], "next": None}
    again = server.ask("PUT", PATH, {"runs": RUNS[:1]}, token=token).json()
    assert (again["repeats"], again["created"]) == (1, kept["created"])
    assert server.ask("DELETE", PATH, token=token).json() == {"deleted": "main/test-a"}
    assert server.ask("DELETE", PATH, token=token).code == "not_found"
    assert server.ask("GET", "/api/v1/baselines", token=token).json() == {"items": [], "next": None}


@pytest.mark.each_database
def test_a_list_has_pages(server: HostedServer, token: str) -> None:
    for name in ("branch", "main"):
        for test in ("a", "b", "c"):
            server.ask("PUT", f"/api/v1/baselines/{name}/{test}", {"runs": RUNS}, token=token)
    found, cursor = list[str](), ""
    while True:
        page = server.ask("GET", f"/api/v1/baselines?limit=4&cursor={cursor}", token=token).json()
        found += [f"{item['name']}/{item['test']}" for item in page["items"]]
        cursor = page["next"]
        if not cursor:
            break
    assert found == ["branch/a", "branch/b", "branch/c", "main/a", "main/b", "main/c"]
    of_main = server.ask("GET", "/api/v1/baselines?name=main", token=token).json()["items"]
    assert [item["test"] for item in of_main] == ["a", "b", "c"]


@pytest.mark.each_database
def test_accounts_do_not_see_each_others_baselines(server: HostedServer, token: str) -> None:
    foreign = server.make_token("mallory", "theirs")
    server.ask("PUT", PATH, {"runs": RUNS}, token=token)
    assert server.ask("GET", PATH, token=foreign).code == "not_found"
    assert server.ask("DELETE", PATH, token=foreign).code == "not_found"
    # The same name is another baseline there.
    assert server.ask("PUT", PATH, {"runs": RUNS[:1]}, token=foreign).json()["repeats"] == 1
    assert server.ask("GET", PATH, token=token).json()["repeats"] == 2
    assert server.ask("GET", "/api/v1/baselines", token=token).json()["items"][0]["user"] == "mia"


def test_reading_and_changing_need_their_scopes(server: HostedServer, token: str) -> None:
    server.ask("PUT", PATH, {"runs": RUNS}, token=token)
    reader, viewer = server.make_token("mia", "ours", "read"), server.make_token("vera", "ours")
    for caller in (reader, viewer):
        assert server.ask("GET", PATH, token=caller).status == 200
        for method, body in (("PUT", {"runs": RUNS}), ("DELETE", None)):
            answer = server.ask(method, PATH, body, token=caller)
            assert (answer.status, "needs the scope write" in answer.text) == (403, True)
    recorder = server.make_token("mia", "ours", "ingest")
    assert server.ask("GET", PATH, token=recorder).status == 403


@pytest.mark.parametrize(
    ("path", "body", "problem"),
    [
        (PATH, {"runs": []}, "Expected `array` of length >= 1"),
        (PATH, {"runs": [{"format": 99}]}, "The body is not a baseline: format 99. Send what pytest --daskscope-save"),
        (PATH, {"runs": [{**RUNS[0], "wall_us": "1"}]}, "is not a 64-bit integer"),
        (PATH, {"runs": RUNS, "more": 1}, "Object contains unknown field `more`"),
        ("/api/v1/baselines/.hidden/test", {"runs": RUNS}, "cannot name a baseline or its test. Use letters"),
        (f"/api/v1/baselines/main/{101 * 'x'}", {"runs": RUNS}, "cannot name a baseline or its test. Use letters"),
    ],
)
@pytest.mark.each_database
def test_other_bodies_and_names_are_refused(
    server: HostedServer, token: str, path: str, body: dict[str, Any], problem: str
) -> None:
    answer = server.ask("PUT", path, body, token=token)
    assert (answer.status, answer.code) == (400, "bad_request")
    assert problem in answer.json()["error"]["message"]
    assert server.ask("GET", "/api/v1/baselines", token=token).json()["items"] == []


@pytest.mark.each_database
def test_code_with_an_escaped_nul_is_no_invalid_character(server: HostedServer, token: str) -> None:
    run = {**RUNS[0], "code": ['text.replace("\\u0000", "")', "\\\\u0000"]}
    assert server.ask("PUT", PATH, {"runs": [run]}, token=token).status == 200
    assert server.ask("GET", PATH, token=token).json()["runs"] == [run]
    for text in ("\0", "\\\0"):
        answer = server.ask("PUT", PATH, {"runs": [{**RUNS[0], "code": [text]}]}, token=token)
        assert "The body contains an invalid character" in answer.text


def test_sizes_and_numbers_are_limited(server: HostedServer, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    large = server.ask("PUT", PATH, {"runs": [{**RUNS[0], "code": ["x" * MAX_JSON]}]}, token=token)
    assert (large.status, large.code) == (413, "too_large")
    server.ask("PUT", PATH, {"runs": RUNS}, token=token)
    monkeypatch.setattr(baselines, "MAX_BASELINES", 1)
    full = server.ask("PUT", "/api/v1/baselines/main/test-b", {"runs": RUNS}, token=token)
    assert (full.status, full.code) == (413, "baselines_full")


@pytest.mark.each_database
def test_processes_that_write_at_once_do_not_exceed_the_limit(
    server: HostedServer, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baselines, "MAX_BASELINES", 5)
    statuses: list[int] = []

    def put(number: int) -> None:
        statuses.append(server.ask("PUT", f"/api/v1/baselines/main/{number}", {"runs": RUNS}, token=token).status)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(statuses) == [200] * 5 + [413] * 5
    assert len(server.ask("GET", "/api/v1/baselines", token=token).json()["items"]) == 5


# ---------------------------------------------------------------- pytest

BENCHMARKS = """
import os
import pytest

def work(number):
    total = 0
    for step in range(int(os.environ["STEPS"])):
        total += step & 1
    return total

@pytest.mark.daskscope(repeats=5, warmup=1)
def test_one(client):
    client.gather(client.map(work, range(5), pure=False))

@pytest.mark.daskscope(repeats=1, warmup=0)
def test_two(client):
    client.submit(work, 1, pure=False).result()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project without a server or a sign-in."""
    (tmp_path / "config").mkdir()
    for name in ("DASKSCOPE_TOKEN", "DASK_DASKSCOPE__SERVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DASK_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "src"))
    (tmp_path / "project").mkdir()
    project = Project(tmp_path / "project")
    project.write("test_bench.py", BENCHMARKS)
    return project


def sign_in(server: HostedServer, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASKSCOPE_TOKEN", token)
    monkeypatch.setenv("DASK_DASKSCOPE__SERVER", server.url)


# Three runs of pytest with a cluster each.
@pytest.mark.timeout(300)
def test_a_machine_compares_with_the_baseline_that_another_one_kept(
    server: HostedServer, token: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(server, token, monkeypatch)
    # Two processes of pytest-xdist keep at once.
    saved = project.run("--daskscope=first", "--daskscope-server", "--daskscope-save", "main", "-n", "2")
    assert saved.returncode == 0, saved.stdout + saved.stderr
    assert "test_bench.py::test_one: 5 repeats kept as baseline main" in saved.stdout
    assert not (project.directory / "first" / "baselines").exists()
    items = server.ask("GET", "/api/v1/baselines", token=token).json()["items"]
    assert [(item["name"], item["repeats"], item["user"]) for item in items] == [("main", 5, "mia"), ("main", 1, "mia")]
    assert [item["test"].startswith(f"test-bench-py-test-{n}-") for item, n in zip(items, ("one", "two"))] == [True] * 2

    options = ("--daskscope-compare", "main", "--daskscope-fail-over", "100%", f"--daskscope-server={server.url}")
    slower = project.run("--daskscope=second", *options, steps=800_000)
    assert slower.returncode == 1, slower.stdout + slower.stderr
    assert "Slower than baseline main: " in slower.stdout
    assert "FAILED test_bench.py::test_one" in slower.stdout
    assert "test_bench.py::test_two: Cannot tell noise from change" in slower.stdout

    # Whatever is in the database, it is checked before it is compared.
    run = {**measured_run(1).to_dict(), "format": 1}
    for item in items:
        server.ask("PUT", f"/api/v1/baselines/main/{item['test']}", {"runs": [run]}, token=token)
    monkeypatch.setattr("daskscope.server.routes.compare.store.find_runs", lambda *_: [{"format": 99}])
    damaged = project.run("--daskscope=third", "--daskscope-server", "--daskscope-compare", "main", "-k", "two")
    assert damaged.returncode == 1
    assert f"The baseline main on {server.url} cannot be read (format 99)." in damaged.stdout


def test_a_baseline_that_cannot_be_kept_fails_the_test(
    server: HostedServer, token: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(server, token, monkeypatch)
    monkeypatch.setattr(baselines, "MAX_BASELINES", 0)
    found = project.run("--daskscope=out", "--daskscope-server", "--daskscope-save", "main", "-k", "two")
    assert found.returncode == 1, found.stdout
    assert "Baseline main was not kept. The account has 0 of 0 baselines" in found.stdout


def test_a_server_that_cannot_be_used_stops_pytest_with_the_next_step(
    server: HostedServer, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*more: str) -> str:
        found = project.run("--daskscope=out", *more)
        assert (found.returncode, "test session starts" in found.stdout) == (4, False), found.stdout
        return found.stderr

    save = ("--daskscope-save", "main")
    assert "No daskscope server is configured." in refused("--daskscope-server", *save)
    assert "Sign in first" in refused(f"--daskscope-server={server.url}", *save)
    away = f"http://127.0.0.1:{free_port()}"
    assert f"The server {away} cannot be reached" in refused(f"--daskscope-server={away}", *save)
    assert "--daskscope-server needs --daskscope-save NAME or" in refused("--daskscope-server")
    assert "Write --daskscope-server=URL" in refused(*save, "--daskscope-server", "test_bench.py")
    sign_in(server, server.make_token("vera", "ours"), monkeypatch)
    assert "This needs the scope write; yours allows read. For CI, create a token" in refused(
        "--daskscope-server", *save
    )
