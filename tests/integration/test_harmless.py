"""When anything fails in the recorder, the computation continues, its result is right, and its logs stay quiet."""

from __future__ import annotations

import asyncio
import http.server
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from tests.helpers.waiting import until

import daskscope
import daskscope.analytics
from daskscope.client.server import Server
from daskscope.collector.bundle import NAME
from daskscope.collector.guard import MAX_FAILURES
from daskscope.collector.scheduler.rpc import is_recorded

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client

CLOSED_PORT = "http://127.0.0.1:9"
ONE_WORKER = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None, "memory_limit": 0}


class Logged(logging.Handler):
    """Keeps everything logged in this process, which is also the scheduler's."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def by_daskscope(self) -> list[str]:
        return [
            record.getMessage() for record in self.records if record.name == NAME and record.levelno >= logging.WARNING
        ]

    def by_dask(self) -> list[str]:
        """Return Dask's lines about failed plugins and handlers."""
        return [
            record.getMessage()
            for record in self.records
            if record.name.startswith("distributed")
            and record.exc_info
            and (record.levelno >= logging.WARNING or "Plugin failed" in str(record.msg))
        ]


@pytest.fixture(autouse=True)
def production(monkeypatch: pytest.MonkeyPatch, heard: Any) -> Iterator[None]:
    monkeypatch.setenv("DASKSCOPE_STRICT", "0")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[__name__.count(".")]))
    heard.may_fail = True
    # Forked workers would have the environment of the first test.
    with dask.config.set({"distributed.worker.multiprocessing-method": "spawn"}):
        yield


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


def plugin_of(cluster: Any) -> Any:
    return cluster.scheduler.plugins[NAME]


def work(cluster: Any, client: Any, tmp_path: Path) -> None:
    """Do work that calls every hook, and check the results."""
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
    """A cluster in this process, so that a test can break its scheduler and workers."""
    with LocalCluster(processes=False, **ONE_WORKER) as cluster:
        yield cluster


@contextmanager
def recording(client: Any, tmp_path: Path, **switches: Any) -> Iterator[Any]:
    fast = {"flush_interval": 0.1, "sample_interval": 0.1, "state_interval": 0.1, "push_interval": 0.2}
    with daskscope.record(tmp_path / "run.daskscope", client, **{**fast, **switches}) as made:
        yield made


