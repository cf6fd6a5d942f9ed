"""The resources of the API, one module each. ``ROUTES`` lists all of them."""

from __future__ import annotations

from typing import Any

from daskscope.server.http.openapi import document
from daskscope.server.http.routing import ANYBODY, Call, Route
from daskscope.server.routes import (
    accounts,
    clusters,
    compare,
    computations,
    errors,
    health,
    ingest,
    overview,
    reports,
    rows,
    running,
    runs,
    sign_in,
    sql,
    tokens,
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
        runs,
        computations,
        compare,
        what_if,
        running,
        rows,
        errors,
        sql,
        reports,
        tokens,
        accounts,
        users,
        sign_in,
    )
    for route in module.ROUTES
]


def openapi(_: Call) -> dict[str, Any]:
    """Return the OpenAPI document."""
    return document(ROUTES)


ROUTES.append(Route("GET", "/api/v1/openapi.json", openapi, ANYBODY, "This document"))
