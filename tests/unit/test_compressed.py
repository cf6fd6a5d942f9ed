"""A report or recording that somebody compressed is read like any other, and what unpacks to too much is not."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from daskscope import open_recording
from daskscope.cli.main import main
from daskscope.cli.open import load
from daskscope.client import reports
from daskscope.errors import RecordingError
from daskscope.report import compressed
from daskscope.report.document import report_page
from daskscope.report.source import read_source
from daskscope.testing import make_recording

DATA = Path(__file__).parents[1] / "data"
PAGE = report_page(make_recording({"logs": [{"message": "a line of a log"}]}), title="t")


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # What is unpacked goes where it can be looked for.
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    path = tmp_path / "run.html.gz"
    path.write_bytes(gzip.compress(PAGE))
    return path


def left_behind(report: Path) -> list[Path]:
    return list((report.parent / "temporary").iterdir())


def test_a_compressed_report_is_shown_opened_and_exported(
    report: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(report.parent)
    assert main(["show", str(report), "--table", "logs"]) == 0
    assert "a line of a log" in capsys.readouterr().out
    assert load(report) == PAGE
    assert main(["export", str(report), "--to", "csv"]) == 0
    assert "a line of a log" in (report.parent / "run-csv" / "logs.csv").read_text()
    assert main(["export", str(report), "--to", "html"]) == 1
    assert f"{report} is a report already" in capsys.readouterr().err
    assert read_source(report).source == str(report)
    assert open_recording(report)["logs"].rows == 1
    assert left_behind(report) == []


@pytest.mark.parametrize("name", ["run.gz", "run.html", "run"])
def test_it_is_one_by_any_name(report: Path, name: str) -> None:
    other = report.with_name(name)
    shutil.copy(report, other)
    assert load(other) == PAGE


def test_a_compressed_recording_and_a_compressed_report_of_dask_are_read(
    report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = DATA / "recordings" / "v1.daskscope"
    packed = report.with_name("v1.daskscope.gz")
    packed.write_bytes(gzip.compress(golden.read_bytes()))
    assert read_source(packed)["tasks"].rows == read_source(golden)["tasks"].rows
    dask = report.with_name("dask-report.html.gz")
    dask.write_bytes(gzip.compress((DATA / "dask-reports" / "bokeh3.html").read_bytes()))
    assert main(["show", str(dask)]) == 1
    # It is named as it was given, not as it was unpacked.
    assert f"daskscope import {dask}" in capsys.readouterr().err
    assert main(["import", str(dask)]) == 0
    assert read_source(dask.with_name("dask-report.daskscope"))["tasks"].rows


def test_it_is_uploaded_as_it_was_before(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[bytes, str]] = []

    def upload(server: object, data: bytes, *, filename: str) -> dict[str, str]:
        sent.append((data, filename))
        return {}

    monkeypatch.setattr(reports, "find_server", lambda account: None)
    monkeypatch.setattr(reports, "upload_report", upload)
    reports.upload_file(report)
    assert sent == [(PAGE, "run.html")]


def test_what_unpacks_to_too_much_is_refused(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed, "MOST_NBYTES", len(PAGE))
    assert load(report) == PAGE
    monkeypatch.setattr(compressed, "MOST_NBYTES", len(PAGE) - 1)
    with pytest.raises(RecordingError, match=r"run\.html\.gz unpacks to more than"):
        load(report)
    assert left_behind(report) == []


@pytest.mark.parametrize("damage", ["cut off", "changed", "nothing in it"])
def test_what_cannot_be_unpacked_is_said_to_be_damaged(report: Path, damage: str) -> None:
    data = bytearray(report.read_bytes())
    if damage == "changed":
        data[len(data) // 2] ^= 0xFF
    report.write_bytes(compressed.MAGIC if damage == "nothing in it" else data if damage == "changed" else data[:-30])
    with pytest.raises(RecordingError, match=r"run\.html\.gz cannot be unpacked"):
        read_source(report)
    assert left_behind(report) == []
