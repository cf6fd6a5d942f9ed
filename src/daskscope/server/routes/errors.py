"""Errors: single ones, and error groups."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

import msgspec

from daskscope.model.states import ERROR_STATES
from daskscope.server.contract import ErrorGroup, Failure
from daskscope.server.errors import bad_request, not_found
from daskscope.server.http import parameters
from daskscope.server.http.parameters import Limit, Place, Text, run_of, since_us
from daskscope.server.http.routing import Call, Route
from daskscope.server.views import error_group_view, exception_view, moment, parsed
from daskscope.storage.catalog import error_groups
from daskscope.units import HOUR

#: Bars of the small chart of an error group: two days by hour; of its page: seven days in steps of two hours.
HOURS = 48
PAGE_STEP, PAGE_STEPS = 2 * HOUR, 84


class ListedError(ErrorGroup):
    """An error group with its errors per hour, oldest first, and how many of them were not retried."""

    hours: list[int]
    fatal_hours: list[int]


class ErrorTimeline(TypedDict):
    """Errors per step of time, oldest first, and how many of them were not retried."""

    start: str | None
    step: float
    counts: list[int]
    fatal: list[int]


class OneError(ErrorGroup):
    """An error group with its latest errors, a week of them over time, and the versions it was seen with, by package."""

    traceback: str
    versions: dict[str, list[str]]
    latest: list[Failure]
    timeline: ErrorTimeline


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
    with call.services.archive.read() as tx:
        rows = error_groups.list_exceptions(
            tx, call.account.id,
            run=run, user=query.user, since_us=since_us(query.since, call.now_us), fingerprint=query.fingerprint,
            limit=query.limit + 1, after=parameters.decode(query.cursor, int, int))  # fmt: skip
    more, rows = len(rows) > query.limit, rows[: query.limit]
    items = [exception_view(row, call.account, call.services.url) for row in rows]
    return {"items": items, "next": parameters.encode(rows[-1].time_us, rows[-1].id) if more else None}


def list_errors(call: Call) -> dict[str, Any]:
    query: GroupsQuery = call.query
    states = tuple(part for part in query.state.split(",") if part)
    if unknown := set(states) - set(ERROR_STATES):
        raise bad_request(f"There is no state {sorted(unknown)[0]!r}. The states are {', '.join(ERROR_STATES)}.")
    with call.services.archive.read() as tx:
        rows = error_groups.list_error_groups(
            tx, call.account.id,
            states=states, find=query.search, since_us=since_us(query.since, call.now_us), limit=query.limit + 1,
            after=parameters.decode(query.cursor, int, str))  # fmt: skip
        names = [row.fingerprint for row in rows]
        first = call.now_us // HOUR - HOURS + 1
        hours = error_groups.occurrences(tx, call.account.id, names, first, HOUR, HOURS)
    more, rows = len(rows) > query.limit, rows[: query.limit]
    items: list[ListedError] = [
        {
            **error_group_view(row, call.account, call.services.url),
            "hours": hours[row.fingerprint].counts,
            "fatal_hours": hours[row.fingerprint].fatal,
        }
        for row in rows
    ]
    return {"items": items, "next": parameters.encode(rows[-1].last_us, rows[-1].fingerprint) if more else None}


def get_error(call: Call) -> OneError:
    fingerprint = call.path("fingerprint")
    with call.services.archive.read() as tx:
        account = call.account.id
        groups = error_groups.list_error_groups(tx, account, fingerprint=fingerprint)
        if not groups:
            raise not_found("such error")
        latest = error_groups.list_exceptions(tx, account, fingerprint=fingerprint, limit=50)
        versions = error_groups.versions_of(tx, account, fingerprint)
        # Of an error that has not occurred for a week, the week of its last occurrence.
        last = groups[0].last_us
        end = call.now_us if call.now_us - last < PAGE_STEPS * PAGE_STEP else last
        first = max(0, end // PAGE_STEP - PAGE_STEPS + 1)
        found = error_groups.occurrences(tx, account, [fingerprint], first, PAGE_STEP, PAGE_STEPS)[fingerprint]
    view = error_group_view(groups[0], call.account, call.services.url)
    shown = [exception_view(row, call.account, call.services.url) for row in latest]
    traceback = groups[0].sample.traceback
    timeline: ErrorTimeline = {
        "start": moment(first * PAGE_STEP),
        "step": PAGE_STEP / 1e6,
        "counts": found.counts,
        "fatal": found.fatal,
    }
    return {**view, "traceback": traceback, "versions": _merged(versions), "latest": shown, "timeline": timeline}


def _merged(texts: list[str]) -> dict[str, list[str]]:
    """Merge the versions of the given clusters, by package."""
    merged: dict[str, set[str]] = {}
    for text in texts:
        for package, version in parsed(text, {}).items():
            merged.setdefault(str(package), set()).add(str(version))
    return {package: sorted(found) for package, found in sorted(merged.items())}


def change_error(call: Call) -> dict[str, Any]:
    fingerprint = call.path("fingerprint")
    with call.services.archive.write() as tx:
        found = error_groups.set_group_state(tx, call.account.id, fingerprint, call.body.state, call.identity.name)
    if not found:
        raise not_found("such error")
    return {"fingerprint": fingerprint, "state": call.body.state}


ROUTES = [
    Route(
        "GET",
        "/api/v1/exceptions",
        list_exceptions,
        "read",
        "List errors, newest first",
        query=ExceptionsQuery,
    ),
    Route("GET", "/api/v1/errors", list_errors, "read", "List error groups", query=GroupsQuery, heavy=True),
    Route("GET", "/api/v1/errors/{fingerprint}", get_error, "read", "Return an error group with its latest errors"),
    Route(
        "PATCH",
        "/api/v1/errors/{fingerprint}",
        change_error,
        "write",
        "Set the state of an error group: open, resolved or ignored",
        body=GroupChange,
    ),
]
