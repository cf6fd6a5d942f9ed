"""What a path holds is told by its content, and what is no recording by what to do about it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from daskscope.cli.main import main
from daskscope.cli.open import load
from daskscope.report.document import report_page
from daskscope.report.source import Holding, holding
from daskscope.testing import make_recording

DATA = Path(__file__).parents[1] / "data"
GOLDEN = DATA / "recordings" / "v1.daskscope"
DASK = DATA / "dask-reports"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (GOLDEN, "recording"),
        (DATA, "recording"),
        (DATA / "not there", "recording"),
        (DASK / "bokeh2.html", "dask report"),
        (DASK / "bokeh3.html", "dask report"),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_what_a_path_holds(path: Path, found: Holding) -> None:
    assert holding(path) == found


@pytest.mark.parametrize("name", ["report.html", "report.daskscope", "report"])
def test_a_report_is_one_by_any_name(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_bytes(report_page(make_recording({"logs": [{"message": "m"}]}), title="t"))
    assert holding(path) == "report"
    assert main(["show", str(path), "--table", "logs"]) == 0
    assert "m" in capsys.readouterr().out
    assert load(path) == path.read_bytes()


def test_a_recording_is_one_by_any_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.html"
    shutil.copy(GOLDEN, path)
    assert main(["show", str(path)]) == 0
    assert b"daskscope-report" in load(path)
    capsys.readouterr()


@pytest.mark.parametrize("command", [["show"], ["open", "--no-browser"], ["export", "--to", "csv"]], ids=lambda c: c[0])
def test_a_report_of_dask_is_for_import(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = DASK / "bokeh3.html"
    assert main([*command, str(path)]) == 1
    assert capsys.readouterr().err == (
        f"daskscope: {path} is a report that Dask wrote. Make a recording of it with: daskscope import {path}\n"
    )


@pytest.mark.parametrize("command", [["show"], ["open", "--no-browser"], ["export", "--to", "csv"]], ids=lambda c: c[0])
@pytest.mark.parametrize("data", [b"<!doctype html><p>hello", b"\xef\xbb\xbf  <html>", b"<", b"", b"\0\xff" * 99])
def test_anything_else_is_refused(
    command: list[str], data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(data)
    assert main([*command, str(path)]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"daskscope: {path} is ") and told.count("\n") == 1
    assert "daskscope.performance_report()" in told or "daskscope.record()" in told


def test_a_report_of_ours_need_not_be_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.html"
    path.write_bytes(report_page(make_recording({}), title="t"))
    assert main(["import", str(path)]) == 1
    assert f"is a report of daskscope. Look at it with: daskscope open {path}" in capsys.readouterr().err
