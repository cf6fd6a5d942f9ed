"""A recorder delivers everything exactly once, whatever a proxy or the server answered meanwhile."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from tests.helpers.hosted import HostedServer
from tests.helpers.http_proxy import HttpProxy
from tests.helpers.processes import Processes
from tests.helpers.server_process import ServerProcess
from tests.helpers.waiting import until

from daskscope import analytics
from daskscope.client.server import Server, download_recording
from daskscope.collector.delivery.outbox import FrameQueue, Outbox
from daskscope.collector.delivery.poster import poster
from daskscope.collector.delivery.sender import Sender
from daskscope.collector.delivery.spool import Spool
from daskscope.storage.base.vault import Vault
from daskscope.testing import make_columns
from daskscope.wire.encode import encode_body

Client: Any = distributed.Client

QUICK = {
    "DASK_DASKSCOPE__ANALYTICS__EVENTS__INTERVAL": "100ms",
    "DASK_DASKSCOPE__ANALYTICS__SAMPLES__INTERVAL": "500ms",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server for tests that record a cluster each."""
    server = ServerProcess(tmp_path_factory.mktemp("refusals") / "data")
    server.start()
    yield server
    assert server.stop() == 0


def preloaded(tmp_path: Path, url: str, secret: str, **constants: float) -> Processes:
    """Start a scheduler that records from its start, with other values of some constants of the poster, and a worker."""
    environment = {
        "DASK_DASKSCOPE__SERVER": f"{url}/?secret={secret}",
        "DASK_DASKSCOPE__SPOOL__DIRECTORY": str(tmp_path / "spool"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        **QUICK,
    }
    processes = Processes(tmp_path / "processes", environment=environment)
    patched = {f"daskscope.collector.delivery.poster.{name}": value for name, value in constants.items()}
    processes.scheduler("--preload", "daskscope.analytics", installed=True, constants=patched)
    processes.worker("worker", installed=True)
    return processes


def connected(processes: Processes) -> Any:
    client = Client(scheduler_file=str(processes.scheduler_file))
    client.wait_for_workers(1, timeout=30)
    return client


def run_tasks(client: Any, tasks: int) -> None:
    assert len(client.gather(client.map(abs, range(tasks), pure=False))) == tasks


def stored_tasks(url: str, token: str, client: Any) -> int:
    """Return how many tasks a server has of the client's cluster; -1 before it has the cluster."""
    items = Server(url, "", token).get("clusters", since="all")["items"]
    cluster = client.scheduler_info()["id"]
    return next((int(item["n_tasks"]) for item in items if item["id"] == cluster), -1)


def test_tasks_of_times_when_a_proxy_answered_arrive_exactly_once(tmp_path: Path, server: ServerProcess) -> None:
    answers = [(404, b"<html>default backend - 404"), (401, b"<html>sign in"), (413, b"<html>nginx"), (502, b"<html>")]
    with (
        HttpProxy(server.port) as proxy,
        preloaded(tmp_path, proxy.url, server.secret) as processes,
        connected(processes) as client,
    ):

        def arrive(tasks: int) -> None:
            until(lambda: stored_tasks(server.url, server.secret, client) == tasks, f"{tasks} tasks", 90)

        def refuse(answer: tuple[int, bytes]) -> None:
            before, proxy.answer = len(proxy.answered), answer
            run_tasks(client, 400)
            until(lambda: len(proxy.answered) >= before + 2, f"posts refused with {answer[0]}")
            run_tasks(client, 300)
            proxy.answer = None

        run_tasks(client, 100)
        arrive(100)
        for number, answer in enumerate(answers, 1):
            refuse(answer)
            arrive(100 + 700 * number)
        run_tasks(client, 50)
        arrive(150 + 700 * len(answers))
        assert "refuses the recording" not in processes.log("scheduler")


def test_tasks_of_a_time_when_a_proxy_hung_arrive_exactly_once(tmp_path: Path, server: ServerProcess) -> None:
    with (
        HttpProxy(server.port) as proxy,
        # A recorder waits a minute for a reply.
        preloaded(tmp_path, proxy.url, server.secret, TIMEOUT=3.0) as processes,
        connected(processes) as client,
    ):
        run_tasks(client, 100)
        until(lambda: stored_tasks(server.url, server.secret, client) == 100, "the first tasks")
        proxy.hang()
        run_tasks(client, 400)
        until(lambda: "the server is not available" in processes.log("scheduler"), "the line about the outage", 60)
        # The requests that hung are forwarded now, and those repeated since are duplicates.
        proxy.go_on()
        until(lambda: stored_tasks(server.url, server.secret, client) == 500, "all tasks", 90)
        run_tasks(client, 50)
        until(lambda: stored_tasks(server.url, server.secret, client) == 550, "the last tasks", 90)


def test_registering_again_revives_a_recorder_whose_token_was_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daskscope.server.caches.CACHE_US", 0)
    with HostedServer(tmp_path / "data", login=True) as server, Processes(tmp_path / "processes") as processes:
        server.make_account("ours", mia="member")
        laptop, other = server.make_token("mia", "ours"), server.make_token("mia", "ours")
        processes.scheduler()
        processes.worker("worker")
        settings = {"daskscope.server": server.url, "daskscope.spool.directory": str(tmp_path / "spool")}
        with connected(processes) as client, dask.config.set(settings):
            monkeypatch.setenv("DASKSCOPE_TOKEN", laptop)
            analytics.register(client)
            run_tasks(client, 100)
            until(lambda: stored_tasks(server.url, other, client) == 100, "the first tasks")
            (mine,) = [
                item["id"]
                for item in server.ask("GET", "/api/v1/tokens", token=other).json()["items"]
                if item["recorders"]
            ]
            assert server.ask("DELETE", f"/api/v1/tokens/{mine}", token=other).status == 200
            run_tasks(client, 200)
            until(lambda: "refuses the recording" in processes.log("scheduler"), "the refusal")
            run_tasks(client, 300)
            monkeypatch.setenv("DASKSCOPE_TOKEN", other)
            analytics.register(client)
            until(lambda: stored_tasks(server.url, other, client) == 600, "all tasks")


class Recorder:
    """The delivery half of a recorder: publishes rows and sends them."""

    def __init__(
        self, url: str, secret: str, directory: Path, *, queue_limit: int = 10**8, cluster: str = "cluster"
    ) -> None:
        self.outbox = Outbox(cluster, 1)
        self.queue = FrameQueue(queue_limit)
        self.outbox.subscribe("server", self.queue.put)
        self.sender = Sender(
            poster(url, secret),
            self.queue,
            Spool(directory, f"{cluster}-1", 10**9),
            first_delay=0.01,
            refused_delay=0.05,
        )
        self.publish("clusters", [{"cluster": cluster, "name": cluster, "seen_us": 1, "start_us": 1}])

    def publish(self, table: str, rows: list[dict[str, Any]]) -> None:
        self.outbox.publish(encode_body(table, make_columns(table, rows)))

    def finish(self) -> None:
        """Deliver everything once the server works, and stop."""
        until(lambda: not (self.sender.is_server_down or self.sender.refusal), "the first accepted body", 60)
        self.sender.stop(60.0)


def failures(number: int, *, rows: int = 1_000, length: int = 8_000) -> list[dict[str, Any]]:
    """Return failures whose texts take a hundredth of their length on the wire."""
    common = {"type": "E", "fingerprint": f"f{number}", "count": 1, "traceback": "t" * length}
    return [{**common, "time_us": number * rows + row + 1, "key": f"k-{number}-{row}"} for row in range(rows)]


@pytest.mark.parametrize("queue_limit", [10**8, 20_000], ids=["in memory", "on disk"])
@pytest.mark.parametrize("flags", [(), ("--max-body", "30000")], ids=["default", "small bodies"])
def test_a_backlog_above_every_limit_of_the_server_arrives_exactly_once(
    tmp_path: Path, queue_limit: int, flags: tuple[str, ...]
) -> None:
    server = ServerProcess(tmp_path / "data", *flags)
    server.start()
    server.kill()
    recorder = Recorder(server.url, server.secret, tmp_path / "spool", queue_limit=queue_limit)
    recorder.sender.start()
    for number in range(2_500):
        recorder.publish("events", [{"time_us": number + 1, "topic": f"t{number}"}])
    for number in range(12):
        recorder.publish("exceptions", failures(number))
    until(lambda: recorder.sender.is_server_down, "the outage")
    server.start()
    recorder.finish()
    assert (recorder.sender.left_out, recorder.sender.refusal) == ({}, "")
    stored = download_recording("cluster", url=f"{server.url}/?secret={server.secret}")
    assert sorted(stored["events"]["topic"]) == sorted(f"t{number}" for number in range(2_500))
    assert sorted(stored["exceptions"]["key"]) == sorted(
        f"k-{number}-{row}" for number in range(12) for row in range(1_000)
    )
    assert [(part.dropped, part.missing) for part in stored.completeness.values()] == [(0, 0)] * len(
        stored.completeness
    )
    assert server.stop() == 0


def test_a_batch_that_is_too_large_alone_is_left_out_and_counted(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--max-body", "30000")
    server.start()
    recorder = Recorder(server.url, server.secret, tmp_path / "spool")
    for number in range(5):
        detail = secrets.token_hex(40_000 if number == 2 else 100)
        recorder.publish("events", [{"time_us": number, "topic": f"t{number}", "detail": detail}, {"time_us": number}])
    recorder.sender.start()
    recorder.finish()
    assert recorder.sender.left_out == {"events": 2}
    stored = download_recording("cluster", url=f"{server.url}/?secret={server.secret}")
    assert [topic for topic in stored["events"]["topic"] if topic] == ["t0", "t1", "t3", "t4"]
    assert (stored["events"].rows, stored.completeness["events"].missing) == (8, 2)
    assert server.stop() == 0


def test_a_master_key_that_does_not_fit_costs_no_data(tmp_path: Path) -> None:
    with HostedServer(tmp_path / "data") as server:
        right = server.services.archive.vault
        server.services.archive.vault = Vault([b"x" * 32])
        recorder = Recorder(server.url, server.secret, tmp_path / "spool")
        recorder.publish("exceptions", failures(0, rows=10, length=100))
        recorder.sender.start()
        until(lambda: recorder.sender.is_server_down, "the failure of the server")
        reply = server.send(b"".join(sealed.frame for body in recorder.sender._in_flight for sealed in body))
        assert (reply.status, reply.code) == (500, "internal")
        server.services.archive.vault = right
        recorder.finish()
        assert (recorder.sender.left_out, recorder.sender.refusal) == ({}, "")
        assert download_recording("cluster", url=f"{server.url}/?secret={server.secret}")["exceptions"].rows == 10
