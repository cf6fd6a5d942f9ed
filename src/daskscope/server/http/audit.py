"""Record what a request did in the audit log."""

from __future__ import annotations

from typing import Any

from daskscope.model.states import AuditAction
from daskscope.server.http.routing import Call
from daskscope.storage.base.archive import Transaction
from daskscope.storage.people.audit import SERVER, Event, record


def audit(call: Call, tx: Transaction, action: AuditAction, subject: str = "", **details: Any) -> None:
    """Record a change in the account of the request."""
    record(tx, Event(call.account.id, call.identity.name, action, subject, address_of(call), details))


def audit_server(
    call: Call, tx: Transaction, action: AuditAction, subject: str = "", *, user: str = "", **details: Any
) -> None:
    """Record a change that concerns the server. ``user`` is who did it if the request has no identity yet."""
    record(tx, Event(SERVER, user or call.identity.name, action, subject, address_of(call), details))


def address_of(call: Call) -> str:
    """Return the IP address that a request came from."""
    return call.request.client.host if call.request.client else ""
