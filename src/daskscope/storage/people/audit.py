"""The audit log: who did what, when and from where. An event is written in the transaction of the change itself."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import sqlalchemy as sa

from daskscope.model.states import AuditAction
from daskscope.model.untrusted import clean_text
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction

logger = logging.getLogger("daskscope.audit")

#: Events of the server itself: sign-ins and users.
SERVER = 0
#: Maximum characters of a name or an address in an event.
MAX_TEXT = 300
KEEP_DAYS = 400


@dataclass(frozen=True)
class Event:
    """Something that was done. ``details`` must not contain a secret."""

    account: int
    user: str
    action: AuditAction
    subject: str
    address: str
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ListedEvent:
    """An event as lists show it."""

    id: int
    time_us: int
    account_id: int
    user: str
    action: AuditAction
    subject: str
    address: str
    #: JSON
    details: str


def record(tx: Transaction, event: Event) -> None:
    """Store an event, and log it as a line of JSON once the transaction is committed."""
    texts = {
        "user": clean_text(event.user, MAX_TEXT),
        "action": event.action,
        "subject": clean_text(event.subject, MAX_TEXT),
        "address": clean_text(event.address, MAX_TEXT),
    }
    values = {"time_us": tx.now_us, "account_id": event.account, **texts, "details": json.dumps(event.details)}
    tx.execute(sa.insert(schema.audit_events).values(values))
    moment = datetime.fromtimestamp(tx.now_us / 1e6, timezone.utc).isoformat()
    line = json.dumps(
        {"logger": logger.name, "time": moment, "account": event.account, **texts, "details": event.details}
    )
    tx.after_commit.append(lambda: logger.info("%s", line))


def list_events(
    tx: Transaction, accounts: list[int], *, action: str = "", before: int | None = None, limit: int = 100
) -> list[ListedEvent]:
    """Return the newest events of these accounts, or those before an event."""
    events = schema.audit_events
    query = sa.select(events).where(events.c.account_id.in_(accounts)).order_by(events.c.id.desc()).limit(limit)
    if action:
        query = query.where(events.c.action == action)
    if before is not None:
        query = query.where(events.c.id < before)
    return tx.rows(ListedEvent, query)


def delete_events(tx: Transaction, before_us: int, limit: int) -> int:
    """Delete up to ``limit`` events from before a time, the oldest first. Return how many."""
    events = schema.audit_events
    old = sa.select(events.c.id).where(events.c.time_us < before_us).order_by(events.c.time_us).limit(limit)
    return tx.execute(sa.delete(events).where(events.c.id.in_(old))).rowcount
