"""Convert a report written by Dask (dask-report.html) to a recording."""

from __future__ import annotations

import argparse
from pathlib import Path

from daskscope.cli.output import write
from daskscope.errors import RecordingError
from daskscope.report.html import REPORT_TAG
from daskscope.report.read_dask_report import read_dask_report
from daskscope.report.source import unpacked
from daskscope.units import counted
from daskscope.wire.file import SUFFIX, frames_of_rows
from daskscope.wire.layout import FILE_MAGIC


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="REPORT", help="HTML file written by distributed.performance_report()")
    parser.add_argument(
        "--output", metavar="PATH", help=f"recording to write (default: the report's name with {SUFFIX})"
    )


def run(args: argparse.Namespace) -> int:
    source = Path(args.path)
    try:
        with unpacked(source) as file:
            page, stem = file.read_text(encoding="utf-8", errors="replace"), file.stem
    except OSError as error:
        raise RecordingError(f"{source} cannot be read: {error.strerror}. Give the path of a report.") from None
    if REPORT_TAG in page:
        raise RecordingError(f"{source} is a report of daskscope. Look at it with: daskscope open {source}")
    rows = read_dask_report(page)
    target = Path(args.output or source.with_name(stem + SUFFIX))
    cluster = f"imported-{stem}"[:100]
    try:
        target.write_bytes(FILE_MAGIC + b"".join(frames_of_rows(rows, cluster=cluster, epoch=1)))
    except OSError as error:
        raise RecordingError(f"{target} cannot be written: {error.strerror}. Choose another --output.") from None
    write(f"{target}: {counted(len(rows['tasks']), 'task')}. Look at it with: daskscope open {target}\n")
    return 0
