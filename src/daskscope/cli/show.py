"""Show a recording: how it ended, where the time went, what failed, and what is missing."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from daskscope.analysis.coffea import CoffeaRun
from daskscope.analysis.summary import extent, summarise
from daskscope.cli.output import is_terminal, open_output, write, write_json, write_message
from daskscope.cli.show_sections import show_errors, show_summary
from daskscope.cli.source import HELP
from daskscope.cli.terminal import escape
from daskscope.client.source import find_recording
from daskscope.insights.facts import Facts
from daskscope.insights.rules import findings
from daskscope.insights.story import outcome
from daskscope.model.recording import Recording
from daskscope.model.table import Table
from daskscope.model.tables import TABLES

DEFAULT_TOP = 10
DEFAULT_LIMIT = 20


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=HELP)
    parser.add_argument("--json", action="store_true", help="print JSON; times are integer microseconds (…_us)")
    parser.add_argument(
        "--top",
        type=_count,
        default=DEFAULT_TOP,
        metavar="N",
        help="rows per section, 0 for all (default: %(default)s)",
    )
    parser.add_argument("--errors", action="store_true", help="print only the errors, with full tracebacks")
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
            write_message(f"{shown:,} of {total:,} rows; --limit 0 prints all.")
        return 0
    summary = summarise(recording)
    if args.json:
        write_json({**summary.to_dict(), **interpretation(_facts(recording))})
    elif args.errors:
        show_errors(summary, open_output(), top=args.top or None, full=True)
    else:
        show_summary(summary, open_output(), top=args.top or None, facts=_facts(recording))
    return 0


def _facts(recording: Recording) -> Facts:
    return Facts.of(recording, *extent(recording))


def interpretation(facts: Facts) -> dict[str, Any]:
    """Return how the run ended, its thread time by category and reason, and the findings, as plain data."""
    split = facts.split
    return {
        "outcome": asdict(outcome(facts)),
        "thread_time_us": {"total": split.thread_us, **split.split},
        "waiting_us": split.waiting_us,
        "idle_us": split.idle.us,
        "coffea": [_coffea(run) for run in facts.coffea],
        "findings": [asdict(finding) for finding in findings(facts)],
    }


def _coffea(run: CoffeaRun) -> dict[str, Any]:
    """Return the sums of a coffea run as plain data, without its chunks: those are rows of the table ``chunks``."""
    left_out = ("records", "points")
    plain = {name: value for name, value in asdict(replace(run, records=())).items() if name not in left_out}
    derived = ("wall_us", "bytes_per_event", "read_amplification", "overhead_us")
    return {**plain, **{name: getattr(run, name) for name in derived}}


def show_table(table: Table, limit: int | None, *, as_json: bool) -> int:
    """Print the first ``limit`` rows and return how many there were.

    In a pipe the rows are tab-separated. On a terminal, where twenty columns don't fit, each row is a list of its values.
    """
    shown = table.take(np.arange(min(table.rows, limit if limit is not None else table.rows)))
    rows = [dict(zip(shown, values, strict=True)) for values in shown.records(*shown)]
    if as_json:
        write_json({"table": table.name, "total": table.rows, "rows": [_finite(row) for row in rows]})
    elif is_terminal():
        _write_lists(rows, table)
    else:
        write("\t".join(shown) + "\n")
        for row in rows:
            write("\t".join(map(_cell, row.values())) + "\n")
    return len(rows)


def _write_lists(rows: list[dict[str, Any]], table: Table) -> None:
    """Write each row as a list of its values, without the empty ones."""
    size = max(map(len, table))
    if not rows:
        write(f"The recording has no {table.name} ({table.definition.row}).\n")
    for number, row in enumerate(rows, start=1):
        write(f"{table.name} row {number:,}\n")
        for name, value in row.items():
            if value not in ("", 0, []):
                write(f"  {name:<{size}}  {_cell(value)}\n")


def _cell(value: Any) -> str:
    return escape(json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value))


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in row.items()}


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return number