def broken(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("put in by a test")


#: The method that fails, as a path from the plugin.
FAULTS = {
    "transition": "recorder.failures.add",
    "update_graph": "recorder.graph",
    "add_worker": "recorder.members.add_worker",
    "remove_worker": "recorder.members.remove_worker",
    "add_client": "recorder.members.add_client",
    "remove_client": "recorder.members.remove_client",
    "log_event": "recorder.event",
    "restart": "recorder.rows.add",
    "task-erred wrapper": "recorder.before_task_erred",
    "heartbeat wrapper": "recorder.activities.add_heartbeat",
    "samples tick": "recorder.tick_samples",
    "state tick": "recorder.begin_round",
    "rounds": "recorder.computations.write_changes",
    "flush tick": "recorder.rotate",
    "handler": "rpc.on_push",
    "agent start": "agents._run",
    "failures": "recorder.failures.flush_ready",
    "members": "recorder.members.note_event",
    "encoder": "outbox.publish",
}


def put_fault(plugin: Any, path: str) -> None:
    owner, names = plugin, path.split(".")
    for name in names[:-1]:
        owner = getattr(owner, name)
    setattr(owner, names[-1], broken)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_one_place_does_no_harm(fault: str, threads: Any, tmp_path: Path, logged: Logged) -> None:
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
        until(lambda: not is_recorded(threads.scheduler))
    assert logged.by_dask() == []
    lines = logged.by_daskscope()
    assert len(lines) == len(set(lines))
    # One line for each place that the fault reaches: most of them add rows.
    assert len(lines) <= (10 if fault == "restart" else 6)


def test_a_recorder_that_has_left_still_answers(threads: Any, tmp_path: Path, logged: Logged) -> None:
    """A client may ask just after it left; without a handler, distributed logs a traceback."""
    with Client(threads) as client:
        with recording(client, tmp_path):
            assert client.submit(inc, 1, pure=False).result() == 2
        until(lambda: not is_recorded(threads.scheduler))
        reply = client.sync(client.scheduler.daskscope, action="hello", owner="late")
        assert reply["status"] == "leaving"
        # The next recording starts at once.
        with recording(client, tmp_path):
            assert is_recorded(threads.scheduler)
    assert logged.by_dask() == []


def test_the_hot_path_itself_fails(threads: Any, tmp_path: Path, logged: Logged) -> None:
    with Client(threads) as client:
        with recording(client, tmp_path):
            plugin = plugin_of(threads)
            # The hot path looks up the scheduler's tasks; here it finds none.
            plugin.recorder.executions.transition("k", "processing", "memory")
            for _ in range(3):
                work(threads, client, tmp_path)
            assert plugin.guard.failures == 1
        assert client.submit(inc, 10, pure=False).result() == 11
    assert logged.by_dask() == []
    assert sum("transition failed" in line for line in logged.by_daskscope()) == 1


def test_the_breaker_removes_the_patches(threads: Any, tmp_path: Path, logged: Logged) -> None:
    scheduler = threads.scheduler
    original = scheduler.stream_handlers["task-erred"]
    with Client(threads) as client:
        with recording(client, tmp_path) as made:
            plugin = plugin_of(threads)
            assert scheduler.stream_handlers["task-erred"] is not original
            assert "heartbeat" in vars(scheduler.extensions["spans"])
            put_fault(plugin, "recorder.graph")
            for number in range(MAX_FAILURES):
                assert client.submit(inc, number, pure=False).result() == number + 1
            until(lambda: plugin.guard.is_open)
            assert scheduler.stream_handlers["task-erred"] == original
            assert "heartbeat" not in vars(scheduler.extensions["spans"])
            assert plugin.transition.__name__ == "_do_nothing"
            until(lambda: plugin._task.done())
            failures = plugin.guard.failures
            work(threads, client, tmp_path)
            assert plugin.guard.failures == failures
        assert made.problem == ""
        assert "collector-disabled" in list(made.recording["events"]["kind"])
        until(lambda: NAME not in scheduler.plugins)
        # And a new recording can start.
        with recording(client, tmp_path / "..") as made:
            assert client.submit(inc, 1, pure=False).result() == 2
        assert made.recording["tasks"].rows == 1
    assert logged.by_dask() == []
    assert len(logged.by_daskscope()) == 2


@pytest.mark.parametrize("part", ["_set_up", "subscribe", "_ticks"])
def test_a_recorder_that_cannot_start_leaves_the_scheduler_alone(
    part: str, tmp_path: Path, logged: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    from daskscope.collector.scheduler.plugin import ClusterPlugin
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
    assert logged.by_dask() == []
    assert len(logged.by_daskscope()) == 1


@pytest.fixture(autouse=True)
def no_earlier_recorder(request: pytest.FixtureRequest) -> None:
    """Wait until the recorder of the test before has left the shared cluster, which may take a moment after a fault."""
    if "threads" in request.fixturenames:
        scheduler = request.getfixturevalue("threads").scheduler
        until(lambda: NAME not in scheduler.plugins and not is_recorded(scheduler))


@pytest.fixture(scope="module")
def usual_close() -> float:
    """Return how long a cluster that is not recorded takes to close."""
    cluster = LocalCluster(processes=True, **ONE_WORKER)
    with Client(cluster) as client:
        assert client.submit(inc, 1).result() == 2
    began = time.monotonic()
    cluster.close()
    return time.monotonic() - began


@pytest.fixture(scope="module")
def refusing() -> Iterator[str]:
    """Return the address of a server that issues tokens, and then refuses every batch."""

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
    trouble: str, tmp_path: Path, logged: Logged, usual_close: float, refusing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trouble in ("unreachable", "both"):
        # It was there when the cluster was registered.
        monkeypatch.setattr(Server, "call", lambda *_, **__: {"token": "any", "account": "any"})
    (tmp_path / "in-the-way").write_text("")
    nowhere = str(tmp_path / "in-the-way" / "below")
    settings = {
        "daskscope.server": {"refusing": refusing, "full disk": None}.get(trouble, CLOSED_PORT),
        "daskscope.directory": nowhere if trouble in ("full disk", "both") else None,
        "daskscope.spool.directory": nowhere if trouble == "both" else str(tmp_path / "spool"),
    }
    with dask.config.set(settings):
        cluster = LocalCluster(processes=True, **ONE_WORKER)
        with Client(cluster) as client:
            daskscope.analytics.register(client)
            assert client.gather(client.map(inc, range(100))) == list(range(1, 101))
            until(lambda: logged.by_daskscope())
        began = time.monotonic()
        cluster.close()
        took = time.monotonic() - began
    assert took <= 3 + 3 * usual_close + 5
    assert logged.by_dask() == []
    causes = 1 if trouble != "both" else 3
    assert 1 <= len(logged.by_daskscope()) <= causes
    if trouble in ("unreachable", "refusing"):
        assert daskscope.open_recording(tmp_path / "spool")["tasks"].rows == 100


@pytest.mark.parametrize("fault", ["recorder.end", "settle", "flush_rows", "patches.remove", "_stop_threads"])
def test_a_fault_while_closing_does_no_harm(fault: str, tmp_path: Path, logged: Logged, usual_close: float) -> None:
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
    assert logged.by_dask() == []
    assert len(logged.by_daskscope()) <= 2


def test_a_process_with_many_clusters_keeps_nothing_of_their_recorders(tmp_path: Path) -> None:
    def run_cluster() -> tuple[list[str], int, object]:
        with LocalCluster(processes=False, **{**ONE_WORKER, "n_workers": 2}) as cluster, Client(cluster) as client:
            daskscope.analytics.register(client)
            client.submit(abs, -1).result()
            assert thread_names()
        return thread_names(), len(sys.meta_path), logging.Logger.callHandlers

    # Faults of earlier tests may have left threads that hang.
    earlier = set(threading.enumerate())

    def thread_names() -> list[str]:
        new = set(threading.enumerate()) - earlier
        return sorted(thread.name for thread in new if thread.name.startswith("daskscope"))

    with dask.config.set({"daskscope.directory": str(tmp_path)}):
        first = run_cluster()
        assert first[0] == []
        assert [run_cluster() for _ in range(3)] == [first] * 3


class Unfriendly:
    """An object that cannot be converted to text."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


def test_events_of_users_do_no_harm(threads: Any, tmp_path: Path, logged: Logged) -> None:
    with Client(threads) as client:
        with recording(client, tmp_path, topics=("*",)) as made:
            for _ in range(MAX_FAILURES + 5):
                client.log_event("mine", {"blob": b"x" * 100_000, "keys": list(range(10_000))})
                client.log_event("daskscope-metric", {"value": "no number"})
                client.log_event("daskscope-window", ["nonsense"])
                client.log_event("all", {"action": "remove-worker", "worker": ["not", "hashable"]})
            client.log_event("mine", "x" * 5_000_000)
            threads.scheduler.log_event("mine", Unfriendly())
            assert client.submit(inc, 1, pure=False).result() == 2
            assert plugin_of(threads).guard.failures == 0
        assert made.recording["events"].rows >= MAX_FAILURES
    assert logged.by_daskscope() == []


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
    assert logged.by_dask() == []
    assert len([line for line in logged.by_daskscope() if "ends early" in line]) == 1
    assert len(logged.by_daskscope()) == 1


def test_a_closed_scheduler_still_answers_the_client(tmp_path: Path, logged: Logged) -> None:
    """Without the handler, distributed would log a traceback for a client that asks while the scheduler closes."""
    cluster = LocalCluster(processes=False, **ONE_WORKER)
    scheduler = cluster.scheduler
    with Client(cluster) as client, daskscope.record(tmp_path / "run.daskscope", client):
        cluster.close()
        reply = asyncio.run(scheduler.handlers["daskscope"](action="fetch", reader="any"))
    assert reply["status"] == "leaving"
    assert logged.by_dask() == []


def test_a_worker_killed_in_the_middle_of_work(tmp_path: Path, logged: Logged) -> None:
    with (
        LocalCluster(processes=True, **{**ONE_WORKER, "n_workers": 2}) as cluster,
        Client(cluster) as client,
        daskscope.record(tmp_path / "run.daskscope", client),
    ):
        futures = client.map(inc, range(200))
        os.kill(next(iter(cluster.scheduler.workers.values())).pid, signal.SIGKILL)
        assert client.gather(futures) == list(range(1, 201))
    assert logged.by_daskscope() == []
