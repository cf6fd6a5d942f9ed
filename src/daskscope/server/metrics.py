"""Numbers for Prometheus: the server itself and the fleet as a whole. No label names a cluster, a user or an account:
their number has no bound, and a scrape must stay small."""

from __future__ import annotations

from daskscope.server.services import Services
from daskscope.storage.fleet import fleet_of

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
    with services.database.read() as connection:
        fleet = fleet_of(connection, services.clock(), services.settings.lost_after * 1_000_000)
    _gauge(lines, "clusters", "Clusters by state", {f'{{state="{name}"}}': n for name, n in fleet.clusters.items()})
    _gauge(lines, "tasks", "Executions recorded in all clusters kept", {"": fleet.tasks})
    _gauge(lines, "exceptions", "Failures recorded in all clusters kept", {"": fleet.exceptions})
    _gauge(lines, "buffered_bytes", "Bytes of batches not compacted yet", {"": fleet.buffered_nbytes})
    _gauge(lines, "workers", "Workers of clusters that run", {"": fleet.workers})
    _gauge(lines, "threads", "Threads of clusters that run", {"": fleet.threads})
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
