"""The command line as a whole: help, versions, exit codes, one line for what went wrong."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner
from tests.helpers.samples import write_frames

from daskscope import __version__
from daskscope.cli import main as cli
from daskscope.cli.main import COMMANDS, build_parser, command_name, dask_scope, load_command, main
from daskscope.errors import MissingExtra
from daskscope.testing import make_frames
from daskscope.wire.layout import FILE_MAGIC


def add_command(monkeypatch: pytest.MonkeyPatch, run: object) -> None:
    """Add a command named ``boom``."""
    module = ModuleType("daskscope.cli.boom", "Goes wrong.\n\nMore.")
    vars(module).update(configure=lambda parser: None, run=run)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(cli, "COMMANDS", ["boom"])


def raising(error: BaseException) -> object:
    def run(args: argparse.Namespace) -> int:
        raise error

    return run


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: daskscope ")


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])

    assert (caught.value.code, capsys.readouterr().out) == (0, f"daskscope {__version__}\n")


def test_every_command_says_in_a_sentence_what_it_does() -> None:
    text = " ".join(build_parser().format_help().split())

    for name in COMMANDS:
        assert f"{command_name(name)} {(load_command(name).__doc__ or '').splitlines()[0]}" in text


def test_a_mistyped_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["shwo"])

    assert caught.value.code == 2
    assert "shwo" in capsys.readouterr().err


def test_an_error_a_user_can_act_on_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = MissingExtra("rich\x1b[31m\nx", "terminal", "This")
    add_command(monkeypatch, raising(error))

    assert main(["boom"]) == 1
    assert capsys.readouterr().err == (
        "daskscope: This needs rich\\x1b[31m\\nx. Install it with: pip install 'daskscope[terminal]'\n"
    )


def test_a_bug_of_ours_stays_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    add_command(monkeypatch, raising(ZeroDivisionError("bug")))

    with pytest.raises(ZeroDivisionError, match="bug"):
        main(["boom"])


def test_an_interrupt_is_exit_code_130(monkeypatch: pytest.MonkeyPatch) -> None:
    add_command(monkeypatch, raising(KeyboardInterrupt()))

    assert main(["boom"]) == 130


def test_the_exit_code_is_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    add_command(monkeypatch, lambda args: 7)

    assert main(["boom"]) == 7


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"hello", "is not a daskscope recording. Recordings are written by daskscope.record()."),
        (b"", "is not a daskscope recording. Recordings are written by daskscope.record()."),
        (
            FILE_MAGIC[:-1] + b"\x09",
            "was written by a newer daskscope (file format 9, this one reads 1). Upgrade with: pip install --upgrade daskscope",
        ),
    ],
)
def test_a_file_that_cannot_be_shown_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, line: str
) -> None:
    path = tmp_path / "x.daskscope"
    path.write_bytes(content)

    assert main(["show", str(path)]) == 1
    assert capsys.readouterr() == ("", f"daskscope: {path} {line}\n")


def test_a_missing_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.daskscope"

    assert main(["show", str(path)]) == 1
    assert capsys.readouterr().err == (
        f"daskscope: {path} does not exist. Record a run with: with daskscope.record('run.daskscope'): ...\n"
    )


def test_a_directory_without_recordings_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"daskscope: {tmp_path} is a directory without .daskscope files. Name a recording file.\n"
    )


def run(*arguments: str, encoding: str = "utf-8", stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    code = "import sys; from daskscope.cli.main import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=environment,
        check=False,
    )


def test_a_reader_that_goes_away_makes_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "x.daskscope"
    write_frames(path, make_frames({"logs": [{"message": "m" * 100}] * 5_000}))
    read_end, write_end = os.pipe()
    os.close(read_end)

    finished = run("show", str(path), "--table", "logs", "--limit", "0", stdout=write_end)
    os.close(write_end)
    assert (finished.returncode, finished.stderr) == (141, b"")


def test_a_terminal_without_unicode_gets_escapes(tmp_path: Path) -> None:
    path = tmp_path / "x.daskscope"
    write_frames(path, make_frames({"clusters": [{"cluster": "c", "name": "Zoë", "recording_us": 1}]}))

    finished = run("show", str(path), encoding="ascii")
    assert finished.stderr == b""
    assert finished.stdout.startswith(b"Zo\\xeb\n")


def test_dask_scope_forwards_everything(tmp_path: Path) -> None:
    result = CliRunner().invoke(dask_scope, ["show", "--help"])
    missing = CliRunner().invoke(dask_scope, ["show", str(tmp_path / "nothing"), "--json"])

    assert (result.exit_code, result.output.split("[")[0]) == (0, "usage: dask scope show ")
    assert missing.exit_code == 1


def test_dask_scope_is_called_scope() -> None:
    assert dask_scope.name == "scope"
