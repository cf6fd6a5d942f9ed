"""``daskscope.record``: whatever the client, the file is whole and nothing stays in the cluster."""

from __future__ import annotations

import asyncio
import logging
import operator
import sys
import threading
import time
import timeit
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from tests.helpers.waiting import until

import daskscope
from daskscope import DaskscopeError, Recording
from daskscope.client.connection import NFRAMES, CallingCode
from daskscope.collector.scheduler.rpc import is_recorded
from daskscope.errors import ClusterError, NoClient, RecordingError

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client

Opened = Callable[[Path], Recording]


def work(client: Any, tasks: int = 20) -> int:
    """Some tasks on all workers, results moved between them, and enough time for a look at their stacks."""
    # Not ``time.sleep`` itself: a function written in C has no frame to sample.
    naps = client.map(timeit.timeit, ["sleep(0.5)"] * 4, setup="from time import sleep", number=1, pure=False)
    numbers = client.map(operator.neg, range(tasks - 5), pure=False)
    return int(client.submit(lambda *values: len(values), *numbers, *naps, pure=False).result())


def prefixes(recording: Recording) -> dict[str, int]:
    names = list(recording["tasks"]["prefix"])
    return {name: names.count(name) for name in set(names)}


def live_clusters(processes: bool) -> Any:
    return LocalCluster(n_workers=2, threads_per_worker=2, processes=processes, dashboard_address=None, memory_limit=0)


def our_threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("daskscope"))


def ours_on_worker(dask_worker: Any) -> list[str]:
    """Return the parts of daskscope that are active in a worker's process."""
    module: Any = sys.modules["distributed.worker"]
    threads = our_threads()
    plugins = [name for name in dask_worker.plugins if name.startswith("daskscope")]
    wrapped = [] if module.error_message.__module__ == "distributed.core" else ["error_message"]
    loggers = [logging.getLogger(), logging.getLogger("distributed")]
    handlers = [type(handler).__name__ for logger in loggers for handler in logger.handlers]
    return threads + plugins + wrapped + [name for name in handlers if name == "LogCapture"]


def ours_on_scheduler(scheduler: Any, originals: tuple[Any, Any]) -> list[str]:
    task_erred, heartbeat = originals
    left = [name for name in scheduler.plugins if "daskscope" in name]
    if is_recorded(scheduler):
        left.append("handler")
    if scheduler.stream_handlers["task-erred"] != task_erred:
        left.append("task-erred")
    if scheduler.extensions["spans"].heartbeat != heartbeat:
        left.append("heartbeat")
    return left


def originals_of(scheduler: Any) -> tuple[Any, Any]:
    return scheduler.stream_handlers["task-erred"], scheduler.extensions["spans"].heartbeat


@pytest.mark.parametrize("processes", [True, False], ids=["processes", "threads"])
def test_a_recording_is_complete_and_leaves_nothing_behind(processes: bool, tmp_path: Path, opened: Opened) -> None:
    path = tmp_path / "run.daskscope"
    with live_clusters(processes) as cluster, Client(cluster) as client:
        scheduler = cluster.scheduler
        originals = originals_of(scheduler)
        # Other tests break the recorder on purpose and may have left parts of it in this process.
        threads, on_workers = our_threads(), client.run(ours_on_worker)

        with daskscope.record(path) as run:
            assert "daskscope" in scheduler.plugins
            assert scheduler.stream_handlers["task-erred"] != originals[0]
            until(lambda: all("daskscope-agent" in str(ours) for ours in client.run(ours_on_worker).values()))
            assert work(client) == 19

        assert ours_on_scheduler(scheduler, originals) == []
        until(lambda: client.run(ours_on_worker) == on_workers, "the end of all threads on the workers")
        until(lambda: our_threads() == threads, "the end of all threads")

    assert run.problem == ""
    recording = opened(path)
    assert prefixes(recording) == {"timeit": 4, "neg": 15, "lambda": 1}
    assert set(recording["workers"]["agent"]) == {"running"}
    assert list(recording["clusters"]["end_reason"]) == ["recording ended"]
    assert list(recording["windows"]["status"]) == ["ok"]
    assert list(recording["windows"]["name"]) == ["run"]
    assert set(recording["samples"]["worker"]) == {"scheduler", *recording["workers"]["worker"]}
    assert "timeit" in set(recording["profiles"]["prefix"])
    assert recording["transfers"].rows
    assert recording["activities"].rows


