"""The page ``daskscope show`` prints, section by section; an empty section says what is absent and why that may be."""

from __future__ import annotations

from collections.abc import Sequence

from daskscope import units
from daskscope.analysis.failures import Failure
from daskscope.analysis.prefixes import Activity
from daskscope.analysis.summary import Cluster, Computation, Summary
from daskscope.analysis.workers import Worker
from daskscope.cli.escape import escape, escape_lines
from daskscope.cli.layout import Column
from daskscope.cli.output import Output

#: How a worker leaves when nothing is wrong.
PEACEFUL = ("", "retired", "closed", "restarted")
#: Lines of a traceback that say where and what; the rest is behind --errors.
TRACEBACK_TAIL = 6
NAMED_PACKAGES = ("python", "dask", "distributed", "numpy", "pandas")


def show_summary(summary: Summary, out: Output, *, top: int | None) -> None:
    """The whole page."""
    _heading(summary, out)
    _computations(summary, out, top)
    _prefixes(summary, out, top)
    _activities(summary, out, top)
    _workers(summary, out, top)
    show_errors(summary, out, top=top, whole=False)
    out.heading("Completeness")
    out.line(escape(summary.statement), style="" if summary.complete else "yellow")


def _heading(summary: Summary, out: Output) -> None:
    cluster = summary.cluster
    if cluster is None:
        out.line(f"{escape(summary.source)}: no cluster is described in this recording.", style="bold")
        out.line("It may have been cut off before the first description was written.")
    else:
        who = f" of {escape(cluster.user)}" if cluster.user else ""
        out.line(f"{escape(cluster.name or cluster.cluster)}{who}", style="bold")
        out.line(f"id        {escape(cluster.cluster)}")
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
    ended = "still running when this recording stopped" if cluster.state == "running" else escape(cluster.state)
    out.line(f"state     {ended}")
    late = cluster.recording_us - cluster.start_us
    if cluster.start_us and late > units.MINUTE:
        out.line(
            f"          recording began {units.duration(late)} after the scheduler; what happened before is not known"
        )
    named = [f"{name} {cluster.versions[name]}" for name in NAMED_PACKAGES if name in cluster.versions]
    if named:
        out.line(f"versions  {escape(', '.join(named))}")


def _computations(summary: Summary, out: Output, top: int | None) -> None:
    out.heading("Computations")
    if not summary.computations:
        out.line("None. Nothing was computed while this was recorded, or their rows were lost.")
        return
    # The latest are what people come back for.
    shown = summary.computations if top is None else summary.computations[-top:]
    out.table(
        [
            Column("started", right=False),
            Column("state", right=False),
            Column("wall"),
            Column("tasks"),
            Column("errors"),
            Column("code or span", right=False, name=True),
            Column("id", right=False, optional=True),
        ],
        [
            (
                units.moment(c.start_us),
                escape(c.state),
                units.duration(c.wall_us),
                units.count(c.tasks),
                _some(c.errors),
                _what(c),
                escape(c.computation),
            )
            for c in shown
        ],
    )
    _rest(out, len(shown), len(summary.computations), "computations, the latest")


def _what(computation: Computation) -> str:
    tags = " / ".join(tag for tag in computation.span_tags if tag != "default")
    return escape(computation.code or tags) or units.NOTHING


def _prefixes(summary: Summary, out: Output, top: int | None) -> None:
    out.heading("Task prefixes")
    if not summary.prefixes:
        out.line("None. No task finished while this was recorded, or task rows are missing (see Completeness).")
        return
    shown = summary.prefixes[:top]
    out.table(
        [
            Column("prefix", right=False, name=True),
            Column("count"),
            Column("total"),
            Column("mean", optional=True),
            Column("p50", optional=True),
            Column("p95"),
            Column("max"),
            Column("bytes"),
            Column("errors"),
            Column("retries", optional=True),
            Column("transfer", optional=True),
            Column("disk", optional=True),
        ],
        [
            (
                escape(p.prefix) or units.NOTHING,
                units.count(p.count),
                units.duration(p.total_us),
                units.duration(p.mean_us),
                units.duration(p.p50_us),
                units.duration(p.p95_us),
                units.duration(p.max_us),
                units.nbytes(p.nbytes),
                _some(p.errors),
                _some(p.retries),
                units.duration(p.transfer_us),
                units.duration(p.disk_us),
            )
            for p in shown
        ],
    )
    _rest(out, len(shown), len(summary.prefixes), "prefixes, the longest-computing")


def _activities(summary: Summary, out: Output, top: int | None) -> None:
    out.heading("Activities")
    if not summary.activities:
        out.line("None. Dask's fine performance metrics were not recorded, or the workers did nothing.")
        return
    by_unit: dict[str, list[Activity]] = {}
    for activity in summary.activities:
        by_unit.setdefault(activity.unit, []).append(activity)
    shown = [activity for activities in by_unit.values() for activity in activities[:top]]
    out.table(
        [
            Column("total"),
            Column("context", right=False),
            Column("activity", right=False),
            Column("prefix", right=False, name=True),
        ],
        [
            (
                escape(units.quantity(a.total, a.unit)),
                escape(a.context),
                escape(a.activity),
                escape(a.prefix) or units.NOTHING,
            )
            for a in shown
        ],
    )
    _rest(out, len(shown), len(summary.activities), "activities, the largest of each unit")


