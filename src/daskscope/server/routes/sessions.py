"""The browser sessions of the caller."""

from __future__ import annotations

from typing import Any

from daskscope.server.contract import BrowserSession
from daskscope.server.errors import forbidden, not_found
from daskscope.server.http.audit import audit_server
from daskscope.server.http.page_secret import cookie_name
from daskscope.server.http.routing import USER, Call, Route
from daskscope.server.serializers import moment
from daskscope.storage import sessions as store


def list_sessions(call: Call) -> dict[str, Any]:
    _check_session(call)
    with call.services.archive.read() as tx:
        rows = store.list_sessions(tx, call.identity.user)
    current = store.session_id(call.request.cookies.get(cookie_name(call.request, call.services), ""))
    items: list[BrowserSession] = [
        {
            "id": row.id,
            "agent": row.agent,
            "address": row.address,
            "created": moment(row.created_us),
            "expires": moment(row.expires_us),
            "current": row.id == current,
        }
        for row in rows
    ]
    return {"items": items}


def end_session(call: Call) -> dict[str, Any]:
    _check_session(call)
    with call.services.archive.write() as tx:
        ended = store.end_session(tx, call.identity.user, call.path("session"))
        if ended is None:
            raise not_found("such session")
        audit_server(call, tx, "session-ended", call.identity.name, agent=ended.agent, address=ended.address)
    call.services.live.end_streams(call.identity.user)
    return {"ended": ended.id}


def _check_session(call: Call) -> None:
    if call.identity.kind != "session":
        raise forbidden("Manage your sessions in a browser.")


ROUTES = [
    Route("GET", "/api/v1/me/sessions", list_sessions, USER, "List your browser sessions"),
    Route("DELETE", "/api/v1/me/sessions/{session}", end_session, USER, "End one of your browser sessions"),
]
