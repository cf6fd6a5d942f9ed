"""Show what a recording says: how it ended, where the time went, what failed, and what is missing."""

from __future__ import annotations

import argparse
import json
from typing import Any

from daskscope.analysis.summary import summarise
from daskscope.cli.output import complain, open_output, write
from daskscope.cli.show_sections import show_errors, show_summary
from daskscope.cli.show_table import show_table
from daskscope.cli.source import HELP, find_recording
from daskscope.model.tables import TABLES

DEFAULT_TOP = 10
DEFAULT_LIMIT = 20


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=HELP)
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument(
        "--top",
        type=_count,
        default=DEFAULT_TOP,
        metavar="N",
        help="rows per section, 0 for all (default: %(default)s)",
    )
    parser.add_argument("--errors", action="store_true", help="print only the errors, with whole tracebacks")
    parser.add_argument("--table", choices=list(TABLES), metavar="NAME", help="print the rows of one table")
    parser.add_argument(
        "--limit",
        type=_count,
        default=DEFAULT_LIMIT,
        metavar="N",
        help="rows of --table, 0 for all (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    recording = find_recording(args.path)
    if args.table:
        shown = show_table(recording[args.table], args.limit or None, as_json=args.json)
        total = recording[args.table].rows
        if shown < total:
            complain(f"{shown:,} of {total:,} rows; --limit 0 prints all.")
        return 0
    summary = summarise(recording)
    if args.json:
        write_json(summary.to_dict())
    elif args.errors:
        show_errors(summary, open_output(), top=args.top or None, whole=True)
    else:
        show_summary(summary, open_output(), top=args.top or None)
    return 0


def write_json(data: Any) -> None:
    write(json.dumps(data, indent=2) + "\n")


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return number
