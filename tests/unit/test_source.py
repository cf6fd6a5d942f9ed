"""The content of a file decides what it is; errors say what to do; gzip is unpacked."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from daskscope import open_recording
from daskscope.cli.main import main
from daskscope.cli.open import load
from daskscope.client import server
from daskscope.errors import RecordingError
from daskscope.report import source
from daskscope.report.document import report_page
from daskscope.report.source import ContentKind, content_kind, read_source
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
def test_the_kind_of_a_path(path: Path, found: ContentKind) -> None:
    assert content_kind(path) == found


@pytest.mark.parametrize("name", ["report.html", "report.daskscope", "report"])
def test_a_report_is_recognized_under_any_name(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_bytes(report_page(make_recording({"logs": [{"message": "m"}]}), title="t"))
    assert content_kind(path) == "report"
    assert main(["show", str(path), "--table", "logs"]) == 0
    assert "m" in capsys.readouterr().out
    assert load(path).data == path.read_bytes()


def test_a_recording_is_recognized_under_any_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.html"
    shutil.copy(GOLDEN, path)
    assert main(["show", str(path)]) == 0
    assert b"daskscope-report" in load(path).data
    capsys.readouterr()


@pytest.mark.parametrize("command", [["show"], ["open", "--no-browser"], ["export", "--to", "csv"]], ids=lambda c: c[0])
def test_a_dask_report_must_be_imported(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = DASK / "bokeh3.html"
    assert main([*command, str(path)]) == 1
    assert capsys.readouterr().err == (
        f"daskscope: {path} is a report written by Dask. Convert it to a recording with: daskscope import {path}\n"
    )


@pytest.mark.parametrize("command", [["show"], ["open", "--no-browser"], ["export", "--to", "csv"]], ids=lambda c: c[0])
@pytest.mark.parametrize("data", [b"<!doctype html><p>hello", b"\xef\xbb\xbf  <html>", b"<", b"", b"\0\xff" * 99])
def test_anything_else_is_refused(
    command: list[str], data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(data)
    assert main([*command, str(path)]) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"daskscope: {path} is ") and message.count("\n") == 1
    assert "daskscope.performance_report()" in message or "daskscope.record()" in message


def test_a_daskscope_report_need_not_be_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.html"
    path.write_bytes(report_page(make_recording({}), title="t"))
    assert main(["import", str(path)]) == 1
    assert f"is a report of daskscope. Look at it with: daskscope open {path}" in capsys.readouterr().err


PAGE = report_page(make_recording({"logs": [{"message": "a line of a log"}]}), title="t")


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Unpack to a directory that the test can check.
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
    assert load(report).data == PAGE
    assert main(["export", str(report), "--to", "csv"]) == 0
    assert "a line of a log" in (report.parent / "run-csv" / "logs.csv").read_text()
    assert main(["export", str(report), "--to", "html"]) == 1
    assert f"{report} is a report already" in capsys.readouterr().err
    assert read_source(report).source == str(report)
    assert open_recording(report)["logs"].rows == 1
    assert left_behind(report) == []


@pytest.mark.parametrize("name", ["run.gz", "run.html", "run"])
def test_a_compressed_report_is_recognized_under_any_name(report: Path, name: str) -> None:
    other = report.with_name(name)
    shutil.copy(report, other)
    assert load(other).data == PAGE


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
    # The message names the given path, not the unpacked copy.
    assert f"daskscope import {dask}" in capsys.readouterr().err
    assert main(["import", str(dask)]) == 0
    assert read_source(dask.with_name("dask-report.daskscope"))["tasks"].rows


def test_a_compressed_report_is_uploaded_unpacked(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[bytes, str]] = []

    def upload(server: object, data: bytes, *, filename: str) -> dict[str, str]:
        sent.append((data, filename))
        return {}

    monkeypatch.setattr(server, "find_server", lambda account: None)
    monkeypatch.setattr(server, "upload_report", upload)
    server.upload_file(report)
    assert sent == [(PAGE, "run.html")]


def test_a_file_that_unpacks_to_too_much_is_refused(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_NBYTES", len(PAGE))
    assert load(report).data == PAGE
    monkeypatch.setattr(source, "MAX_NBYTES", len(PAGE) - 1)
    with pytest.raises(RecordingError, match=r"run\.html\.gz unpacks to more than"):
        load(report)
    assert left_behind(report) == []


@pytest.mark.parametrize("damage", ["cut off", "changed", "nothing in it"])
def test_a_damaged_compressed_file_is_reported(report: Path, damage: str) -> None:
    data = bytearray(report.read_bytes())
    if damage == "changed":
        data[len(data) // 2] ^= 0xFF
    report.write_bytes(source.GZIP_MAGIC if damage == "nothing in it" else data if damage == "changed" else data[:-30])
    with pytest.raises(RecordingError, match=r"run\.html\.gz cannot be unpacked"):
        read_source(report)
    assert left_behind(report) == []
