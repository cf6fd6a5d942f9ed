"""Convert a recording to Parquet, CSV, JSON, Perfetto, speedscope, collapsed stacks, or an HTML report."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from daskscope.cli.output import write
from daskscope.cli.terminal import HELP
from daskscope.client.analyse import find_recording
from daskscope.errors import DaskscopeError
from daskscope.model.recording import Recording
from daskscope.model.tables import TABLES
from daskscope.report.document import report_page
from daskscope.report.exports import (
    write_collapsed,
    write_csv,
    write_json,
    write_parquet,
    write_perfetto,
    write_speedscope,
)
from daskscope.report.source import content_kind, unpacked

#: Formats that write a directory with one file per table.
DIRECTORIES: dict[str, Callable[[Recording, Path, Iterable[str]], list[Path]]] = {
    "parquet": write_parquet,
    "csv": write_csv,
    "json": write_json,
}


def _html(recording: Recording, path: Path) -> Path:
    path.write_bytes(report_page(recording, title=Path(recording.source).stem))
    return path


#: Formats that write one file, with its suffix.
FILES: dict[str, tuple[str, Callable[[Recording, Path], Path]]] = {
    "html": (".html", _html),
    "perfetto": (".trace.json", write_perfetto),
    "speedscope": (".speedscope.json", write_speedscope),
    "collapsed": (".collapsed.txt", write_collapsed),
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=HELP)
    parser.add_argument("--to", required=True, choices=[*DIRECTORIES, *FILES], metavar="FORMAT", help=_formats())
    parser.add_argument("--output", metavar="PATH", help="file or directory to write (default: named after PATH)")
    parser.add_argument(
        "--table", action="append", choices=list(TABLES), metavar="NAME", help="table to export (repeatable)"
    )


def run(args: argparse.Namespace) -> int:
    with unpacked(Path(args.path)) as file:
        stem = file.stem
        if args.to == "html" and content_kind(file) == "report":
            # A report holds only part of the recording: converting it again would lose data.
            raise DaskscopeError(f"{args.path} is a report already: copy it.")
    recording = find_recording(args.path)
    try:
        if args.to in FILES:
            if args.table:
                raise DaskscopeError(
                    f"--table works with {', '.join(DIRECTORIES)}; {args.to} is one file with everything."
                )
            suffix, writer = FILES[args.to]
            paths = [writer(recording, Path(args.output or stem + suffix))]
        else:
            tables = args.table or [name for name in recording if recording[name].rows]
            paths = DIRECTORIES[args.to](recording, Path(args.output or f"{stem}-{args.to}"), tables)
    except OSError as error:
        raise DaskscopeError(f"{error.filename} cannot be written: {error.strerror}. Choose --output.") from None
    write("".join(f"{path}\n" for path in paths))
    return 0


def _formats() -> str:
    return f"{', '.join(DIRECTORIES)} (one file per table), {', '.join(FILES)} (one file)"