def test_an_asynchronous_client_records_with_async_with(tmp_path: Path, opened: Opened) -> None:
    async def main() -> None:
        async with (
            LocalCluster(
                n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, asynchronous=True
            ) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            with pytest.raises(ClusterError, match="async with"), daskscope.record(tmp_path / "no.daskscope"):
                pass
            async with daskscope.record(tmp_path / "run.daskscope", client):
                await client.gather(client.map(operator.neg, range(10)))
                logged = daskscope.log_metric("speed", 3.0, client=client)
                assert logged is not None
                await logged
            assert "daskscope" not in cluster.scheduler.plugins

    asyncio.run(main())

    recording = opened(tmp_path / "run.daskscope")
    assert prefixes(recording) == {"neg": 10}
    assert list(recording["metrics"]["value"]) == [3.0]
    assert not (tmp_path / "no.daskscope").exists()


def test_a_client_that_is_not_asynchronous_is_told_to_use_with(client: Any, tmp_path: Path) -> None:
    async def main() -> None:
        async with daskscope.record(tmp_path / "run.daskscope", client):
            pass

    with pytest.raises(ClusterError, match="use 'with"):
        asyncio.run(main())


def test_two_clients_record_at_the_same_time_and_each_file_is_complete(
    cluster: Any, client: Any, tmp_path: Path, opened: Opened
) -> None:
    scheduler = cluster.scheduler
    originals = originals_of(scheduler)
    with Client(cluster, set_as_default=False) as other, daskscope.record(tmp_path / "one.daskscope", client):
        work(client)
        with daskscope.record(tmp_path / "two.daskscope", other) as inner:
            work(other, 30)
            assert len(scheduler.plugins["daskscope"].claims) == 2
        assert "daskscope" in scheduler.plugins
        work(client)

    assert ours_on_scheduler(scheduler, originals) == []
    assert inner.problem == ""
    one, two = opened(tmp_path / "one.daskscope"), opened(tmp_path / "two.daskscope")
    assert prefixes(one) == {"timeit": 12, "neg": 55, "lambda": 3}
    assert prefixes(two) == {"timeit": 4, "neg": 25, "lambda": 1}
    assert set(two["tasks"]["computation"]) <= set(two["computations"]["computation"])
    assert set(two["workers"]["agent"]) == {"running"}
    assert list(one["clusters"]["end_reason"]) == ["recording ended"]


def test_recordings_that_begin_and_end_at_the_same_time_are_all_complete(
    cluster: Any, tmp_path: Path, opened: Opened
) -> None:
    originals = originals_of(cluster.scheduler)

    def some(number: int) -> list[Path]:
        paths = [tmp_path / f"{number}-{turn}.daskscope" for turn in range(3)]
        with Client(cluster, set_as_default=False) as client:
            for path in paths:
                with daskscope.record(path, client) as run:
                    client.gather(client.map(operator.neg, range(5), pure=False))
                assert run.problem == ""
        return paths

    with ThreadPoolExecutor(3) as pool:
        written = [path for paths in pool.map(some, range(3)) for path in paths]

    assert [path.name for path in written if prefixes(opened(path)).get("neg", 0) < 5] == []
    assert ours_on_scheduler(cluster.scheduler, originals) == []


def test_a_computation_that_was_running_before_is_in_the_second_file(
    client: Any, tmp_path: Path, opened: Opened
) -> None:
    with daskscope.record(tmp_path / "one.daskscope"):
        before = client.submit(time.sleep, 0.5, pure=False)
        until(lambda: list(client.processing()) and any(client.processing().values()))
        with daskscope.record(tmp_path / "two.daskscope"):
            before.result()

    two = opened(tmp_path / "two.daskscope")
    assert prefixes(two) == {"sleep": 1}
    assert list(two["computations"]["computation"]) == list(two["tasks"]["computation"])
    assert "sleep" in list(two["groups"]["prefix"])


def test_the_exception_of_the_block_passes_and_is_noted(client: Any, tmp_path: Path, opened: Opened) -> None:
    with pytest.raises(ZeroDivisionError), daskscope.record(tmp_path / "run.daskscope"):
        client.submit(operator.truediv, 1, 0).result()

    recording = opened(tmp_path / "run.daskscope")
    assert list(recording["windows"]["status"]) == ["error"]
    assert "ZeroDivisionError" in recording["windows"]["error"][0]
    assert list(recording["exceptions"]["type"]) == ["ZeroDivisionError"]


def test_a_client_closed_inside_the_block_ends_the_recording_early(cluster: Any, heard: Any, tmp_path: Path) -> None:
    originals = originals_of(cluster.scheduler)
    client = Client(cluster, set_as_default=False)
    with daskscope.record(tmp_path / "run.daskscope", client) as run:
        client.close()

    assert run.problem
    assert len([line for line in heard.lines if "ends early" in line]) == 1
    assert daskscope.open_recording(tmp_path / "run.daskscope").damage == ""
    until(lambda: not ours_on_scheduler(cluster.scheduler, originals), "the recorder's leaving")


class TestCode:
    @pytest.fixture(autouse=True)
    def none_by_default(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        # A cluster registered by another test requests code until the process ends.
        monkeypatch.setattr("daskscope.client.record.calling_code", CallingCode())
        with dask.config.set({NFRAMES: 0}):
            yield
            assert not dask.config.get(NFRAMES, 0)

    def test_the_calling_code_is_recorded(self, client: Any, tmp_path: Path, opened: Opened) -> None:
        with daskscope.record(tmp_path / "run.daskscope"):
            assert dask.config.get(NFRAMES) == 1
            client.submit(operator.neg, 41, pure=False).result()  # this very line

        computations = opened(tmp_path / "run.daskscope")["computations"]
        code, line = computations["code"][0], computations["code_line"][0]
        assert "# this very line" in code.splitlines()[line]
        assert Path(computations["code_file"][0]).name == Path(__file__).name

    def test_no_code_is_recorded_if_it_is_not_allowed(self, client: Any, tmp_path: Path, opened: Opened) -> None:
        with (
            dask.config.set({"daskscope.analytics.computation.code.transmit": False}),
            daskscope.record(tmp_path / "run.daskscope"),
        ):
            assert not dask.config.get(NFRAMES, 0)
            client.submit(operator.neg, 42, pure=False).result()

        computations = opened(tmp_path / "run.daskscope")["computations"]
        assert computations.rows
        assert set(computations["code"]) == {""}
        assert b"operator.neg" not in (tmp_path / "run.daskscope").read_bytes()

    def test_recordings_that_overlap_share_the_setting(self, client: Any, tmp_path: Path) -> None:
        first = daskscope.record(tmp_path / "one.daskscope")
        second = daskscope.record(tmp_path / "two.daskscope")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)

        assert dask.config.get(NFRAMES) == 1
        second.__exit__(None, None, None)


class TestMetrics:
    def test_a_metric_of_the_client_is_recorded(self, client: Any, tmp_path: Path, opened: Opened) -> None:
        with daskscope.record(tmp_path / "run.daskscope"):
            daskscope.log_metric("accuracy", 0.5, "", model="small")

        metrics = opened(tmp_path / "run.daskscope")["metrics"]
        assert list(zip(metrics["name"], metrics["value"], metrics["labels"])) == [
            ("accuracy", 0.5, '{"model": "small"}')
        ]

    def test_a_metric_of_a_task_is_recorded(self, client: Any, tmp_path: Path, opened: Opened) -> None:
        with daskscope.record(tmp_path / "run.daskscope"):
            client.submit(daskscope.log_metric, "rows", 7, "count").result()

        metrics = opened(tmp_path / "run.daskscope")["metrics"]
        assert list(zip(metrics["name"], metrics["value"], metrics["unit"])) == [("rows", 7.0, "count")]

    def test_a_metric_without_a_recording_does_no_harm(self, client: Any) -> None:
        daskscope.log_metric("accuracy", 0.5)


class TestRefusals:
    """Each error says in one line what to do next."""

    def refused(self, path: Path, client: Any = None) -> DaskscopeError:
        with pytest.raises(DaskscopeError) as caught, daskscope.record(path, client):
            pass
        assert "\n" not in str(caught.value)
        return caught.value

    def test_no_client(self, tmp_path: Path) -> None:
        error = self.refused(tmp_path / "run.daskscope")

        assert isinstance(error, NoClient)
        assert "client = distributed.Client(...)" in str(error)

    def test_something_that_is_not_a_client(self, cluster: Any, tmp_path: Path) -> None:
        assert isinstance(self.refused(tmp_path / "run.daskscope", cluster), NoClient)

    def test_a_closed_client(self, cluster: Any, tmp_path: Path) -> None:
        client = Client(cluster)
        client.close()

        error = self.refused(tmp_path / "run.daskscope", client)

        assert isinstance(error, ClusterError)
        assert "Connect a new distributed.Client" in str(error)
        assert not (tmp_path / "run.daskscope").exists()

    def test_a_missing_folder(self, client: Any, tmp_path: Path) -> None:
        error = self.refused(tmp_path / "missing" / "run.daskscope")

        assert isinstance(error, RecordingError)
        assert "Choose another path" in str(error)

    def test_a_directory_as_path(self, client: Any, tmp_path: Path) -> None:
        error = self.refused(tmp_path)

        assert isinstance(error, RecordingError)
        assert "directory" in str(error)

    def test_an_earlier_recording_survives_a_scheduler_that_refuses_plugins(self, tmp_path: Path) -> None:
        path = tmp_path / "run.daskscope"
        path.write_bytes(b"earlier")
        blocked = {"distributed.scheduler.blocked-handlers": ["register_scheduler_plugin"]}
        with (
            dask.config.set(blocked),
            LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster,
            Client(cluster),
        ):
            error = self.refused(path)

        assert isinstance(error, ClusterError)
        assert "dask scheduler --preload daskscope.analytics" in str(error)
        assert path.read_bytes() == b"earlier"


def test_the_window_ends_with_its_block(tmp_path: Path) -> None:
    options: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with (
        LocalCluster(**options) as cluster,
        Client(cluster) as client,
        daskscope.record(tmp_path / "run.daskscope", client) as made,
    ):
        client.submit(time.sleep, 0.3, pure=False).result()
        end_us = time.time_ns() // 1000
    stop_us = int(made.recording["windows"]["stop_us"][-1])
    assert 0 <= stop_us - end_us < 1_000_000
