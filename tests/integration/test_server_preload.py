"""A scheduler that records to a server by preload: the server may start later, and the scheduler may be killed."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest
from tests.helpers.processes import Processes
from tests.helpers.server_process import ServerProcess
from tests.helpers.services import free_port
from tests.helpers.waiting import until

from daskscope.client.server import Server

Client: Any = distributed.Client


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that is not started yet, with a known URL."""
    server = ServerProcess(tmp_path / "data", "--lost-after", "5")
    server.port = free_port()
    yield server
    if server.process is not None and server.process.poll() is None:
        server.kill()


@pytest.fixture
def processes(tmp_path: Path, server: ServerProcess) -> Iterator[Processes]:
    environment = {"DASK_DASKSCOPE__SERVER": server.url, "DASK_DASKSCOPE__SPOOL__DIRECTORY": str(tmp_path / "spool")}
    with Processes(tmp_path / "processes", environment=environment) as processes:
        yield processes


def run_tasks(processes: Processes, tasks: int) -> None:
    with Client(scheduler_file=str(processes.scheduler_file)) as client:
        client.wait_for_workers(1, timeout=30)
        # A built-in function: the worker processes cannot import this module.
        assert sum(client.gather(client.map(abs, range(tasks), pure=False))) == tasks * (tasks - 1) // 2


def only_cluster(server: ServerProcess) -> dict[str, Any]:
    clusters = Server(server.url, token=server.secret).get("clusters")["items"]
    return dict(clusters[0]) if clusters else {}


def computation_states(server: ServerProcess) -> set[str]:
    client = Server(server.url, token=server.secret)
    found = client.get("computations", cluster_id=only_cluster(server)["id"])["items"]
    return {computation["state"] for computation in found}


def test_a_scheduler_delivers_everything_once_its_server_is_up(server: ServerProcess, processes: Processes) -> None:
    processes.scheduler("--preload", "daskscope.analytics", installed=True)
    processes.worker("worker")
    run_tasks(processes, 200)
    until(lambda: "the server is not available" in processes.log("scheduler"), "the one line about the outage")

    server.start()
    until(lambda: only_cluster(server).get("n_tasks") == 200, "the delivery of all tasks", 90)
    run_tasks(processes, 50)
    until(lambda: only_cluster(server)["n_tasks"] == 250, "the delivery of the later tasks")

    assert processes.terminate("scheduler") == 0
    until(lambda: only_cluster(server)["state"] == "finished", "the end of the cluster")
    cluster = only_cluster(server)
    assert (cluster["reason"], cluster["n_tasks"], cluster["dropped"]) == ("closed", 250, {})
    lines = [line for line in processes.log("scheduler").splitlines() if "daskscope:" in line]
    assert len([line for line in lines if "is not available" in line]) == 1
    assert server.stop() == 0


def test_a_killed_scheduler_is_lost_and_keeps_what_it_sent(server: ServerProcess, processes: Processes) -> None:
    server.start()
    processes.scheduler("--preload", "daskscope.analytics", installed=True)
    processes.worker("worker")
    run_tasks(processes, 100)
    until(lambda: only_cluster(server).get("n_tasks") == 100, "the delivery of all tasks")
    until(lambda: computation_states(server) == {"finished"}, "the delivery of the computation's end")
    assert only_cluster(server)["state"] in ("running", "idle")
    # Nobody named it.
    assert re.fullmatch(rf"{re.escape(socket.gethostname())} \d{{4}}-\d\d-\d\d \d\d:\d\d", only_cluster(server)["name"])

    processes.kill("scheduler")
    until(lambda: only_cluster(server)["state"] == "lost", "the lost cluster")
    cluster = only_cluster(server)
    assert cluster["n_tasks"] == 100
    assert "no message for" in cluster["reason"]
    assert computation_states(server) == {"finished"}
    assert server.stop() == 0
