"""A preloaded scheduler does not keep the token it was given, where any client could read it."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import dask
import distributed
import pytest
from tests.helpers.hosted import HostedServer
from tests.helpers.http_proxy import HttpProxy
from tests.helpers.processes import Processes
from tests.helpers.services import free_port
from tests.helpers.waiting import until

from daskscope.cli.main import main
from daskscope.client.token_exchange import CREATE

Client: Any = distributed.Client


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data of a server with an account."""
    with HostedServer(tmp_path / "data", login=True) as server:
        server.make_account("ours", mia="member")
    return tmp_path / "data"


def make_token(data: Path, *scopes: str) -> str:
    with HostedServer(data, login=True) as server:
        return server.make_token("mia", "ours", *scopes)


def start(tmp_path: Path, port: int, token: str, spool: Path | None = None) -> Processes:
    environment = {
        "DASK_DASKSCOPE__SERVER": f"http://127.0.0.1:{port}",
        "DASKSCOPE_TOKEN": token,
        # Nobody should do this, and it is in Dask's configuration then.
        "DASK_DASKSCOPE__TOKEN": token,
    }
    return start_with(tmp_path, environment, spool)


def start_with(tmp_path: Path, environment: dict[str, str], spool: Path | None = None) -> Processes:
    spooled = {"DASK_DASKSCOPE__SPOOL__DIRECTORY": str(spool or tmp_path / "spool")}
    processes = Processes(tmp_path / "processes", environment={**spooled, **environment})
    processes.scheduler("--preload", "daskscope.analytics", installed=True)
    # The worker belongs to the cluster, but must not have the token either.
    processes.environment = {}
    processes.worker("worker")
    return processes


def connected(processes: Processes) -> Any:
    client = Client(scheduler_file=str(processes.scheduler_file))
    client.wait_for_workers(1, timeout=30)
    return client


def places_with(client: Any, token: str) -> list[str]:
    """Search the scheduler's process as any of its clients can, and return where the token is."""

    def search(reversed_token: str) -> list[str]:
        import gc
        import os
        import pathlib

        import dask.config

        token = reversed_token[::-1]
        places = [f"environment {name}" for name, value in os.environ.items() if token in value]
        places += ["configuration"] * (token in str(dask.config.config))
        places += ["/proc/self/environ"] * (token.encode() in pathlib.Path("/proc/self/environ").read_bytes())
        places += ["command line"] * (token.encode() in pathlib.Path("/proc/self/cmdline").read_bytes())
        gc.collect()
        # Dicts and tuples of texts alone are not tracked, but found through what refers to them.
        pending = [item for item in gc.get_objects() if item is not places]
        while pending:
            holder = pending.pop()
            for item in gc.get_referents(holder):
                if type(item) in (dict, tuple) and not gc.is_tracked(item):
                    pending.append(item)
                elif item is not token and (
                    (type(item) is str and token in item) or (type(item) is bytes and token.encode() in item)
                ):
                    places.append(f"{type(holder).__name__}: {str(holder)[:200]}")
        return places

    return list(client.run_on_scheduler(search, token[::-1]))


def counted(server: HostedServer, token: str) -> int:
    items = server.ask("GET", "/api/v1/clusters", token=token).json()["items"]
    return int(items[0]["n_tasks"]) if items else -1


def run_tasks(client: Any, tasks: int) -> None:
    # A built-in function: the worker processes cannot import this module.
    assert len(client.gather(client.map(abs, range(tasks), pure=False))) == tasks


def test_a_client_does_not_find_the_token_in_the_scheduler(tmp_path: Path, data: Path, port: int) -> None:
    token, reader = make_token(data, "ingest"), make_token(data, "read")
    with (
        HostedServer(data, login=True, port=port) as server,
        start(tmp_path, port, token) as processes,
        connected(processes) as client,
    ):
        assert places_with(client, token) == []
        run_tasks(client, 20)
        until(lambda: counted(server, reader) == 20, "the delivery of all tasks")
        assert places_with(client, token) == []


@pytest.mark.parametrize("configured", ["printed URL", "plain URL"])
def test_a_client_does_not_find_the_secret_of_a_server_without_sign_in(tmp_path: Path, configured: str) -> None:
    with HostedServer(tmp_path / "local") as server:
        url = server.entry if configured == "printed URL" else server.url
        with (
            start_with(tmp_path, {"DASK_DASKSCOPE__SERVER": url}) as processes,
            connected(processes) as client,
        ):
            assert places_with(client, server.secret) == []
            run_tasks(client, 20)
            until(lambda: counted(server, server.secret) == 20, "the delivery of all tasks")
            assert places_with(client, server.secret) == []


