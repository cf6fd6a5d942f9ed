"""Numbers for Prometheus: the server itself and the fleet as a whole. No label names a cluster, a user or an account:
their number has no bound, and a scrape must stay small."""

from __future__ import annotations

import sqlalchemy as sa

from daskscope.server.services import Services
from daskscope.storage import schema
from daskscope.storage.clusters import STATES, state_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Counters the server keeps: name, label name, and what they count.
COUNTERS = {
    "rows": ("", "Rows stored"),
    "batches": ("kind", "Batches received"),
    "commits": ("", "Transactions of the writer"),
    "commit_seconds": ("", "Seconds the writer spent in transactions"),
    "commit_failures": ("", "Transactions that failed"),
    "overloaded": ("", "Bodies refused because too many waited"),
    "over_quota": ("", "Bodies refused because a token had sent too much"),
    "compactions": ("", "Runs compacted into Parquet"),
    "compacted_rows": ("", "Rows written to Parquet"),
    "requests": ("route", "Requests answered, by route and kind of status"),
    "request_seconds": ("route", "Seconds spent on them"),
}


def exposition(services: Services) -> str:
    """All numbers in Prometheus's text format."""
    lines: list[str] = []
    for name, (label, meaning) in COUNTERS.items():
        full = f"daskscope_{name}_total"
        lines += [f"# HELP {full} {meaning}", f"# TYPE {full} counter"]
        lines += [
            f'{full}{{{label}="{value_label}"}} {value:.15g}' if label else f"{full} {value:.15g}"
            for counter, value_label, value in services.counters.items()
            if counter == name
        ]
    now = services.clock()
    state = state_of(now, services.settings.lost_after * 1_000_000).label("state")
    runs = schema.runs
    with services.database.read() as connection:
        counts = {
            row.state: row.n for row in connection.execute(sa.select(state, sa.func.count().label("n")).group_by(state))
        }
        sums = connection.execute(
            sa.select(sa.func.sum(runs.c.tasks), sa.func.sum(runs.c.exceptions), sa.func.sum(runs.c.buffered_nbytes))
        ).one()
        live = connection.execute(
            sa.select(sa.func.sum(runs.c.workers), sa.func.sum(runs.c.threads)).where(state.in_(("running", "idle")))
        ).one()
    _gauge(lines, "clusters", "Clusters by state", {f'{{state="{name}"}}': counts.get(name, 0) for name in STATES})
    _gauge(lines, "tasks", "Executions recorded in all clusters kept", {"": sums[0] or 0})
    _gauge(lines, "exceptions", "Failures recorded in all clusters kept", {"": sums[1] or 0})
    _gauge(lines, "buffered_bytes", "Bytes of batches not compacted yet", {"": sums[2] or 0})
    _gauge(lines, "workers", "Workers of clusters that run", {"": live[0] or 0})
    _gauge(lines, "threads", "Threads of clusters that run", {"": live[1] or 0})
    _gauge(lines, "waiting_requests", "Bodies that wait for the writer", {"": services.writer.waiting})
    _gauge(lines, "live_pages", "Pages that wait for news", {"": services.live.listening})
    _gauge(
        lines,
        "problems",
        "Things /readyz complains about",
        {"": len(services.problems) + bool(services.writer.trouble)},
    )
    return "\n".join(lines) + "\n"


def _gauge(lines: list[str], name: str, meaning: str, values: dict[str, int]) -> None:
    full = f"daskscope_{name}"
    lines += [f"# HELP {full} {meaning}", f"# TYPE {full} gauge"]
    lines += [f"{full}{labels} {value}" for labels, value in values.items()]