def _workers(summary: Summary, out: Output, top: int | None) -> None:
    out.heading("Workers")
    if not summary.workers:
        out.line("None. No worker joined while this was recorded, or their rows were lost.")
        return
    shown = sorted(summary.workers, key=lambda worker: worker.verdict in PEACEFUL)[:top]
    out.table(
        [
            Column("worker", right=False, name=True),
            Column("name", right=False, optional=True),
            Column("threads"),
            Column("tasks"),
            Column("busy"),
            Column("lived"),
            Column("peak memory"),
            Column("left", right=False),
        ],
        [_worker(worker) for worker in shown],
    )
    for worker in shown:
        if worker.verdict not in PEACEFUL:
            _evidence(worker, out)
    _rest(out, len(shown), len(summary.workers), "workers, those in trouble first")


def _worker(worker: Worker) -> Sequence[str]:
    return (
        escape(worker.worker),
        escape(worker.name) or units.NOTHING,
        units.count(worker.threads),
        units.count(worker.tasks),
        units.duration(worker.busy_us),
        units.duration(worker.life_us),
        units.nbytes(worker.peak_memory) if worker.peak_memory else units.NOTHING,
        escape(worker.verdict) or "connected",
    )


def _evidence(worker: Worker, out: Output) -> None:
    reason = escape(worker.evidence) or "no evidence was recorded"
    out.line(f"  {escape(worker.worker)}: {escape(worker.verdict)}: {reason}")
    if worker.processing_count:
        keys = ", ".join(map(escape, worker.processing[:3])) or "keys not recorded"
        more = " …" if worker.processing_count > len(worker.processing[:3]) else ""
        lost = f"; {units.counted(worker.lost_count, 'result')} lost with it" if worker.lost_count else ""
        out.line(f"    was processing {units.counted(worker.processing_count, 'task')}: {keys}{more}{lost}")


def show_errors(summary: Summary, out: Output, *, top: int | None, whole: bool) -> None:
    """Failures with the same cause as one, each with the end of its traceback or the whole of it."""
    out.heading("Errors")
    if not summary.errors:
        out.line(_why_no_errors(summary))
        return
    shown = summary.errors[:top]
    for number, failure in enumerate(shown):
        if number:
            out.line()
        _failure(failure, out, whole=whole)
    _rest(out, len(shown), len(summary.errors), "errors, the most frequent")


def _why_no_errors(summary: Summary) -> str:
    failed = sum(prefix.errors + prefix.retries for prefix in summary.prefixes)
    if failed:
        return f"{units.counted(failed, 'execution')} failed, but what failed is not in this recording."
    if not summary.complete:
        return "None, as far as this recording goes; it is incomplete (see Completeness)."
    return "None. No task failed while this was recorded."


def _failure(failure: Failure, out: Output, *, whole: bool) -> None:
    retried = f", {units.count(failure.retried)} of them retried" if failure.retried else ""
    prefixes = ", ".join(escape(prefix) or units.NOTHING for prefix in failure.prefixes)
    times = units.counted(failure.count, "time")
    out.line(f"{escape(failure.type)} {times}{retried}, in {prefixes}", style="red")
    message = escape_lines(failure.message)
    for line in message if whole else message[:3]:
        out.line(f"  {line}")
    if (failure.cause_type, failure.cause_message) != (failure.type, failure.message) and failure.cause_type:
        out.line(f"  caused by {escape(failure.cause_type)}: {escape(failure.cause_message)}")
    span = units.moment(failure.first_us)
    if units.moment(failure.last_us) != span:
        span += f" to {units.moment(failure.last_us)}"
    out.line(f"  {span}, for example {escape(failure.key)} on {escape(failure.worker) or 'an unknown worker'}")
    _traceback(failure, out, whole=whole)


def _traceback(failure: Failure, out: Output, *, whole: bool) -> None:
    lines = escape_lines(failure.traceback.rstrip()) if failure.traceback else []
    if not lines:
        out.line("  no traceback was recorded")
        return
    left_out = 0 if whole else max(0, len(lines) - TRACEBACK_TAIL)
    if left_out:
        out.line(f"    … {units.counted(left_out, 'line')} above, shown by --errors", style="dim")
    for line in lines[left_out:]:
        out.line(f"    {line}", style="dim")


def _rest(out: Output, shown: int, total: int, what: str) -> None:
    if shown < total:
        out.line(f"{shown:,} of {total:,} {what}; --top 0 shows all.", style="dim")


def _some(n: int) -> str:
    """A count that matters only where it is not zero."""
    return units.count(n) if n else units.NOTHING
