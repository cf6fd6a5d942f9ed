"""Whatever fails in the recorder, the computation goes on, its result is right, and its logs stay quiet."""

from __future__ import annotations

import http.server
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest

import daskscope
import daskscope.analytics
from daskscope.collector.bundle import NAME
from daskscope.collector.guard import LIMIT

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client

PORT_NOBODY_LISTENS_ON = "http://127.0.0.1:9"
ONE_WORKER = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None, "memory_limit": 0}


class Logged(logging.Handler):
    """Everything logged in this process, which is also the scheduler's."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def of_ours(self) -> list[str]:
        return [
            record.getMessage() for record in self.records if record.name == NAME and record.levelno >= logging.WARNING
        ]

    def of_dasks(self) -> list[str]:
        """What Dask says about plugins and handlers that fail."""
        return [
            record.getMessage()
            for record in self.records
            if record.name.startswith("distributed")
            and record.exc_info
            and (record.levelno >= logging.WARNING or "Plugin failed" in str(record.msg))
        ]


@pytest.fixture(autouse=True)
def production(monkeypatch: pytest.MonkeyPatch, heard: Any) -> None:
    monkeypatch.setenv("DASKSCOPE_STRICT", "0")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[__name__.count(".")]))
    heard.may_fail = True


@pytest.fixture
def logged() -> Iterator[Logged]:
    handler = Logged()
    loggers = [logging.getLogger("distributed"), logging.getLogger(NAME)]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    yield handler
    for logger, level in zip(loggers, levels, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


def inc(number: int) -> int:
    return number + 1


def fail_once(path: str) -> str:
    if not os.path.exists(path):  # noqa: PTH110
        with open(path, "w"):  # noqa: PTH123
            raise ValueError("the first time")
    return "fine"


def until(condition: Callable[[], Any], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def plugin_of(cluster: Any) -> Any:
    return cluster.scheduler.plugins[NAME]


def work(cluster: Any, client: Any, tmp_path: Path) -> None:
    """Everything that calls a hook; the results must be right."""
    assert client.gather(client.map(inc, range(50), pure=False)) == list(range(1, 51))
    assert client.submit(fail_once, str(tmp_path / f"{time.time_ns()}"), retries=2).result() == "fine"
    with pytest.raises(ZeroDivisionError):
        client.submit(divmod, 1, 0, pure=False).result()
    client.log_event("all", {"action": "mine", "value": 1})
    with Client(cluster, set_as_default=False) as other:
        assert other.submit(inc, 1, pure=False).result() == 2
    assert client.run_on_scheduler(lambda: 1) == 1


@pytest.fixture(scope="module")
def threads() -> Iterator[Any]:
    """A cluster in this process: faults are put into its scheduler and its workers alike."""
    with LocalCluster(processes=False, **ONE_WORKER) as cluster:
        yield cluster


@contextmanager
def recording(client: Any, tmp_path: Path, **switches: Any) -> Iterator[Any]:
    fast = {"flush_interval": 0.1, "sample_interval": 0.1, "state_interval": 0.1, "push_interval": 0.2}
    with daskscope.record(tmp_path / "run.daskscope", client, **{**fast, **switches}) as made:
        yield made


def broken(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("put in by a test")


#: What is broken, as the path from the plugin to the method that fails.
FAULTS = {
    "transition": "recorder.failures.failed",
    "update_graph": "recorder.graph",
    "add_worker": "recorder.members.joined",
    "remove_worker": "recorder.members.left",
    "add_client": "recorder.members.connected",
    "remove_client": "recorder.members.disconnected",
    "log_event": "recorder.event",
    "restart": "recorder.rows.add",
    "task-erred wrapper": "recorder.before_task_erred",
    "heartbeat wrapper": "recorder.activities.heartbeat",
    "samples tick": "recorder.tick_samples",
    "state tick": "recorder.begin_round",
    "rounds": "recorder.waves.round",
    "flush tick": "recorder.rotate",
    "handler": "handler.on_push",
    "agent start": "agents._run",
    "rotation": "recorder.failures.ripen",
    "members": "recorder.members.event",
    "writer": "outbox.publish",
}


def put_fault(plugin: Any, path: str) -> None:
    owner, names = plugin, path.split(".")
    for name in names[:-1]:
        owner = getattr(owner, name)
    setattr(owner, names[-1], broken)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_one_place_harms_nobody(fault: str, threads: Any, tmp_path: Path, logged: Logged) -> None:
    with Client(threads) as client:
        with recording(client, tmp_path):
            until(lambda: NAME in threads.scheduler.plugins and hasattr(plugin_of(threads), "recorder"))
            plugin = plugin_of(threads)
            put_fault(plugin, FAULTS[fault])
            work(threads, client, tmp_path)
            address = next(iter(threads.scheduler.workers))
            for hook, arguments in {"add_worker": (), "remove_worker": (), "restart": None}.items():
                call = getattr(plugin, hook)
                call(threads.scheduler) if arguments is None else call(threads.scheduler, "tcp://nobody:1")
            assert address in threads.scheduler.workers
        assert client.submit(inc, 10, pure=False).result() == 11
        until(lambda: NAME not in threads.scheduler.plugins)
        assert NAME not in threads.scheduler.handlers
    assert logged.of_dasks() == []
    lines = logged.of_ours()
    assert len(lines) == len(set(lines))
    # One for each place that the fault reaches: adding a row is part of most of them.
    assert len(lines) <= (10 if fault == "restart" else 6)


def test_the_hot_path_itself_fails(threads: Any, tmp_path: Path, logged: Logged) -> None:
    with Client(threads) as client:
        with recording(client, tmp_path):
            plugin = plugin_of(threads)
            # The scheduler's tasks are looked up in the hot path; here nothing is found.
            plugin.recorder.executions.transition("k", "processing", "memory")
            for _ in range(3):
                work(threads, client, tmp_path)
            assert plugin.guard.failures == 1
        assert client.submit(inc, 10, pure=False).result() == 11
    assert logged.of_dasks() == []
    assert sum("transition failed" in line for line in logged.of_ours()) == 1


def test_the_breaker_takes_the_hooks_out(threads: Any, tmp_path: Path, logged: Logged) -> None:
    scheduler = threads.scheduler
    original = scheduler.stream_handlers["task-erred"]
    with Client(threads) as client:
        with recording(client, tmp_path) as made:
            plugin = plugin_of(threads)
            assert scheduler.stream_handlers["task-erred"] is not original
            assert "heartbeat" in vars(scheduler.extensions["spans"])
            put_fault(plugin, "recorder.graph")
            for number in range(LIMIT):
                assert client.submit(inc, number, pure=False).result() == number + 1
            until(lambda: plugin.guard.open)
            assert scheduler.stream_handlers["task-erred"] == original
            assert "heartbeat" not in vars(scheduler.extensions["spans"])
            assert plugin.transition.__name__ == "_nothing"
            until(lambda: plugin._task.done())
            failures = plugin.guard.failures
            work(threads, client, tmp_path)
            assert plugin.guard.failures == failures
        assert made.problem == ""
        assert "collector-disabled" in list(made.recording["events"]["kind"])
        until(lambda: NAME not in scheduler.plugins)
        # And another recording begins anew.
        with recording(client, tmp_path / "..") as made:
            assert client.submit(inc, 1, pure=False).result() == 2
        assert made.recording["tasks"].rows == 1
    assert logged.of_dasks() == []
    assert len(logged.of_ours()) == 2


@pytest.mark.parametrize("part", ["_set_up", "subscribe", "_ticks"])
def test_a_recorder_that_cannot_start_leaves_the_scheduler_alone(
    part: str, tmp_path: Path, logged: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    from daskscope.collector.plugin import ClusterPlugin
    from daskscope.collector.settings import Settings

    monkeypatch.setattr(ClusterPlugin, part, broken)
    with LocalCluster(processes=False, **ONE_WORKER) as cluster, Client(cluster) as client:
        scheduler = cluster.scheduler
        original = scheduler.stream_handlers["task-erred"]
        plugin = ClusterPlugin(Settings(directory=str(tmp_path)))

        async def preload() -> None:
            await plugin.start(scheduler)
            scheduler.add_plugin(plugin, name="left behind")

        client.sync(preload)
        assert plugin.problem
        assert NAME not in scheduler.handlers
        assert scheduler.stream_handlers["task-erred"] == original
        work(cluster, client, tmp_path)
    assert logged.of_dasks() == []
    assert len(logged.of_ours()) == 1


@pytest.fixture(scope="module")
def usual_close() -> float:
    """How long a cluster takes to close that nobody records."""
    cluster = LocalCluster(processes=True, **ONE_WORKER)
    with Client(cluster) as client:
        assert client.submit(inc, 1).result() == 2
    began = time.monotonic()
    cluster.close()
    return time.monotonic() - began


@pytest.fixture(scope="module")
def refusing() -> Iterator[str]:
    """The address of a server that gives out tokens, and then takes nothing."""

    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if not self.path.endswith("/ingest-tokens"):
                self.send_error(401)
                return
            answer = b'{"token": "any", "account": "any"}'
            self.send_response(201)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("trouble", ["unreachable", "refusing", "full disk", "both"])
def test_a_cluster_registered_for_its_life_closes_in_time(
    trouble: str, tmp_path: Path, logged: Logged, usual_close: float, refusing: str
) -> None:
    (tmp_path / "in-the-way").write_text("")
    nowhere = str(tmp_path / "in-the-way" / "below")
    settings = {
        "daskscope.server": {"refusing": refusing, "full disk": None}.get(trouble, PORT_NOBODY_LISTENS_ON),
        "daskscope.directory": nowhere if trouble in ("full disk", "both") else None,
        "daskscope.spool.directory": nowhere if trouble == "both" else str(tmp_path / "spool"),
    }
    with dask.config.set(settings):
        cluster = LocalCluster(processes=True, **ONE_WORKER)
        with Client(cluster) as client:
            daskscope.analytics.register(client)
            assert client.gather(client.map(inc, range(100))) == list(range(1, 101))
            until(lambda: logged.of_ours())
        began = time.monotonic()
        cluster.close()
        took = time.monotonic() - began
    assert took <= 3 + 3 * usual_close + 5
    assert logged.of_dasks() == []
    causes = 1 if trouble != "both" else 3
    assert 1 <= len(logged.of_ours()) <= causes
    if trouble in ("unreachable", "refusing"):
        assert daskscope.open_recording(tmp_path / "spool")["tasks"].rows == 100


@pytest.mark.parametrize("fault", ["recorder.end", "settle", "flush_rows", "hooks.remove", "_stop_threads"])
def test_a_fault_while_closing_harms_nobody(fault: str, tmp_path: Path, logged: Logged, usual_close: float) -> None:
    with dask.config.set({"daskscope.directory": str(tmp_path / "life")}):
        cluster = LocalCluster(processes=False, **ONE_WORKER)
        with Client(cluster) as client:
            daskscope.analytics.register(client)
            until(lambda: hasattr(plugin_of(cluster), "recorder"))
            assert client.submit(inc, 1).result() == 2
            put_fault(plugin_of(cluster), fault)
        began = time.monotonic()
        cluster.close()
        assert time.monotonic() - began <= 3 + 3 * usual_close + 5
    assert logged.of_dasks() == []
    assert len(logged.of_ours()) <= 2


class Unfriendly:
    """Cannot be written as text."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


