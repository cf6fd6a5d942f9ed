"""Exports: each format is checked with a tool that reads it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import pandas as pd
import pytest

from daskscope.cli.main import main
from daskscope.client.record import open_recording
from daskscope.testing import make_frames
from daskscope.wire.layout import FILE_MAGIC

DATA = Path(__file__).parents[1] / "data"
GOLDEN = DATA / "recordings" / "v1.daskscope"
T = 1_700_000_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a recording with two workers, intervals, samples and stacks."""
    tables: dict[str, list[dict[str, Any]]] = {
        "workers": [{"worker": "tcp://a:1", "server_id": "a", "name": "one", "nthreads": 2, "start_us": T}],
        "tasks": [
            {
                "id": 0,
                "key": "=cmd()",
                "prefix": "inc",
                "group": "inc",
                "worker": "tcp://a:1",
                "thread": 4,
                "start_us": T + 5_000,
                "stop_us": T + 9_000,
                "nbytes": 28,
                "type": "int",
                "status": "ok",
                "interval_action": ["transfer"],
                "interval_start_us": [T],
                "interval_stop_us": [T + 4_000],
                "interval_source": ["tcp://b:1"],
            },
            {
                "id": 1,
                "key": "b",
                "prefix": "sum",
                "worker": "tcp://b:1",
                "start_us": T,
                "stop_us": T + 1,
                "status": "error",
            },
        ],
        "samples": [{"worker": "tcp://a:1", "time_us": T, "memory": 100, "cpu_percent": float("nan")}],
        "profiles": [
            _stack("compute", ["a.py\tf\t1", "a.py\tg\t2"], 3),
            _stack("compute", ["a.py\tf\t1"], 1),
            _stack("scheduler", ["s.py\tloop\t9"], 2),
        ],
    }
    file = tmp_path / "run.daskscope"
    file.write_bytes(FILE_MAGIC + b"".join(make_frames(tables)))
    return file


def _stack(kind: str, frames: list[str], count: int) -> dict[str, Any]:
    return {"start_us": T, "stop_us": T + 1_000_000, "kind": kind, "stack": frames, "count": count, "ticks": 5}


def export(path: Path, to: str, *more: str) -> Path:
    target = path.parent / "out"
    assert main(["export", str(path), "--to", to, "--output", str(target), *more]) == 0
    return target


def test_duckdb_and_pandas_read_the_parquet(path: Path) -> None:
    directory = export(path, "parquet")
    query = f"select prefix, epoch_us(stop_us) - epoch_us(start_us), interval_action from '{directory}/tasks.parquet'"
    found = duckdb.connect().execute(f"{query} order by id").fetchall()
    assert found == [("inc", 4_000, ["transfer"]), ("sum", 1, [])]
    frame = pd.read_parquet(directory / "tasks.parquet")
    assert frame["start_us"].dt.tz is not None and frame["queued_us"].isna().all()


def test_every_table_of_a_real_recording_is_written(tmp_path: Path) -> None:
    recording = open_recording(GOLDEN)
    assert main(["export", str(GOLDEN), "--to", "parquet", "--output", str(tmp_path)]) == 0
    rows = {file.stem: len(pd.read_parquet(file)) for file in tmp_path.iterdir()}
    assert rows == {name: recording[name].rows for name in recording if recording[name].rows}


def test_csv_has_no_formulas(path: Path) -> None:
    with (export(path, "csv", "--table", "tasks") / "tasks.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["key"] for row in rows] == ["'=cmd()", "b"]
    assert json.loads(rows[0]["interval_action"]) == ["transfer"]
    assert rows[0]["start_us"] == "2023-11-14T22:13:20.005000Z" and rows[0]["queued_us"] == ""


def test_json_lines(path: Path) -> None:
    directory = export(path, "json")
    (sample,) = map(json.loads, (directory / "samples.jsonl").read_text().splitlines())
    assert sample["memory"] == 100 and sample["cpu_percent"] is None


def test_perfetto_gets_complete_slices_on_named_threads(path: Path) -> None:
    trace = json.loads(export(path, "perfetto").read_text())
    events = trace["traceEvents"]
    slices = {(e["name"], e["ts"], e["dur"], e["args"]["key"]) for e in events if e["ph"] == "X"}
    assert slices == {("inc", T + 5_000, 4_000, "=cmd()"), ("transfer", T, 4_000, "=cmd()"), ("sum", T, 1, "b")}
    names = {(e["pid"], e["args"]["name"]) for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    assert names == {(1, "one"), (2, "tcp://b:1")}
    # Fields that Perfetto requires of every event.
    assert all(
        isinstance(e["pid"], int) and e["ph"] in ("X", "M", "C") and ("ts" in e or e["ph"] == "M") for e in events
    )
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"} == named


def test_speedscope_accepts_the_profile(path: Path) -> None:
    document = json.loads(export(path, "speedscope").read_text())
    jsonschema.validate(document, json.loads((DATA / "speedscope-schema.json").read_text()))
    compute = next(profile for profile in document["profiles"] if profile["name"] == "compute")
    names = [[document["shared"]["frames"][i]["name"] for i in stack] for stack in compute["samples"]]
    assert sorted(names) == [["f"], ["f", "g"]]
    # Scaled to the compute time of 4.001 ms.
    assert compute["unit"] == "seconds" and sum(compute["weights"]) == pytest.approx(0.004001)


def test_collapsed_stacks(path: Path) -> None:
    lines = export(path, "collapsed").read_text().splitlines()
    assert sorted(int(line.rpartition(" ")[2]) for line in lines) == [1, 3]
    assert all(line.count(";") <= 1 for line in lines)


@pytest.mark.parametrize("to", ["perfetto", "speedscope", "collapsed", "html", "json"])
def test_an_empty_recording_can_be_exported(to: str, tmp_path: Path) -> None:
    file = tmp_path / "empty.daskscope"
    file.write_bytes(FILE_MAGIC)
    target = export(file, to)
    if to == "speedscope":
        jsonschema.validate(json.loads(target.read_text()), json.loads((DATA / "speedscope-schema.json").read_text()))


def test_single_file_formats_refuse_tables(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(path), "--to", "perfetto", "--table", "tasks"]) == 1
    assert "parquet, csv, json" in capsys.readouterr().err


def test_an_unwritable_path(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(path), "--to", "perfetto", "--output", str(path.parent / "no" / "x.json")]) == 1
    assert "Choose --output" in capsys.readouterr().err
