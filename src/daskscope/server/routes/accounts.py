"""Accounts, their members and preferences, and the users of the server."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

import msgspec
from starlette.concurrency import run_in_threadpool

from daskscope.server.contract import Member
from daskscope.server.failure import forbidden, not_found
from daskscope.server.pools import PASSWORD
from daskscope.server.routes.logins import check_password
from daskscope.server.routing import SERVER_ADMIN, USER, Call, Route
from daskscope.server.views import moment
from daskscope.storage import accounts as store
from daskscope.storage.users import (
    create_user,
    find_user,
    hash_password,
    set_password,
)

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
Password = Annotated[str, msgspec.Meta(max_length=1000)]
Price = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Days = Annotated[int, msgspec.Meta(ge=0, le=36_500)]


class NewAccount(msgspec.Struct, forbid_unknown_fields=True):
    name: Name
    #: Empty: whoever makes it.
    owner: Annotated[str, msgspec.Meta(max_length=40)] = ""


class NewUser(msgspec.Struct, forbid_unknown_fields=True):
    name: Name
    password: Password
    email: Annotated[str, msgspec.Meta(max_length=200)] = ""
    admin: bool = False


class MemberRole(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["viewer", "member", "owner"]


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


def me(call: Call) -> dict[str, Any]:
    """Who is asking, and which accounts they belong to."""
    with call.services.database.read() as connection:
        roles = store.roles_of(connection, call.identity.user)
        named = {account.id: account.name for account in store.list_accounts(connection)}
    # A token knows its own account only.
    mine = {k: v for k, v in roles.items() if call.identity.kind != "token" or k == call.account.id}
    return {
        "user": call.identity.name,
        "kind": call.identity.kind,
        "admin": call.identity.admin,
        "account": call.identity.account.name if call.identity.account else None,
        "scopes": sorted(call.identity.scopes),
        "accounts": [{"name": named[number], "role": role} for number, role in sorted(mine.items())],
    }


async def change_password(call: Call) -> dict[str, Any]:
    body: PasswordChange = call.body
    if call.identity.kind != "session":
        raise forbidden("A password is changed in a browser session.")
    number, _ = await check_password(call, call.identity.name, body.old)
    if not number:
        raise forbidden("The old password is not right.")
    hashed = await call.services.pools.run(PASSWORD, hash_password, body.new)
    await run_in_threadpool(_store_password, call, hashed)
    return {"changed": True}


def _store_password(call: Call, hashed: str) -> None:
    with call.services.database.write() as connection:
        set_password(connection, call.identity.user, hashed)


def list_accounts(call: Call) -> dict[str, Any]:
    with call.services.database.read() as connection:
        accounts = store.list_accounts(connection)
    return {"items": [{"name": account.name, "created": moment(account.created_us)} for account in accounts]}


def create_account(call: Call) -> dict[str, Any]:
    body: NewAccount = call.body
    with call.services.database.write() as connection:
        owner = find_user(connection, body.owner or call.identity.name)
        if owner is None:
            raise not_found("such user")
        account = store.create_account(connection, call.services.vault, body.name, call.now_us)
        store.set_member(connection, account.id, owner.id, "owner", call.now_us)
    return {"name": account.name, "owner": owner.name}


async def new_user(call: Call) -> dict[str, Any]:
    hashed = await call.services.pools.run(PASSWORD, hash_password, call.body.password)
    return {"name": await run_in_threadpool(_store_user, call, hashed)}


def _store_user(call: Call, hashed: str) -> str:
    body: NewUser = call.body
    with call.services.database.write() as connection:
        return create_user(connection, body.name, hashed, call.now_us, email=body.email, admin=body.admin).name


def list_members(call: Call) -> dict[str, Any]:
    with call.services.database.read() as connection:
        rows = store.list_members(connection, call.account.id)
    asking = call.identity
    items: list[Member] = [
        {
            "name": row["name"],
            # An owner may add anybody, who need not know.
            "email": row["email"] if asking.admin or row["name"] == asking.name else "",
            "role": row["role"],
            "since": moment(row["since_us"]),
        }
        for row in rows
    ]
    return {"items": items}


def set_member(call: Call) -> dict[str, Any]:
    name = call.path("user")
    with call.services.database.write() as connection:
        user = find_user(connection, name)
        if user is None:
            raise not_found("such user")
        store.set_member(connection, call.account.id, user.id, call.body.role, call.now_us)
    call.cache.clear()
    return {"name": name, "role": call.body.role}


def remove_member(call: Call) -> dict[str, Any]:
    name = call.path("user")
    with call.services.database.write() as connection:
        user = find_user(connection, name)
        if user is None or not store.remove_member(connection, call.account.id, user.id):
            raise not_found("such member")
    call.cache.clear()
    return {"removed": name}


def get_preferences(call: Call) -> dict[str, Any]:
    with call.services.database.read() as connection:
        return asdict(store.get_account(connection, call.account.id).preferences)


def change_preferences(call: Call) -> dict[str, Any]:
    given = {name: value for name, value in msgspec.structs.asdict(call.body).items() if value is not None}
    with call.services.database.write() as connection:
        preferences = replace(store.get_account(connection, call.account.id).preferences, **given)
        store.set_preferences(connection, call.account.id, preferences)
    call.cache.clear()
    return asdict(preferences)


ROUTES = [
    Route("GET", "/api/v1/me", me, USER, "Who you are and which accounts you belong to"),
    Route("POST", "/api/v1/me/password", change_password, USER, "Change your password", body=PasswordChange),
    Route("GET", "/api/v1/accounts", list_accounts, SERVER_ADMIN, "All accounts of the server"),
    Route("POST", "/api/v1/accounts", create_account, SERVER_ADMIN, "Make an account", body=NewAccount, status=201),
    Route("POST", "/api/v1/users", new_user, SERVER_ADMIN, "Make a user", body=NewUser, status=201),
    Route("GET", "/api/v1/members", list_members, "read", "Members of the account"),
    Route("PUT", "/api/v1/members/{user}", set_member, "admin", "Add a member or change a role", body=MemberRole),
    Route("DELETE", "/api/v1/members/{user}", remove_member, "admin", "Take a member out of the account"),
    Route("GET", "/api/v1/preferences", get_preferences, "read", "Prices, retention and visibility of the account"),
    Route("PATCH", "/api/v1/preferences", change_preferences, "admin", "Change them", body=PreferencesChange),
]
