"""The audit log of the account, and of the server for its administrators."""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

from daskscope.model.states import AuditAction
from daskscope.server.contract import AuditEvent
from daskscope.server.http import parameters
from daskscope.server.http.parameters import Limit, Place
from daskscope.server.http.routing import Call, Route
from daskscope.server.serializers import moment
from daskscope.storage.audit import SERVER, list_events


class AuditQuery(msgspec.Struct, forbid_unknown_fields=True):
    action: AuditAction | Literal[""] = ""
    limit: Limit = 100
    cursor: Place = ""


def list_audit(call: Call) -> dict[str, Any]:
    query: AuditQuery = call.query
    place = parameters.decode(query.cursor, int)
    accounts = [call.account.id, SERVER] if call.identity.admin else [call.account.id]
    with call.services.archive.read() as tx:
        rows = list_events(
            tx, accounts, action=query.action, before=place[0] if place else None, limit=query.limit + 1)  # fmt: skip
    more, rows = len(rows) > query.limit, rows[: query.limit]
    items: list[AuditEvent] = [
        {
            "id": row.id,
            "time": moment(row.time_us),
            "server": row.account_id == SERVER,
            "user": row.user,
            "action": row.action,
            "subject": row.subject,
            "address": row.address,
            "details": json.loads(row.details or "{}"),
        }
        for row in rows
    ]
    return {"items": items, "next": parameters.encode(rows[-1].id) if more else None}


ROUTES = [
    Route("GET", "/api/v1/audit", list_audit, "admin", "List who did what, newest first", query=AuditQuery),
]
