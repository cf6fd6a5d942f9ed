"""``performance_report`` on real clusters: its output, and that problems never affect the user's work."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import dask.config
import fsspec
import pytest
from distributed import Client, LocalCluster
from tests.helpers.processes import Processes
from tests.helpers.report_text import page_text
from tests.helpers.waiting import until

import daskscope
from daskscope.analysis.summary import summarise
from daskscope.client.performance_report import Report as WrittenReport
from daskscope.report.read_page import find_page
from daskscope.report.schema import SCHEMA, Report


@pytest.fixture
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def inc(x: int) -> int:
    return x + 1


#: Set once the block of an interrupted report has ended.
ENDED = threading.Event()


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    ENDED.wait(60)


def read(path: str | Path) -> Report:
    with fsspec.open(str(path), "rb", compression="infer") as file:
        return cast(Report, find_page(file.read()).report)


def ours(client: Client) -> list[str]:
    def names(dask_scheduler: Any) -> list[str]:
        return [
            name
            for name, part in (*dask_scheduler.plugins.items(), *dask_scheduler.handlers.items())
            if "daskscope" in name and not hasattr(part, "is_farewell")
        ]

    found: list[str] = client.run_on_scheduler(names)
    return found


def test_a_report_has_the_tasks_and_leaves_nothing_behind(client: Client, tmp_path: Path) -> None:
    client.gather(client.map(inc, range(5), key="before"))
    with daskscope.performance_report(tmp_path / "report.html") as report:
        assert report.url is None and report.path is None
        assert sum(client.gather(client.map(inc, range(20)))) == 210
    assert report["path"] == report.path == str(tmp_path / "report.html")
    assert report.recording is not None and report.recording["tasks"].rows == 20
    found = read(tmp_path / "report.html")
    assert found["totals"]["tasks"] == 20
    assert found["answer"]["state"] == "finished"
    assert "daskscope.performance_report(" in found["calling_code"]
    assert ours(client) == []


def test_a_nested_report_covers_its_own_block(client: Client, tmp_path: Path) -> None:
    with daskscope.performance_report(tmp_path / "outer.html"):
        client.gather(client.map(inc, range(10), pure=False))
        with daskscope.performance_report(tmp_path / "inner.html"):
            client.gather(client.map(inc, range(5), pure=False))
    outer, inner = read(tmp_path / "outer.html"), read(tmp_path / "inner.html")
    assert (outer["totals"]["tasks"], inner["totals"]["tasks"]) == (15, 5)
    assert outer["start_us"] < inner["start_us"] < inner["stop_us"] < outer["stop_us"]


def test_an_asynchronous_client(tmp_path: Path) -> None:
    async def run() -> WrittenReport:
        async with (
            LocalCluster(n_workers=1, processes=False, dashboard_address=None, asynchronous=True) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            async with daskscope.performance_report(tmp_path / "report.html") as report:
                assert await client.submit(inc, 1) == 2
            return report

    report = asyncio.run(run())
    assert report.path is not None and read(report.path)["totals"]["tasks"] == 1


def test_an_exception_passes_through_and_is_in_the_report(client: Client, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), daskscope.performance_report(tmp_path / "report.html"):
        client.submit(inc, 1).result()
        client.submit(lambda: 1 // 0).result()
    found = read(tmp_path / "report.html")
    assert found["answer"]["state"] == "failed"
    assert "ZeroDivisionError" in found["failure"]
    assert [error["type"].rpartition(".")[2] for error in found["errors"]] == ["ZeroDivisionError"]


def test_a_block_that_a_user_stops_is_interrupted(client: Client, tmp_path: Path) -> None:
    ENDED.clear()
    # Held, so that the task still runs when the block ends.
    held = []
    with pytest.raises(KeyboardInterrupt), daskscope.performance_report(tmp_path / "report.html") as report:
        held.append(client.submit(press_ctrl_c))
        held[0].result()
    ENDED.set()
    found = read(tmp_path / "report.html")
    assert (found["answer"]["state"], found["answer"]["headline"].split(" after ")[0]) == ("interrupted", "Interrupted")
    assert [one["state"] for one in found["computations"]] == ["interrupted"]
    assert report.recording is not None
    assert [one.state for one in summarise(report.recording).computations] == ["interrupted"]


@pytest.mark.parametrize("skew", [5.0, -60.0])
def test_the_clients_clock_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skew: float) -> None:
    real, real_ns = time.time, time.time_ns
    with Processes(tmp_path / "processes") as processes:
        processes.scheduler()
        processes.worker("w")
        with Client(scheduler_file=str(processes.scheduler_file)) as client:
            client.wait_for_workers(1)
            # Shift the clock of this process, which runs only the client.
            monkeypatch.setattr(time, "time", lambda: real() + skew)
            monkeypatch.setattr(time, "time_ns", lambda: real_ns() + int(skew * 1e9))
            monkeypatch.setattr("distributed.client.time", lambda: real() + skew)
            began = real()
            with daskscope.performance_report(tmp_path / "report.html"):
                client.gather(client.map(abs, range(10), pure=False))
            ended = real()
            monkeypatch.undo()
    found = read(tmp_path / "report.html")
    assert found["totals"]["tasks"] == found["stream"]["tasks"] == 10
    assert began - 0.5 < found["start_us"] / 1e6 < found["stop_us"] / 1e6 < ended + 0.5
    assert sum(share["us"] for share in found["split"]) == found["totals"]["thread_us"]


def test_an_unwritable_path_is_logged_in_one_line(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    with daskscope.performance_report(tmp_path / "file" / "report.html") as report:
        assert client.submit(inc, 1).result() == 2
    assert report.path is None and report.problem
    assert report.recording is not None and report.recording["tasks"].rows == 1
    assert sum("was not written" in record.getMessage() for record in caplog.records) == 1


def test_fsspec_targets_and_compression(client: Client, tmp_path: Path) -> None:
    with daskscope.performance_report("memory://reports/run.html.gz") as report:
        client.submit(inc, 1).result()
    assert report.path == "memory://reports/run.html.gz"
    assert read(report.path)["totals"]["tasks"] == 1


def test_workers_that_leave_are_in_the_report(tmp_path: Path) -> None:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        with daskscope.performance_report(tmp_path / "report.html"):
            client.gather(client.map(inc, range(10)))
            # A worker with the only copy of a result is not retired.
            until(lambda: not any(client.has_what().values()))
            client.retire_workers(list(client.scheduler_info()["workers"]))
        found = read(tmp_path / "report.html")
    assert found["totals"]["tasks"] == 10
    assert [worker["verdict"] for worker in found["workers"]] == ["retired", "retired"]


def test_a_report_is_written_after_the_scheduler_died(tmp_path: Path) -> None:
    with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, Client(cluster) as client:
        with daskscope.performance_report(tmp_path / "report.html") as report:
            client.gather(client.map(inc, range(10)))
            time.sleep(2.5)
            cluster.close()
        assert report.path is not None
    assert read(report.path)["schema"] == SCHEMA


def test_the_notebook_view_has_numbers_and_the_link(client: Client, tmp_path: Path) -> None:
    with daskscope.performance_report(tmp_path / "<b>.html") as report:
        client.submit(inc, 1).result()
    shown = report._repr_html_()
    assert "<b>" not in shown and "&lt;b&gt;.html" in shown and "inc × 1" in shown


def test_without_a_client_the_error_says_what_to_do() -> None:
    with pytest.raises(daskscope.DaskscopeError, match="client"), daskscope.performance_report():
        raise AssertionError("not reached")


def test_a_report_of_a_private_recording_has_no_text(client: Any, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    path = tmp_path / f"{mark}.html"
    with (
        dask.config.set({"daskscope.analytics.private": True}),
        pytest.raises(KeyError),
        daskscope.performance_report(path, client=client, tags={"tag": mark}) as report,
    ):
        client.submit(str, 1, key=f"x{mark}").result()
        raise KeyError(mark)
    page, recording = page_text(path.read_text()), report.recording
    assert recording is not None
    assert mark not in page
    assert "a_report_of_a_private_recording" not in page
    assert list(recording["windows"]["error"]) == ["KeyError"]
    assert recording["tasks"].rows


def test_a_secret_in_the_exception_that_ends_a_block_is_masked(client: Any, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    with (
        pytest.raises(KeyError),
        daskscope.performance_report(tmp_path / "report.html", client=client),
    ):
        raise KeyError(f"password={mark}")
    text = page_text((tmp_path / "report.html").read_text())
    assert mark not in text
    assert "password=***" in text