def test_the_search_finds_a_token_that_is_there(tmp_path: Path, data: Path, port: int) -> None:
    token, other = make_token(data, "ingest"), make_token(data, "ingest")

    def keep(reversed_token: str, dask_scheduler: Any) -> None:
        dask_scheduler.extensions["kept"] = {"token": reversed_token[::-1]}

    with (
        HostedServer(data, login=True, port=port),
        start(tmp_path, port, token) as processes,
        connected(processes) as client,
    ):
        client.run_on_scheduler(keep, other[::-1])
        assert len(places_with(client, other)) == 1


def test_a_server_that_comes_later_gets_everything_and_then_the_token_is_gone(
    tmp_path: Path, data: Path, port: int
) -> None:
    token, reader = make_token(data, "ingest"), make_token(data, "read")
    with start(tmp_path, port, token) as processes, connected(processes) as client:
        run_tasks(client, 20)
        until(lambda: "the server is not available" in processes.log("scheduler"), "the line about the outage")
        places = places_with(client, token)
        assert places
        assert not [place for place in places if place.startswith(("environment", "configuration", "/proc", "command"))]
        with HostedServer(data, login=True, port=port) as server:
            until(lambda: counted(server, reader) == 20, "the delivery of all tasks", 90)
            assert places_with(client, token) == []


def test_a_page_of_a_proxy_at_the_start_does_not_cost_the_recording(tmp_path: Path, data: Path) -> None:
    token, reader = make_token(data, "ingest"), make_token(data, "read")
    with HostedServer(data, login=True) as server, HttpProxy(server.port) as proxy:
        proxy.answer = 404, b"<html>default backend - 404"
        port = int(proxy.url.rpartition(":")[2])
        with start(tmp_path, port, token) as processes, connected(processes) as client:
            run_tasks(client, 20)
            until(lambda: len(proxy.answered) > 2, "refused exchanges")
            proxy.answer = None
            until(lambda: counted(server, reader) == 20, "the delivery of all tasks", 90)
            assert places_with(client, token) == []


@pytest.mark.parametrize("is_up", [True, False], ids=["up", "down"])
def test_a_token_that_allows_more_is_refused(tmp_path: Path, data: Path, port: int, *, is_up: bool) -> None:
    token = make_token(data, "ingest", "read")

    def is_refused(processes: Processes) -> bool:
        log = processes.log("scheduler")
        return "the scopes ingest, read" in log and CREATE in log

    with contextlib.ExitStack() as stack:
        server = HostedServer(data, login=True, port=port)
        if is_up:
            stack.enter_context(server)
        processes = stack.enter_context(start(tmp_path, port, token))
        client = stack.enter_context(connected(processes))
        if not is_up:
            stack.enter_context(server)
        until(lambda: is_refused(processes), "the refusal", 90)
        until(lambda: places_with(client, token) == [], "the end of the token")
        run_tasks(client, 5)
        assert counted(server, token) == -1


def test_a_cluster_that_lived_while_the_server_was_down_is_delivered_by_the_next_one(
    tmp_path: Path, data: Path, port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token, reader = make_token(data, "ingest"), make_token(data, "read")
    with start(tmp_path / "first", port, token, tmp_path / "spool") as processes:
        with connected(processes) as client:
            # More than one body, so that the server hears of the cluster before it has all of it.
            run_tasks(client, 30)
            until(lambda: "the server is not available" in processes.log("scheduler"), "the outage")
            run_tasks(client, 40)
        assert processes.terminate("scheduler") == 0

    with HostedServer(data, login=True, port=port) as server:
        monkeypatch.setenv("DASKSCOPE_TOKEN", reader)
        with dask.config.set({"daskscope.server": server.url, "daskscope.spool.directory": str(tmp_path / "spool")}):
            assert main(["ls"]) == 0
            said = capsys.readouterr().err
            assert re.search(r"data of 1 cluster waits in .* \(\d.*B\): the next cluster that is recorded", said), said
            with start(tmp_path / "second", port, token, tmp_path / "spool") as processes:
                with connected(processes) as client:
                    run_tasks(client, 5)
                until(lambda: tasks_of(server, reader) == [5, 70], "the delivery of the earlier cluster", 60)
                # While the second cluster runs: it is killed, and may leave data as well.
                until(lambda: main(["ls"]) == 0 and "waits in" not in capsys.readouterr().err, "the end of the wait")


def tasks_of(server: HostedServer, token: str) -> list[int]:
    return sorted(item["n_tasks"] for item in server.ask("GET", "/api/v1/clusters", token=token).json()["items"])
