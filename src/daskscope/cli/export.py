"""Write a recording in the format of another tool: Parquet, CSV, JSON, Perfetto, speedscope, collapsed stacks, or a report."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from daskscope.cli.output import write
from daskscope.cli.source import HELP, find_recording
from daskscope.errors import DaskscopeError
from daskscope.exports.columns import write_csv, write_json, write_parquet
from daskscope.exports.perfetto import write_perfetto
from daskscope.exports.stacks import write_collapsed, write_speedscope
from daskscope.model.recording import Recording
from daskscope.model.tables import TABLES
from daskscope.report.compressed import unpacked
from daskscope.report.document import report_page
from daskscope.report.source import holding

#: Formats of a file a table, in a directory.
DIRECTORIES: dict[str, Callable[[Recording, Path, Iterable[str]], list[Path]]] = {
    "parquet": write_parquet,
    "csv": write_csv,
    "json": write_json,
}


def _html(recording: Recording, path: Path) -> Path:
    path.write_bytes(report_page(recording, title=Path(recording.source).stem))
    return path


#: Formats of one file, and how its name ends.
FILES: dict[str, tuple[str, Callable[[Recording, Path], Path]]] = {
    "html": (".html", _html),
    "perfetto": (".trace.json", write_perfetto),
    "speedscope": (".speedscope.json", write_speedscope),
    "collapsed": (".collapsed.txt", write_collapsed),
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=HELP)
    parser.add_argument("--to", required=True, choices=[*DIRECTORIES, *FILES], metavar="FORMAT", help=_formats())
    parser.add_argument("--output", metavar="PATH", help="the file, or the directory for a file a table")
    parser.add_argument(
        "--table", action="append", choices=list(TABLES), metavar="NAME", help="only this table; may be given again"
    )


def run(args: argparse.Namespace) -> int:
    with unpacked(Path(args.path)) as file:
        stem = file.stem
        if args.to == "html" and holding(file) == "report":
            # Made anew from what a page holds, it would say less than the page does.
            raise DaskscopeError(f"{args.path} is a report already: copy it.")
    recording = find_recording(args.path)
    try:
        if args.to in FILES:
            if args.table:
                raise DaskscopeError(
                    f"--table goes with {', '.join(DIRECTORIES)}; {args.to} is one file of everything."
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
    return f"{', '.join(DIRECTORIES)} (a file a table), {', '.join(FILES)} (one file)"
