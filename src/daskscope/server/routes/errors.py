"""Failures one by one, and grouped."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from daskscope.server import cursor
from daskscope.server.contract import ListedError, OneError
from daskscope.server.failure import bad_request, not_found
from daskscope.server.routes.clusters import Limit, Place, Text
from daskscope.server.routes.computations import run_of
from daskscope.server.routing import Call, Route
from daskscope.server.since import since_us
from daskscope.server.views import error_group_view, exception_view, parsed
from daskscope.storage import failures

#: How far the little chart of an error goes back.
HOURS = 48


class ExceptionsQuery(msgspec.Struct, forbid_unknown_fields=True):
    since: Text = "7 days"
    user: Text = ""
    cluster_id: Text = ""
    fingerprint: Text = ""
    limit: Limit = 100
    cursor: Place = ""


class GroupsQuery(msgspec.Struct, forbid_unknown_fields=True):
    since: Text = ""
    state: Text = ""
    search: Text = ""
    limit: Limit = 100
    cursor: Place = ""


class GroupChange(msgspec.Struct, forbid_unknown_fields=True):
    state: Literal["open", "resolved", "ignored"]


def list_exceptions(call: Call) -> dict[str, Any]:
    query: ExceptionsQuery = call.query
    run = run_of(call, query.cluster_id)
    with call.services.database.read() as connection:
        rows = failures.list_exceptions(
            connection, call.services.vault, call.account.id,
            run=run, user=query.user, since_us=since_us(query.since, call.now_us), fingerprint=query.fingerprint,
            limit=query.limit + 1, after=cursor.decode(query.cursor, int, int),
        )  # fmt: skip
    more, rows = len(rows) > query.limit, rows[: query.limit]
    items = [exception_view(row, call.account, call.services.url) for row in rows]
    return {"items": items, "next": cursor.encode(rows[-1]["time_us"], rows[-1]["id"]) if more else None}


def list_errors(call: Call) -> dict[str, Any]:
    query: GroupsQuery = call.query
    states = tuple(part for part in query.state.split(",") if part)
    if unknown := set(states) - set(failures.STATES):
        raise bad_request(f"There is no state {sorted(unknown)[0]!r}. The states are {', '.join(failures.STATES)}.")
    with call.services.database.read() as connection:
        rows = failures.list_error_groups(
            connection, call.services.vault, call.account.id,
            states=states, find=query.search, since_us=since_us(query.since, call.now_us), limit=query.limit + 1,
            after=cursor.decode(query.cursor, int, str),
        )  # fmt: skip
        names = [row["fingerprint"] for row in rows]
        hours = failures.hours_of(connection, call.account.id, names, call.now_us, HOURS)
    more, rows = len(rows) > query.limit, rows[: query.limit]
    items: list[ListedError] = [
        {**error_group_view(row, call.account, call.services.url), "hours": hours[row["fingerprint"]]} for row in rows
    ]
    return {"items": items, "next": cursor.encode(rows[-1]["last_us"], rows[-1]["fingerprint"]) if more else None}


def get_error(call: Call) -> OneError:
    fingerprint = call.path("fingerprint")
    with call.services.database.read() as connection:
        vault, account = call.services.vault, call.account.id
        groups = failures.list_error_groups(connection, vault, account, fingerprint=fingerprint)
        if not groups:
            raise not_found("such error")
        latest = failures.list_exceptions(connection, vault, account, fingerprint=fingerprint, limit=50)
        versions = failures.versions_of(connection, account, fingerprint)
    view = error_group_view(groups[0], call.account, call.services.url)
    shown = [exception_view(row, call.account, call.services.url) for row in latest]
    traceback = groups[0]["sample"]["traceback"]
    return {**view, "traceback": traceback, "versions": _merged(versions), "latest": shown}


def _merged(texts: list[str]) -> dict[str, list[str]]:
    """By package the versions some clusters had."""
    merged: dict[str, set[str]] = {}
    for text in texts:
        for package, version in parsed(text, {}).items():
            merged.setdefault(str(package), set()).add(str(version))
    return {package: sorted(found) for package, found in sorted(merged.items())}


def change_error(call: Call) -> dict[str, Any]:
    fingerprint = call.path("fingerprint")
    with call.services.database.write() as connection:
        found = failures.set_group_state(
            connection, call.account.id, fingerprint, call.body.state, call.identity.name, call.now_us
        )
    if not found:
        raise not_found("such error")
    return {"fingerprint": fingerprint, "state": call.body.state}


ROUTES = [
    Route(
        "GET",
        "/api/v1/exceptions",
        list_exceptions,
        "read",
        "Failures one by one, the newest first",
        query=ExceptionsQuery,
    ),
    Route("GET", "/api/v1/errors", list_errors, "read", "Failures that are the same, grouped", query=GroupsQuery),
    Route("GET", "/api/v1/errors/{fingerprint}", get_error, "read", "One group with its latest failures"),
    Route(
        "PATCH",
        "/api/v1/errors/{fingerprint}",
        change_error,
        "write",
        "Call a group open, resolved or ignored",
        body=GroupChange,
    ),
]