def test_events_of_users_harm_nobody(threads: Any, tmp_path: Path, logged: Logged) -> None:
    with Client(threads) as client:
        with recording(client, tmp_path, topics=("*",)) as made:
            for _ in range(LIMIT + 5):
                client.log_event("mine", {"blob": b"x" * 100_000, "keys": list(range(10_000))})
                client.log_event("daskscope-metric", {"value": "no number"})
                client.log_event("daskscope-window", ["nonsense"])
                client.log_event("all", {"action": "remove-worker", "worker": ["not", "hashable"]})
            client.log_event("mine", "x" * 5_000_000)
            threads.scheduler.log_event("mine", Unfriendly())
            assert client.submit(inc, 1, pure=False).result() == 2
            assert plugin_of(threads).guard.failures == 0
        assert made.recording["events"].rows >= LIMIT
    assert logged.of_ours() == []


def test_a_scheduler_closed_in_the_middle_of_work(tmp_path: Path, logged: Logged, usual_close: float) -> None:
    cluster = LocalCluster(processes=True, **ONE_WORKER)
    client = Client(cluster)
    with daskscope.record(tmp_path / "run.daskscope", client) as made:
        futures = client.map(time.sleep, [0.5] * 40, pure=False)
        until(lambda: any(worker.processing for worker in cluster.scheduler.workers.values()))
        until(lambda: made.path.stat().st_size > 100)
        began = time.monotonic()
        cluster.close()
        took = time.monotonic() - began
        del futures
    client.close()
    assert took <= 3 + 3 * usual_close + 5
    assert made.problem
    assert made.recording["clusters"].rows == 1
    assert logged.of_dasks() == []
    assert len([line for line in logged.of_ours() if "ends early" in line]) == 1
    assert len(logged.of_ours()) == 1


def test_a_worker_killed_in_the_middle_of_work(tmp_path: Path, logged: Logged) -> None:
    with (
        LocalCluster(processes=True, **{**ONE_WORKER, "n_workers": 2}) as cluster,
        Client(cluster) as client,
        daskscope.record(tmp_path / "run.daskscope", client),
    ):
        futures = client.map(inc, range(200))
        os.kill(next(iter(cluster.scheduler.workers.values())).pid, signal.SIGKILL)
        assert client.gather(futures) == list(range(1, 201))
    assert logged.of_ours() == []
