"""Compare runs before and after a change, and tell noise from change."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daskscope import units
from daskscope.analysis.compare.changes import Change, PrefixChange
from daskscope.analysis.compare.comparison import (
    LABELS,
    Comparison,
    compare_parts,
    percent_text,
    recorded_text,
    value_text,
)
from daskscope.analysis.compare.flame import largest_changes
from daskscope.cli.output import Output, open_output, write, write_json, write_message
from daskscope.cli.terminal import HELP, Column, escape
from daskscope.client.analyse import find_part
from daskscope.errors import DaskscopeError
from daskscope.report.html import render_comparison

#: Exit code if a slowdown beyond --fail-over is proven.
SLOWER = 1
DEFAULT_TOP = 15


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pair", nargs="*", metavar="RUN", help=f"one run before and one after, each a {HELP}")
    parser.add_argument("--before", nargs="+", default=[], metavar="RUN", help="repeats before the change")
    parser.add_argument("--after", nargs="+", default=[], metavar="RUN", help="repeats after the change")
    parser.add_argument(
        "--computation",
        nargs="+",
        default=[],
        metavar="ID",
        help="compare one computation of each run: its ID, 1 for the first or -1 for the last; "
        "give two to compare the first before with the second after",
    )
    parser.add_argument(
        "--time",
        nargs="+",
        default=[],
        type=_time,
        metavar="START-STOP",
        help="compare these seconds from the start of each run; give two ranges to compare the first before with the second after",
    )
    parser.add_argument(
        "--fail-over",
        type=_limit,
        metavar="PERCENT",
        help="exit with 1 if a slowdown of more than this is proven, for example 10%%",
    )
    parser.add_argument("--json", action="store_true", help="print JSON; times are in microseconds")
    parser.add_argument("--markdown", action="store_true", help="print Markdown for a pull request")
    parser.add_argument(
        "--html", metavar="PATH", help="write a page with the comparison and the differential flame graph"
    )
    parser.add_argument(
        "--top", type=int, default=DEFAULT_TOP, metavar="N", help="rows per section (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    before, after = _sides(args)
    computations, times = _two(args.computation, "--computation"), _two(args.time, "--time")
    comparison = compare_parts(
        (find_part(name, computations[0] or "", times[0]) for name in before),
        (find_part(name, computations[1] or "", times[1]) for name in after),
    )
    if args.html:
        _write_page(comparison, Path(args.html))
    if args.json:
        write_json(comparison.to_dict())
    elif args.markdown:
        write(comparison.to_markdown())
    else:
        show(comparison, open_output(), args.top)
    if args.fail_over is None:
        return 0
    if not comparison.changes.can_prove:
        write_message("too few repeats to prove a slowdown, so --fail-over cannot fail.")
    slower = comparison.slowdowns(args.fail_over)
    for change in slower:
        write_message(f"{change.name} is slower by {units.percent(change.ratio or 0.0)}.")
    return SLOWER if slower else 0


def show(comparison: Comparison, out: Output, top: int) -> None:
    """Print the headline, the notes and the tables."""
    changes = comparison.changes
    out.line(escape(comparison.headline), style="bold")
    for note in comparison.notes:
        out.line(f"  {escape(note)}")
    out.heading("Totals")
    totals = [
        ("Total time", changes.wall, units.duration),
        ("Peak memory", changes.peak_memory, units.nbytes),
        ("Transferred", changes.transferred, units.nbytes),
    ]
    out.table(TOTALS, [[label, *_cells(change, text), change.verdict] for label, change, text in totals])
    out.heading("Task prefixes, the largest change of total time first")
    out.table(PREFIXES, [_prefix(prefix) for prefix in changes.prefixes[:top]])
    out.heading("Thread time")
    out.table(TOTALS[:-1], [[LABELS[change.name], *_cells(change, units.duration)] for change in changes.thread_us])
    if changes.spans_us:
        out.heading("Compute time by span")
        out.table(TOTALS[:-1], [[escape(c.name), *_cells(c, units.duration)] for c in changes.spans_us[:top]])
    functions = [row for row in largest_changes(comparison.flame, top) if row[1] != row[2]]
    if functions:
        out.heading("Functions by change of self time")
        rows = [
            [
                escape(frame[1]),
                *(value_text(1e6 * seconds, units.duration) for seconds in (before, after, after - before)),
            ]
            for frame, before, after in functions
        ]
        out.table(FUNCTIONS, rows)
    for title, differences in (("Packages", changes.versions), ("Config", changes.config)):
        if differences:
            out.heading(title)
            out.table(DIFFERENCES, [[escape(d.name), escape(d.before), escape(d.after)] for d in differences])
    if changes.code:
        out.heading("Code")
        for line in changes.code.splitlines():
            out.line(escape(line))


def _cells(change: Change, text: Callable[[float], str]) -> list[str]:
    return [*(recorded_text(value, text) for value in (change.before, change.after)), percent_text(change)]


def _prefix(prefix: PrefixChange) -> list[str]:
    counts = [value_text(value, lambda n: units.count(round(n))) for value in (prefix.count.before, prefix.count.after)]
    return [
        escape(prefix.prefix),
        counts[0] if counts[0] == counts[1] else " → ".join(counts),
        *_cells(prefix.time, units.duration),
        *_cells(prefix.cpu, units.duration),
        prefix.verdict,
    ]


def _write_page(comparison: Comparison, path: Path) -> None:
    try:
        path.write_text(render_comparison(comparison.to_dict()), encoding="utf-8")
    except OSError as error:
        raise DaskscopeError(f"{path} cannot be written: {error.strerror}. Choose another path for --html.") from None


def _sides(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the runs before and after."""
    if args.before or args.after:
        if args.pair or not args.before or not args.after:
            raise DaskscopeError("Give two runs, or --before and --after with one run or more each.")
        return args.before, args.after
    if len(args.pair) != 2:
        raise DaskscopeError("Give two runs, or --before and --after with repeats.")
    return [args.pair[0]], [args.pair[1]]


def _two(values: list[Any], option: str) -> tuple[Any, Any]:
    """Return the value of an option for each side; one value is for both."""
    if len(values) > 2:
        raise DaskscopeError(f"Give {option} one value for both sides, or one for each.")
    return (values[0], values[-1]) if values else (None, None)


def _limit(text: str) -> float:
    try:
        limit = float(text.removesuffix("%")) / 100
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a percentage such as 10%") from None
    if not 0 <= limit < 1000:
        raise argparse.ArgumentTypeError(f"{text} is not between 0% and 100000%")
    return limit


def _time(text: str) -> tuple[float, float]:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)s?-(\d+(?:\.\d+)?)s?", text)
    if found is None or float(found[1]) >= float(found[2]):
        raise argparse.ArgumentTypeError(f"{text} is not a range of seconds such as 10-20")
    return float(found[1]), float(found[2])


_BEFORE_AFTER = [Column("before"), Column("after"), Column("change")]
TOTALS = [Column("", right=False, name=True), *_BEFORE_AFTER, Column("verdict", right=False)]
PREFIXES = [
    Column("prefix", right=False, name=True),
    Column("tasks"),
    Column("time before"),
    Column("time after"),
    Column("change"),
    Column("CPU before", optional=True),
    Column("CPU after", optional=True),
    Column("change", optional=True),
    Column("verdict", right=False),
]
FUNCTIONS = [Column("function", right=False, name=True), *_BEFORE_AFTER]
DIFFERENCES = [Column("name", right=False), Column("before", right=False), Column("after", right=False)]
