"""Accounts, their members and their audit log."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

import msgspec
from starlette.concurrency import run_in_threadpool

from daskscope.model.states import AuditAction, Role
from daskscope.server.contract import AuditEvent, Member
from daskscope.server.errors import forbidden, not_found
from daskscope.server.http import parameters
from daskscope.server.http.audit import audit, audit_server
from daskscope.server.http.parameters import Limit, Place
from daskscope.server.http.passwords import check_password
from daskscope.server.http.routing import SERVER_ADMIN, USER, Call, Route
from daskscope.server.pools import NO_ACCOUNT, PASSWORD
from daskscope.server.views import moment
from daskscope.storage.people import accounts as store
from daskscope.storage.people.audit import SERVER, list_events
from daskscope.storage.people.tokens import revoke_tokens_of_user, tokens_of_user
from daskscope.storage.people.users import find_user, hash_password, set_password

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
Password = Annotated[str, msgspec.Meta(max_length=1000)]
Price = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Days = Annotated[int, msgspec.Meta(ge=0, le=36_500)]


class NewAccount(msgspec.Struct, forbid_unknown_fields=True):
    name: Name
    #: Empty means the caller.
    owner: Annotated[str, msgspec.Meta(max_length=40)] = ""


class MemberRole(msgspec.Struct, forbid_unknown_fields=True):
    role: Role


class PreferencesChange(msgspec.Struct, forbid_unknown_fields=True):
    visibility: Literal["public", "private"] | None = None
    keep_rows_days: Days | None = None
    keep_sums_days: Days | None = None
    keep_rows_nbytes: Annotated[int, msgspec.Meta(ge=0, le=1 << 60)] | None = None
    core_hour: Price | None = None
    gib_hour: Price | None = None
    price_overrides: dict[Annotated[str, msgspec.Meta(min_length=1, max_length=200)], dict[str, Price]] | None = None


class PasswordChange(msgspec.Struct, forbid_unknown_fields=True):
    old: Password
    new: Password
    #: Revoke all tokens of the user too, in every account.
    revoke_tokens: bool = False


def me(call: Call) -> dict[str, Any]:
    """Return the caller and their accounts."""
    with call.services.archive.read() as tx:
        roles = store.roles_of(tx, call.identity.user)
        named = {account.id: account.name for account in store.list_accounts(tx)}
    is_narrow = call.identity.kind == "token" and "accounts" not in call.identity.scopes
    mine = {k: v for k, v in roles.items() if not is_narrow or k == call.account.id}
    return {
        "user": call.identity.name,
        "kind": call.identity.kind,
        "admin": call.identity.admin,
        "account": call.identity.account.name if call.identity.account else None,
        "scopes": sorted(call.identity.scopes),
        "expires": moment(call.identity.expires_us),
        "accounts": [{"name": named[number], "role": role} for number, role in sorted(mine.items())],
        "warnings": call.services.settings.warnings if call.identity.admin else [],
    }


async def change_password(call: Call) -> dict[str, Any]:
    body: PasswordChange = call.body
    if call.identity.kind != "session":
        raise forbidden("Change your password in a browser session.")
    number, _ = await check_password(call, call.identity.name, body.old)
    if not number:
        raise forbidden("The old password is wrong.")
    hashed = await call.services.pools.run(PASSWORD, NO_ACCOUNT, hash_password, body.new)
    return await run_in_threadpool(_store_password, call, hashed)


def _store_password(call: Call, hashed: str) -> dict[str, Any]:
    with call.services.archive.write() as tx:
        set_password(tx, call.identity.user, hashed)
        revoked = revoke_tokens_of_user(tx, call.identity.user) if call.body.revoke_tokens else 0
        left = tokens_of_user(tx, call.identity.user)
        audit_server(call, tx, "password-changed", call.identity.name, revoked_tokens=revoked)
    call.services.token_cache.clear()
    call.services.live.end_streams(call.identity.user)
    tokens = [
        {"account": token.account, "hint": token.hint, "label": token.label, "expires": moment(token.expires_us)}
        for token in left
    ]
    return {"changed": True, "revoked_tokens": revoked, "tokens": tokens}


def list_accounts(call: Call) -> dict[str, Any]:
    with call.services.archive.read() as tx:
        accounts = store.list_accounts(tx)
    return {"items": [{"name": account.name, "created": moment(account.created_us)} for account in accounts]}


def create_account(call: Call) -> dict[str, Any]:
    body: NewAccount = call.body
    with call.services.archive.write() as tx:
        owner = find_user(tx, body.owner or call.identity.name)
        if owner is None:
            raise not_found("such user")
        account = store.create_account(tx, body.name)
        store.set_member(tx, account.id, owner.id, "owner")
        audit_server(call, tx, "account-created", account.name, owner=owner.name)
    return {"name": account.name, "owner": owner.name}


def list_members(call: Call) -> dict[str, Any]:
    with call.services.archive.read() as tx:
        rows = store.list_members(tx, call.account.id)
    asking = call.identity
    items: list[Member] = [
        {
            "name": row.name,
            # An owner may add anyone without their consent, so hide the addresses of others.
            "email": row.email if asking.admin or row.name == asking.name else "",
            "role": row.role,
            "since": moment(row.since_us),
        }
        for row in rows
    ]
    return {"items": items}


def set_member(call: Call) -> dict[str, Any]:
    name = call.path("user")
    with call.services.archive.write() as tx:
        user = find_user(tx, name)
        if user is None:
            raise not_found("such user")
        before = store.roles_of(tx, user.id).get(call.account.id)
        store.set_member(tx, call.account.id, user.id, call.body.role)
        if before is None:
            audit(call, tx, "member-added", name, role=call.body.role)
        elif before != call.body.role:
            audit(call, tx, "role-changed", name, before=before, role=call.body.role)
    call.services.token_cache.clear()
    return {"name": name, "role": call.body.role}


def remove_member(call: Call) -> dict[str, Any]:
    name = call.path("user")
    with call.services.archive.write() as tx:
        user = find_user(tx, name)
        if user is None or not store.remove_member(tx, call.account.id, user.id):
            raise not_found("such member")
        audit(call, tx, "member-removed", name)
    call.services.token_cache.clear()
    call.services.live.end_streams(user.id, call.account.id)
    return {"removed": name}


def get_preferences(call: Call) -> dict[str, Any]:
    with call.services.archive.read() as tx:
        return asdict(store.get_account(tx, call.account.id).preferences)


def change_preferences(call: Call) -> dict[str, Any]:
    given = {name: value for name, value in msgspec.structs.asdict(call.body).items() if value is not None}
    with call.services.archive.write() as tx:
        before = store.get_account(tx, call.account.id).preferences
        preferences = replace(before, **given)
        store.set_preferences(tx, call.account.id, preferences)
        changed = {name: value for name, value in given.items() if getattr(before, name) != value}
        if changed:
            audit(call, tx, "settings-changed", ", ".join(changed), **changed)
    call.services.token_cache.clear()
    return asdict(preferences)


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
    Route("GET", "/api/v1/me", me, USER, "Return the caller and their accounts"),
    Route("POST", "/api/v1/me/password", change_password, USER, "Change your password", body=PasswordChange),
    Route("GET", "/api/v1/accounts", list_accounts, SERVER_ADMIN, "List all accounts of the server"),
    Route("POST", "/api/v1/accounts", create_account, SERVER_ADMIN, "Create an account", body=NewAccount, status=201),
    Route("GET", "/api/v1/members", list_members, "read", "List the members of the account"),
    Route("PUT", "/api/v1/members/{user}", set_member, "admin", "Add a member or change a role", body=MemberRole),
    Route("DELETE", "/api/v1/members/{user}", remove_member, "admin", "Remove a member from the account"),
    Route(
        "GET", "/api/v1/preferences", get_preferences, "read", "Return the account's prices, retention and visibility"
    ),
    Route(
        "PATCH",
        "/api/v1/preferences",
        change_preferences,
        "admin",
        "Change the account's preferences",
        body=PreferencesChange,
    ),
    Route("GET", "/api/v1/audit", list_audit, "admin", "List who did what, newest first", query=AuditQuery),
]
