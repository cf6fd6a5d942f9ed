"""How the server is: for whoever restarts it, for Prometheus, and for programs that want to talk to it."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from daskscope import __version__
from daskscope.server import metrics, openapi
from daskscope.server.routing import ANYBODY, SERVER_ADMIN, Call, Route, json_response
from daskscope.storage.blobs import MissingBlob
from daskscope.storage.database import DatabaseError, StorageError
from daskscope.storage.migrate import other_version


def healthz(_: Call) -> dict[str, Any]:
    """The process is there."""
    return {"status": "ok", "version": __version__}


def readyz(call: Call) -> Response:
    """Everything it needs is there: the database at this version's schema, the store, the writer.

    Anybody may ask: what is wrong is said in our words, and where the database or the store is stays in the log.
    """
    checks = {
        "database": _database(call),
        "store": _store(call),
        "writer": call.services.writer.trouble,
        **call.services.problems,
    }
    troubled = {name: text for name, text in checks.items() if text}
    view = {"ready": not troubled, "checks": {name: text or "ok" for name, text in checks.items()}}
    return json_response(view, 503 if troubled else 200)


def _database(call: Call) -> str:
    try:
        with call.services.database.read() as connection:
            wrong = other_version(connection)
    except DatabaseError as error:
        return call.services.looked_at("database", error)
    return call.services.looked_at("database", None) or wrong


def _store(call: Call) -> str:
    try:
        call.services.store.get("ready/never-written")
    except MissingBlob:
        pass
    except (StorageError, OSError) as error:
        return call.services.looked_at("store", error)
    return call.services.looked_at("store", None)


def prometheus(call: Call) -> Response:
    """Numbers of the server and of all clusters together, of every account: for administrators."""
    return Response(
        metrics.exposition(call.services), media_type=metrics.CONTENT_TYPE, headers={"Cache-Control": "no-store"}
    )


def document(_: Call) -> dict[str, Any]:
    from daskscope.server.routes import ROUTES

    return openapi.document(ROUTES)


ROUTES = [
    Route("GET", "/healthz", healthz, ANYBODY, "Whether the process is there"),
    Route("GET", "/readyz", readyz, ANYBODY, "Whether it can do its work"),
    Route("GET", "/metrics", prometheus, SERVER_ADMIN, "Numbers for Prometheus", answers="text/plain"),
    Route("GET", "/api/v1/openapi.json", document, ANYBODY, "This document"),
]
