"""Health checks, and Prometheus metrics of the server and of all clusters together.

No label of a metric names a cluster, a user or an account: their number is unbounded, and a scrape must stay small.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timezone
from functools import partial
from typing import Any

from starlette.responses import Response

from daskscope import __version__
from daskscope.server.errors import not_found
from daskscope.server.http.routing import ANYBODY, SERVER_ADMIN, Call, Route, json_response
from daskscope.server.monitoring import ROLES, Check, Readiness
from daskscope.server.services import Services
from daskscope.storage.base.blobs import MissingBlob
from daskscope.storage.base.database import DatabaseError, StorageError
from daskscope.storage.base.migrate import other_version
from daskscope.storage.catalog.overview import fleet_of

#: How long a security contact is valid; RFC 9116 recommends less than a year.
SECURITY_TXT_DAYS = 180


async def healthz(_: Call) -> dict[str, Any]:
    """Return that the process is running."""
    return {"status": "ok", "version": __version__}


async def readyz(call: Call) -> Response:
    """Return whether the server can store batches, and which parts do not work.

    Anyone can call this, so messages do not contain hosts or paths; the log does.
    """
    return _answer(await _readiness(call.services), "ingest")


async def readyz_read(call: Call) -> Response:
    """Return whether the server can show what it stored, and which parts do not work."""
    return _answer(await _readiness(call.services), "read")


def _answer(found: Readiness, role: str) -> Response:
    problem = found.problem_of(role)
    view = {
        "ready": not problem,
        "roles": {name: found.problem_of(name) or "ok" for name in ROLES},
        "checks": {name: text or "ok" for name, text in found.checks.items()},
    }
    return json_response(view, 503 if problem else 200)


async def _readiness(services: Services) -> Readiness:
    checks = services.checks or [
        Check("database", partial(_database, services)),
        Check("store", partial(_store, services)),
    ]
    services.checks = checks
    results = await asyncio.gather(*(check.result() for check in checks))
    found = {check.name: result for check, result in zip(checks, results, strict=True)}
    return Readiness({**found, "writer": services.writer.problem, **services.problems})


def _database(services: Services) -> str:
    try:
        with services.archive.read() as tx:
            wrong = other_version(tx.connection)
    except DatabaseError as error:
        return services.record_health("database", error)
    return services.record_health("database", None) or wrong


def _store(services: Services) -> str:
    try:
        services.archive.store.get("ready/never-written")
    except MissingBlob:
        pass
    except (StorageError, OSError) as error:
        return services.record_health("store", error)
    return services.record_health("store", None)


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Counters: name, label name and help text.
COUNTERS = {
    "rows": ("", "Rows stored"),
    "batches": ("kind", "Batches received"),
    "commits": ("", "Transactions of the writer"),
    "commit_seconds": ("", "Seconds the writer spent in transactions"),
    "commit_failures": ("", "Transactions that failed"),
    "overloaded": ("", "Requests refused because the server was overloaded"),
    "over_quota": ("", "Requests refused because a token reached its limit"),
    "compactions": ("", "Runs compacted into Parquet"),
    "compacted_rows": ("", "Rows written to Parquet"),
    "documents": ("", "Documents built for the viewer"),
    "requests": ("route", "Requests by route and status class"),
    "request_seconds": ("route", "Seconds spent on requests"),
}


def exposition(services: Services) -> str:
    """Return all metrics in Prometheus's text format."""
    lines: list[str] = []
    for name, (label, meaning) in COUNTERS.items():
        full = f"daskscope_{name}_total"
        lines += [f"# HELP {full} {meaning}", f"# TYPE {full} counter"]
        lines += [
            f'{full}{{{label}="{value_label}"}} {value:.15g}' if label else f"{full} {value:.15g}"
            for counter, value_label, value in services.counters.items()
            if counter == name
        ]
    with services.archive.read() as tx:
        fleet = fleet_of(tx)
    _gauge(lines, "clusters", "Clusters by state", {f'{{state="{name}"}}': n for name, n in fleet.clusters.items()})
    _gauge(lines, "tasks", "Executions recorded in all stored clusters", {"": fleet.tasks})
    _gauge(lines, "exceptions", "Errors recorded in all stored clusters", {"": fleet.exceptions})
    _gauge(lines, "buffered_bytes", "Bytes of batches that are not compacted yet", {"": fleet.buffered_nbytes})
    _gauge(lines, "workers", "Workers of running clusters", {"": fleet.workers})
    _gauge(lines, "threads", "Threads of running clusters", {"": fleet.threads})
    _gauge(lines, "waiting_requests", "Requests waiting for the writer", {"": services.writer.waiting})
    _gauge(lines, "live_pages", "Open live pages", {"": services.live.listening})
    _gauge(
        lines,
        "problems",
        "Problems reported by /readyz",
        {"": len(services.problems) + bool(services.writer.problem)},
    )
    return "\n".join(lines) + "\n"


def _gauge(lines: list[str], name: str, meaning: str, values: dict[str, int]) -> None:
    full = f"daskscope_{name}"
    lines += [f"# HELP {full} {meaning}", f"# TYPE {full} gauge"]
    lines += [f"{full}{labels} {value}" for labels, value in values.items()]


def prometheus(call: Call) -> Response:
    """Return the metrics of the server and of all accounts together, for administrators."""
    return Response(exposition(call.services), media_type=CONTENT_TYPE, headers={"Cache-Control": "no-store"})


def security_txt(call: Call) -> Response:
    """Return whom to tell about a vulnerability (RFC 9116)."""
    contact = call.services.settings.security_contact
    if not contact:
        raise not_found("security contact", "The operator can set one with --security-contact.")
    if "@" in contact and not contact.startswith(("mailto:", "https:")):
        contact = f"mailto:{contact}"
    expires = datetime.fromtimestamp(call.now_us / 1e6 + SECURITY_TXT_DAYS * 86_400, timezone.utc)
    text = f"Contact: {contact}\nExpires: {expires:%Y-%m-%dT%H:%M:%SZ}\nPreferred-Languages: en\n"
    return Response(text, media_type="text/plain; charset=utf-8")


ROUTES = [
    Route(
        "GET", "/.well-known/security.txt", security_txt, ANYBODY, "Return the security contact", answers="text/plain"
    ),
    Route("GET", "/healthz", healthz, ANYBODY, "Check that the process is running"),
    Route("GET", "/readyz", readyz, ANYBODY, "Check that the server can store batches, and which parts do not work"),
    Route("GET", "/readyz/read", readyz_read, ANYBODY, "Check that the server can show what it stored"),
    Route("GET", "/metrics", prometheus, SERVER_ADMIN, "Return metrics for Prometheus", answers="text/plain"),
]
