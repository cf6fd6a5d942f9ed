"""Code written for Dask's and Coiled's tools runs with only the import changed."""

from __future__ import annotations

import runpy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster
from distributed.metrics import context_meter

import daskscope
from daskscope.client.record import open_recording

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def df() -> Any:
    # Not above: every test process imports this file.
    import dask.dataframe as dd
    import pandas as pd

    return dd.from_pandas(pd.DataFrame({"name": ["a", "b"] * 50, "value": range(100)}), npartitions=4)


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    import matplotlib as mpl

    mpl.use("Agg")


@pytest.mark.parametrize("more", [{}, {"account": "my-team-account"}, {"private": True}])
def test_a_hosted_performance_report(client: Client, df: Any, tmp_path: Path, more: dict[str, Any]) -> None:
    from daskscope import performance_report

    with performance_report(filename="dask-report.html", **more):
        df.groupby("name").value.mean().compute()

    assert (tmp_path / "dask-report.html").stat().st_size > 50_000


def test_a_memory_sampler(client: Client, df: Any) -> None:
    from daskscope import MemorySampler

    collection1, collection2 = df, df.shuffle("name")
    ms = MemorySampler()
    with ms.sample("collection 1"):
        collection1.compute()
    with ms.sample("collection 2"):
        collection2.compute()
    axes = ms.plot(align=True)

    assert [line.get_label() for line in axes.get_lines()] == ["collection 1", "collection 2"]


def test_the_transfer_logs(client: Client) -> None:
    # Dask has renamed the attributes of its documentation; these are the current names.
    assert client.run(lambda dask_worker: len(dask_worker.transfer_outgoing_log))
    assert client.run(lambda dask_worker: len(dask_worker.transfer_incoming_log))


def test_analytics(client: Client, tmp_path: Path) -> None:
    import dask.config

    import daskscope.analytics

    with dask.config.set({"daskscope.directory": str(tmp_path / "recorded")}):
        daskscope.analytics.register()  # connect the recent client
        client.submit(sum, [1, 2]).result()
        daskscope.analytics.unregister()

    assert open_recording(tmp_path / "recorded")["tasks"].rows == 1


def read_from_network() -> bytes:
    time.sleep(0.05)
    return bytes(100)


@context_meter.meter("I/O")
def read_some_files() -> bytes:
    return read_from_network()


def read_some_files_in_part() -> int:
    with context_meter.meter("I/O"):
        data = read_from_network()
    context_meter.digest_metric("S3 Infrequent Access", len(data), "bytes")
    return len(data)


def test_custom_metrics(client: Client, tmp_path: Path) -> None:
    with daskscope.record(tmp_path / "run.daskscope") as run:
        client.submit(read_some_files).result()
        client.submit(read_some_files_in_part).result()

    table = run.recording["activities"]
    found: dict[tuple[str, str], float] = {}
    for activity, unit, value in zip(table["activity"], table["unit"], table["value"], strict=True):
        found[activity, unit] = found.get((activity, unit), 0) + value
    assert found["I/O", "seconds"] >= 0.1
    assert found["S3 Infrequent Access", "bytes"] == 100


def test_coffea_with_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("coffea", reason="coffea is not installed; pip install coffea to run this example")
    runpy.run_path(str(EXAMPLES / "coffea_report.py"), run_name="__main__")
    assert "20000" in capsys.readouterr().out
    assert (tmp_path / "dask-report.html").exists()
