"""``performance_report`` on real clusters: what it writes, and that it harms nobody whatever happens inside."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from distributed import Client, LocalCluster

import daskscope
from daskscope.client.performance_report import Report as WrittenReport
from daskscope.report.schema import Report
from daskscope.testing.processes import Processes, until


@pytest.fixture
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def inc(x: int) -> int:
    return x + 1


def read(path: str | Path) -> Report:
    with fsspec.open(str(path), "rt", compression="infer") as file:
        text = file.read()
    found = re.search(r'id="daskscope-report">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    report: Report = json.loads(found.group(1))
    return report


def ours(client: Client) -> list[str]:
    def names(dask_scheduler: Any) -> list[str]:
        return [name for name in (*dask_scheduler.plugins, *dask_scheduler.handlers) if "daskscope" in name]

    found: list[str] = client.run_on_scheduler(names)
    return found


def test_a_report_tells_what_ran_and_leaves_nothing_behind(client: Client, tmp_path: Path) -> None:
    client.gather(client.map(inc, range(5), key="before"))
    with daskscope.performance_report(tmp_path / "report.html") as report:
        assert report.url is None and report.path is None
        assert sum(client.gather(client.map(inc, range(20)))) == 210
    assert report["path"] == report.path == str(tmp_path / "report.html")
    assert report.recording is not None and report.recording["tasks"].rows == 20
    found = read(tmp_path / "report.html")
    assert found["totals"]["tasks"] == 20
    assert found["answer"]["status"] == "finished"
    assert "daskscope.performance_report(" in found["calling_code"]
    assert ours(client) == []


def test_a_report_inside_of_another_is_about_its_own_block(client: Client, tmp_path: Path) -> None:
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


def test_an_exception_passes_through_and_stands_in_the_report(client: Client, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), daskscope.performance_report(tmp_path / "report.html"):
        client.submit(inc, 1).result()
        client.submit(lambda: 1 // 0).result()
    found = read(tmp_path / "report.html")
    assert found["answer"]["status"] == "erred"
    assert "ZeroDivisionError" in found["failure"]
    assert [error["type"].rpartition(".")[2] for error in found["errors"]] == ["ZeroDivisionError"]


@pytest.mark.parametrize("skew", [5.0, -60.0])
def test_the_clients_clock_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skew: float) -> None:
    real, real_ns = time.time, time.time_ns
    with Processes(tmp_path / "processes") as processes:
        processes.scheduler()
        processes.worker("w")
        with Client(scheduler_file=str(processes.scheduler_file)) as client:
            client.wait_for_workers(1)
            # Everything in this process, and that is the client alone, lives in another time.
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


def test_a_place_that_cannot_be_written_is_one_line(
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
            # A worker with a result that nobody else has is not retired.
            until(lambda: not any(client.has_what().values()))
            client.retire_workers(list(client.scheduler_info()["workers"]))
        found = read(tmp_path / "report.html")
    assert found["totals"]["tasks"] == 10
    assert [worker["verdict"] for worker in found["workers"]] == ["retired", "retired"]


def test_a_scheduler_that_dies_leaves_a_report(tmp_path: Path) -> None:
    with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, Client(cluster) as client:
        with daskscope.performance_report(tmp_path / "report.html") as report:
            client.gather(client.map(inc, range(10)))
            time.sleep(2.5)
            cluster.close()
        assert report.path is not None
    assert read(report.path)["schema"] == 1


def test_a_notebook_shows_the_numbers_and_the_link(client: Client, tmp_path: Path) -> None:
    with daskscope.performance_report(tmp_path / "<b>.html") as report:
        client.submit(inc, 1).result()
    shown = report._repr_html_()
    assert "<b>" not in shown and "&lt;b&gt;.html" in shown and "inc × 1" in shown


def test_without_a_client_there_is_a_next_step() -> None:
    with pytest.raises(daskscope.DaskscopeError, match="client"), daskscope.performance_report():
        raise AssertionError("not reached")
