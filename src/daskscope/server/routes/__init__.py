"""The resources of the API, one module each. ``ROUTES`` lists all of them."""

from __future__ import annotations

from typing import Any

from daskscope.server.http.openapi import document
from daskscope.server.http.routing import ANYBODY, Call, Route
from daskscope.server.routes import (
    accounts,
    audit,
    baselines,
    clusters,
    compare,
    computations,
    errors,
    health,
    history,
    increments,
    ingest,
    logins,
    overview,
    progress,
    reports,
    rows,
    running,
    sessions,
    sql,
    tokens,
    usage,
    users,
    what_if,
)

ROUTES: list[Route] = [
    route
    for module in (
        health,
        ingest,
        overview,
        clusters,
        computations,
        history,
        compare,
        what_if,
        progress,
        running,
        rows,
        increments,
        errors,
        sql,
        usage,
        reports,
        baselines,
        tokens,
        accounts,
        users,
        sessions,
        audit,
        logins,
    )
    for route in module.ROUTES
]


def openapi(_: Call) -> dict[str, Any]:
    """Return the OpenAPI document."""
    return document(ROUTES)


ROUTES.append(Route("GET", "/api/v1/openapi.json", openapi, ANYBODY, "This document"))
