"""Reports written by Dask, of Bokeh 2 and 3, become recordings; other pages are refused."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from daskscope.cli.main import main
from daskscope.client.record import open_recording
from daskscope.errors import RecordingError
from daskscope.report.read_dask_report import read_dask_report

DATA = Path(__file__).parents[1] / "data" / "dask-reports"
REPORTS = ["bokeh2.html", "bokeh3.html"]


@pytest.mark.parametrize("name", REPORTS)
def test_the_task_stream_of_a_report(name: str) -> None:
    tasks = read_dask_report((DATA / name).read_text())["tasks"]
    assert sorted({task["prefix"] for task in tasks}) == ["add", "slow"]
    assert len(tasks) == 17
    slow = [task["stop_us"] - task["start_us"] for task in tasks if task["prefix"] == "slow"]
    assert len(slow) == 16 and all(50_000 <= us < 200_000 for us in slow)
    assert [task["interval_action"] for task in tasks if task["prefix"] == "add"] == [["transfer"]]
    assert len({(task["worker"], task["thread"]) for task in tasks}) == 2


@pytest.mark.parametrize(("name", "version"), [("bokeh2.html", "2023.3.0"), ("bokeh3.html", "2026.8.0")])
def test_the_summary_of_a_report(name: str, version: str) -> None:
    rows = read_dask_report((DATA / name).read_text())
    assert json.loads(rows["clusters"][0]["versions"]) == {"dask": version, "distributed": version}
    assert rows["clusters"][0]["address"].startswith("tcp://")
    assert "client.map(slow, range(16))" in rows["computations"][0]["code"]


def test_the_profile_of_a_report_adds_up() -> None:
    profiles = read_dask_report((DATA / "bokeh3.html").read_text())["profiles"]
    # The page has 470 ms at 10 ms per sample.
    assert sum(row["count"] for row in profiles if row["kind"] == "compute") == 47
    assert all(len(frame.split("\t")) == 3 for row in profiles for frame in row["stack"])


@pytest.mark.parametrize("name", REPORTS)
def test_the_command_writes_a_recording(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "run.daskscope"
    assert main(["import", str(DATA / name), "--output", str(target)]) == 0
    assert "17 tasks" in capsys.readouterr().out
    assert open_recording(target)["tasks"].rows == 17
    assert main(["show", str(target)]) == 0
    assert "slow" in capsys.readouterr().out


#: Reports by distributed 2026.8.0, and how many tasks a scheduler plugin counted while they were made.
COLLECTIONS = [
    (
        "array.html.gz",
        10,
        ["finalize-hlgfinalizecompute", "random_sample", "random_sample-sum", "sum", "sum-aggregate"],
    ),
    ("dataframe.html.gz", 10, ["frompandas", "getitem", "mean-tree", "mean_chunk"]),
]


@pytest.mark.parametrize(("name", "count", "prefixes"), COLLECTIONS)
def test_reports_of_collections_have_tuple_keys(
    name: str, count: int, prefixes: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "run.daskscope"
    assert main(["import", str(DATA / name), "--output", str(target)]) == 0
    assert f"{count} tasks" in capsys.readouterr().out
    tasks = open_recording(target)["tasks"]
    assert tasks.rows == count
    assert sorted(set(tasks["prefix"])) == prefixes
    keys = [ast.literal_eval(key) for key in tasks["key"] if key.startswith("(")]
    assert keys and all(isinstance(key, tuple) and isinstance(key[0], str) for key in keys)
    assert (tasks["stop_us"] > tasks["start_us"]).all()


def test_a_deeply_nested_key_is_refused() -> None:
    page = (DATA / "bokeh3.html").read_text()
    key = re.search(r'"slow-[0-9a-f]+"', page)
    assert key is not None
    with pytest.raises(RecordingError, match="performance_report"):
        read_dask_report(page.replace(key.group(), "[" * 900 + "1" + "]" * 900))


@pytest.mark.parametrize(
    "page",
    [
        "",
        "<html>nothing here</html>",
        '<script type="application/json" id="x">{"a": {"roots": []}}</script>',
        '<script type="application/json">[1, 2]</script>',
        '<script type="application/json">' + "[" * 100_000 + "</script>",
        '<script type="application/json">{"a": {"roots": {"references": [{"id": "1", "type": "Panel", "attributes": '
        '{"title": 3, "child": {"id": "1"}}}]}}}</script>',
    ],
    ids=["empty", "no document", "no panels", "a list", "deep", "a panel inside of itself"],
)
def test_other_pages_are_refused_with_advice(page: str) -> None:
    with pytest.raises(RecordingError, match="performance_report"):
        read_dask_report(page)


@pytest.mark.parametrize(
    ("whole", "broken"),
    [
        ('"worker_thread",[', '"worker_thread",["one more",'),
        ('["start",[', '["start",[null,'),
        ('["start",[', '["start",{"type":"ndarray","array":{"data":"!"},"dtype":"nonsense"}],["x",['),
        ('["time",["470.00 ms"', '["time",["soon"'),
    ],
    ids=["columns of different lengths", "no number", "no dtype", "no time"],
)
def test_a_damaged_report_is_refused_with_advice(whole: str, broken: str) -> None:
    page = (DATA / "bokeh3.html").read_text()
    assert whole in page
    with pytest.raises(RecordingError, match="performance_report"):
        read_dask_report(page.replace(whole, broken))


def test_a_missing_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["import", str(tmp_path / "no.html")]) == 1
    assert "cannot be read" in capsys.readouterr().err
