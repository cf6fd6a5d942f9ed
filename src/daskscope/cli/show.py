"""Show a recording: how it ended, where the time went, what failed, and what is missing."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from daskscope import units
from daskscope.analysis.coffea import CoffeaRun, Part
from daskscope.analysis.failures import Failure
from daskscope.analysis.summary import Activity, Cluster, Computation, Prefix, Summary, extent, summarise
from daskscope.analysis.workers import Worker
from daskscope.cli.output import Output, is_terminal, open_output, write, write_json, write_message
from daskscope.cli.terminal import HELP, Cells, Column, escape, escape_lines, split_cells
from daskscope.client.analyse import find_recording
from daskscope.insights.facts import Facts
from daskscope.insights.rules import findings
from daskscope.insights.story import outcome
from daskscope.model.recording import Recording, Table
from daskscope.model.states import VERDICT_TEXT
from daskscope.model.tables import TABLES
from daskscope.report.tables import headline

#: Verdicts on workers that left as expected.
EXPECTED = ("", "retired", "closed", "restarted")
#: Last lines of a traceback that are shown without --errors.
TRACEBACK_TAIL = 6
NAMED_PACKAGES = ("python", "dask", "distributed", "numpy", "pandas")


def show_interpretation(facts: Facts, out: Output, *, top: int | None = None) -> None:
    """Print how the run ended and the findings, the most important first."""
    ended = outcome(facts)
    out.line()
    out.line(f"{escape(ended.headline)} {escape(ended.reason)}", style="bold")
    found = findings(facts)
    if found:
        out.heading("Findings")
    for number, finding in enumerate(found[:top], 1):
        out.line(f"{number}. {escape(finding.title)}", style="bold")
        out.line(f"   {escape(finding.evidence)}")
        out.line(f"   {escape(finding.advice)}")


def show_summary(summary: Summary, out: Output, *, top: int | None, facts: Facts | None = None) -> None:
    """Print the whole page."""
    _heading(summary, out)
    if facts is not None:
        show_interpretation(facts, out)
    if facts is not None:
        _coffea(facts, out, top)
    _computations(summary, out, top)
    _prefixes(summary, out, top)
    _activities(summary, out, top)
    _workers(summary, out, top)
    show_errors(summary, out, top=top, full=False)
    out.heading("Completeness")
    out.line(escape(summary.statement), style="" if summary.complete else "yellow")


def _coffea(facts: Facts, out: Output, top: int | None) -> None:
    for run in facts.coffea:
        out.heading(f"coffea: {escape(run.name)}")
        out.line(headline(run))
        losses = (
            (run.files_skipped, "file", "skipped"),
            (run.chunks_skipped, "chunk", "skipped"),
            (run.chunks_failed, "chunk", "failed"),
        )
        for count, noun, verb in losses:
            if count:
                out.line(f"{units.counted(count, noun)} {verb}.", style="yellow")
        shown = run.datasets[:top]
        if shown:
            out.table(*split_cells(DATASETS, shown))
            _remainder(out, len(shown), len(run.datasets), "datasets (the longest task time)")


def _heading(summary: Summary, out: Output) -> None:
    cluster = summary.cluster
    if cluster is None:
        out.line(f"{escape(summary.source)}: this recording has no row about a cluster.", style="bold")
        out.line("It may have been cut off before that row was written.")
    else:
        who = f" of {escape(cluster.user)}" if cluster.user else ""
        out.line(f"{escape(cluster.name or cluster.cluster)}{who}", style="bold")
        out.line(f"ID        {escape(cluster.cluster)}")
        if cluster.address:
            out.line(f"address   {escape(cluster.address)}")
        if summary.other_clusters:
            out.line(f"and {units.counted(summary.other_clusters, 'other cluster')} merged into this recording")
    if summary.start_us:
        until = units.moment(summary.end_us)
        out.line(f"recorded  {units.moment(summary.start_us)} to {until}, {units.duration(summary.duration_us)}")
    if cluster is not None:
        _state(cluster, out)


def _state(cluster: Cluster, out: Output) -> None:
    out.line(f"end       {escape(cluster.end_reason) or 'still running when this recording stopped'}")
    late = cluster.recording_us - cluster.start_us
    if cluster.start_us and late > units.MINUTE:
        out.line(
            f"          recording began {units.duration(late)} after the scheduler started; earlier tasks are unknown"
        )
    named = [f"{name} {cluster.versions[name]}" for name in NAMED_PACKAGES if name in cluster.versions]
    if named:
        out.line(f"versions  {escape(', '.join(named))}")


def _computations(summary: Summary, out: Output, top: int | None) -> None:
    out.heading("Computations")
    if not summary.computations:
        out.line("None. Nothing was computed during the recording, or the rows were lost.")
        return
    # Show the latest: people open a recording to see the last run.
    shown = summary.computations if top is None else summary.computations[-top:]
    out.table(*split_cells(COMPUTATIONS, shown))
    _remainder(out, len(shown), len(summary.computations), "computations (the latest)")


def _code_or_span(computation: Computation) -> str:
    tags = " / ".join(tag for tag in computation.span_tags if tag != "default")
    return escape(computation.code or tags) or units.NOTHING


def _prefixes(summary: Summary, out: Output, top: int | None) -> None:
    out.heading("Task prefixes")
    if not summary.prefixes:
        out.line("None. No task finished during the recording, or task rows are missing (see Completeness).")
        return
    shown = summary.prefixes[:top]
    out.table(*split_cells(PREFIXES, shown))
    _remainder(out, len(shown), len(summary.prefixes), "prefixes (the longest compute time)")


def _activities(summary: Summary, out: Output, top: int | None) -> None:
    out.heading("Activities")
    if not summary.activities:
        out.line("None. Fine performance metrics were not recorded, or the workers did nothing.")
        return
    by_unit: dict[str, list[Activity]] = {}
    for activity in summary.activities:
        by_unit.setdefault(activity.unit, []).append(activity)
    shown = [activity for activities in by_unit.values() for activity in activities[:top]]
    out.table(*split_cells(ACTIVITIES, shown))
    _remainder(out, len(shown), len(summary.activities), "activities (the largest of each unit)")


def _workers(summary: Summary, out: Output, top: int | None) -> None:
    out.heading("Workers")
    if not summary.workers:
        out.line("None. No worker joined during the recording, or the rows were lost.")
        return
    shown = sorted(summary.workers, key=lambda worker: worker.verdict in EXPECTED)[:top]
    out.table(*split_cells(WORKERS, shown))
    for worker in shown:
        if worker.verdict not in EXPECTED:
            _evidence(worker, out)
    _remainder(out, len(shown), len(summary.workers), "workers (lost workers first)")


def _evidence(worker: Worker, out: Output) -> None:
    reason = escape(worker.evidence) or "no evidence was recorded"
    out.line(f"  {escape(worker.worker)}: {escape(VERDICT_TEXT.get(worker.verdict, worker.verdict))}: {reason}")
    if worker.processing_count:
        keys = ", ".join(map(escape, worker.processing[:3])) or "keys not recorded"
        more = " …" if worker.processing_count > len(worker.processing[:3]) else ""
        lost = f"; {units.counted(worker.lost_count, 'result')} lost with it" if worker.lost_count else ""
        out.line(f"    was processing {units.counted(worker.processing_count, 'task')}: {keys}{more}{lost}")


def show_errors(summary: Summary, out: Output, *, top: int | None, full: bool) -> None:
    """Print the errors grouped by cause, each with the end of its traceback or with ``full`` all of it."""
    out.heading("Errors")
    if not summary.errors:
        out.line(_why_no_errors(summary))
        return
    shown = summary.errors[:top]
    for number, failure in enumerate(shown):
        if number:
            out.line()
        _failure(failure, out, full=full)
    _remainder(out, len(shown), len(summary.errors), "error groups (the most frequent)")


def _why_no_errors(summary: Summary) -> str:
    failed = sum(prefix.errors + prefix.retries for prefix in summary.prefixes)
    if failed:
        return f"{units.counted(failed, 'execution')} failed, but their errors are not in this recording."
    if not summary.complete:
        return "None in this recording, but it is incomplete (see Completeness)."
    return "None. No task failed during the recording."


def _failure(failure: Failure, out: Output, *, full: bool) -> None:
    retried = f", {units.count(failure.retried)} retried" if failure.retried else ""
    prefixes = ", ".join(escape(prefix) or units.NOTHING for prefix in failure.prefixes)
    times = units.counted(failure.count, "time")
    out.line(f"{escape(failure.type)} {times}{retried}, in {prefixes}", style="red")
    message = escape_lines(failure.message)
    for line in message if full else message[:3]:
        out.line(f"  {line}")
    if (failure.cause_type, failure.cause_message) != (failure.type, failure.message) and failure.cause_type:
        out.line(f"  caused by {escape(failure.cause_type)}: {escape(failure.cause_message)}")
    span = units.moment(failure.first_us)
    if units.moment(failure.last_us) != span:
        span += f" to {units.moment(failure.last_us)}"
    out.line(f"  {span}, for example {escape(failure.key)} on {escape(failure.worker) or 'an unknown worker'}")
    _traceback(failure, out, full=full)


def _traceback(failure: Failure, out: Output, *, full: bool) -> None:
    lines = escape_lines(failure.traceback.rstrip()) if failure.traceback else []
    if not lines:
        out.line("  no traceback was recorded")
        return
    left_out = 0 if full else max(0, len(lines) - TRACEBACK_TAIL)
    if left_out:
        out.line(f"    … {units.counted(left_out, 'line')} above; --errors shows them", style="dim")
    for line in lines[left_out:]:
        out.line(f"    {line}", style="dim")


def _remainder(out: Output, shown: int, total: int, noun: str) -> None:
    if shown < total:
        out.line(f"{shown:,} of {total:,} {noun}; --top 0 shows all.", style="dim")


DATASETS: Cells[Part] = [
    (Column("dataset", right=False, name=True), lambda p: escape(p.name) or units.NOTHING),
    (Column("events"), lambda p: units.count(p.events) if p.events >= 0 else units.NOTHING),
    (Column("chunks"), lambda p: units.count(p.chunks)),
    (Column("read"), lambda p: units.nbytes(p.bytes_read) if p.bytes_read >= 0 else units.NOTHING),
    (Column("task time"), lambda p: units.duration(p.task_us)),
    (Column("process()"), lambda p: units.duration(p.process_us) if p.process_us >= 0 else units.NOTHING),
    (Column("slowest", optional=True), lambda p: units.duration(p.slowest_us)),
]
COMPUTATIONS: Cells[Computation] = [
    (Column("started", right=False), lambda c: units.moment(c.start_us)),
    (Column("state", right=False), lambda c: escape(c.state)),
    (Column("wall"), lambda c: units.duration(c.wall_us)),
    (Column("tasks"), lambda c: units.count(c.tasks)),
    (Column("errors"), lambda c: units.count(c.errors)),
    (Column("code or span", right=False, name=True), _code_or_span),
    (Column("id", right=False, optional=True), lambda c: escape(c.computation)),
]
PREFIXES: Cells[Prefix] = [
    (Column("prefix", right=False, name=True), lambda p: escape(p.prefix) or units.NOTHING),
    (Column("count"), lambda p: units.count(p.count)),
    (Column("total"), lambda p: units.duration(p.total_us)),
    (Column("mean", optional=True), lambda p: units.duration(p.mean_us)),
    (Column("p50", optional=True), lambda p: units.duration(p.p50_us)),
    (Column("p95"), lambda p: units.duration(p.p95_us)),
    (Column("max"), lambda p: units.duration(p.max_us)),
    (Column("bytes"), lambda p: units.nbytes(p.nbytes)),
    (Column("errors"), lambda p: units.count(p.errors)),
    (Column("retries", optional=True), lambda p: units.count(p.retries)),
    (Column("transfer", optional=True), lambda p: units.duration(p.transfer_us)),
    (Column("disk", optional=True), lambda p: units.duration(p.disk_us)),
]
ACTIVITIES: Cells[Activity] = [
    (Column("total"), lambda a: escape(units.quantity(a.total, a.unit))),
    (Column("context", right=False), lambda a: escape(a.context)),
    (Column("activity", right=False), lambda a: escape(a.activity)),
    (Column("prefix", right=False, name=True), lambda a: escape(a.prefix) or units.NOTHING),
]
WORKERS: Cells[Worker] = [
    (Column("worker", right=False, name=True), lambda w: escape(w.worker)),
    (Column("name", right=False, optional=True), lambda w: escape(w.name) or units.NOTHING),
    (Column("threads"), lambda w: units.count(w.threads)),
    (Column("tasks"), lambda w: units.count(w.tasks)),
    (Column("busy"), lambda w: units.duration(w.busy_us)),
    (Column("uptime"), lambda w: units.duration(w.life_us)),
    (Column("peak memory"), lambda w: units.nbytes(w.peak_memory) if w.peak_memory else units.NOTHING),
    (Column("left", right=False), lambda w: escape(VERDICT_TEXT.get(w.verdict, w.verdict)) or "connected"),
]


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
        "coffea": [_coffea_json(run) for run in facts.coffea],
        "findings": [asdict(finding) for finding in findings(facts)],
    }


def _coffea_json(run: CoffeaRun) -> dict[str, Any]:
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
