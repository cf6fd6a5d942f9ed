"""The resources, one module each; ``ROUTES`` is everything the server can be asked."""

from __future__ import annotations

from daskscope.server import ingest
from daskscope.server.routes import (
    accounts,
    clusters,
    computations,
    errors,
    health,
    history,
    logins,
    overview,
    reports,
    rows,
    tokens,
    usage,
)
from daskscope.server.routing import Route

ROUTES: list[Route] = [
    route
    for module in (
        health,
        ingest,
        overview,
        clusters,
        history,
        computations,
        rows,
        errors,
        usage,
        reports,
        tokens,
        accounts,
        logins,
    )
    for route in module.ROUTES
]
