"""The users of the server: create, list, disable, reset, and give them links to sign in with."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

import msgspec
from starlette.concurrency import run_in_threadpool

from daskscope.server.contract import ServerUser, SignInLink
from daskscope.server.errors import conflict, forbidden, not_found
from daskscope.server.http.audit import audit_server
from daskscope.server.http.routing import SERVER_ADMIN, Call, Route
from daskscope.server.pools import NO_ACCOUNT, PASSWORD
from daskscope.server.views import moment
from daskscope.storage.base.archive import Transaction
from daskscope.storage.people import users as store
from daskscope.storage.people.accounts import roles_of
from daskscope.storage.people.tokens import create_link

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
Password = Annotated[str, msgspec.Meta(max_length=1000)]


class NewUser(msgspec.Struct, forbid_unknown_fields=True):
    name: Name
    password: Password
    email: Annotated[str, msgspec.Meta(max_length=200)] = ""
    admin: bool = False


class UserChange(msgspec.Struct, forbid_unknown_fields=True):
    disabled: bool | None = None
    admin: bool | None = None


async def create_user(call: Call) -> dict[str, Any]:
    hashed = await call.services.pools.run(PASSWORD, NO_ACCOUNT, store.hash_password, call.body.password)
    return {"name": await run_in_threadpool(_store_user, call, hashed)}


def _store_user(call: Call, hashed: str) -> str:
    body: NewUser = call.body
    with call.services.archive.write() as tx:
        user = store.create_user(tx, body.name, hashed, email=body.email, admin=body.admin)
        audit_server(call, tx, "user-created", user.name, admin=user.admin)
    return user.name


def list_users(call: Call) -> dict[str, Any]:
    with call.services.archive.read() as tx:
        rows = store.list_users(tx)
    items: list[ServerUser] = [
        {
            "name": row.name,
            "email": row.email,
            "admin": bool(row.admin),
            "created": moment(row.created_us),
            "disabled": moment(row.disabled_us),
        }
        for row in rows
    ]
    return {"items": items}


def change_user(call: Call) -> dict[str, Any]:
    """Disable or enable a user, or change whether they administer the server."""
    change: UserChange = call.body
    with call.services.archive.write() as tx:
        user = _known(tx, call.path("user"))
        if change.admin is not None and change.admin != user.admin:
            store.set_admin(tx, user.id, admin=change.admin)
            audit_server(call, tx, "admin-granted" if change.admin else "admin-removed", user.name)
        if change.disabled:
            revoked = store.disable_user(tx, user.id)
            audit_server(call, tx, "user-disabled", user.name, revoked_tokens=revoked)
        elif change.disabled is not None:
            store.enable_user(tx, user.id)
            audit_server(call, tx, "user-enabled", user.name)
    call.services.token_cache.clear()
    call.services.live.end_streams(user.id)
    return {"name": user.name}


async def reset_password(call: Call) -> SignInLink:
    """End the password and sessions of a user, and return a link with which they choose a new password."""
    # A hash that no known password has. An empty one would make this look like a server that was never set up.
    unknown = await call.services.pools.run(PASSWORD, NO_ACCOUNT, store.hash_password, secrets.token_urlsafe(32))
    return await run_in_threadpool(_reset, call, unknown)


def _reset(call: Call, unknown: str) -> SignInLink:
    with call.services.archive.write() as tx:
        user = _enabled(tx, call.path("user"))
        _check_link(call, user)
        store.set_password(tx, user.id, unknown)
        link = create_link(tx, user.id, sets_password=True)
        audit_server(call, tx, "password-reset", user.name)
    call.services.live.end_streams(user.id)
    return {"url": f"{call.services.url}/login#password:{link.secret}", "expires": moment(link.expires_us)}


def link_for_user(call: Call) -> SignInLink:
    """Return a link that signs a user in."""
    with call.services.archive.write() as tx:
        return _link(call, tx, _enabled(tx, call.path("user")))


def link_for_member(call: Call) -> SignInLink:
    """Return a link that signs a member of the account in.

    The link opens everything that the user can see. So an owner can create it only for users whose accounts all belong to
    the owner.
    """
    with call.services.archive.write() as tx:
        user = store.find_user(tx, call.path("user"))
        roles = roles_of(tx, user.id) if user else {}
        if user is None or call.account.id not in roles:
            raise not_found("such member")
        # A token is for one account, whatever else its user owns.
        owned = {k for k, role in roles_of(tx, call.identity.user).items() if role == "owner"}
        mine = {call.account.id} if call.identity.kind == "token" else owned
        if not call.identity.admin and (user.admin or not set(roles) <= mine):
            raise forbidden(
                "This user administers the server or is a member of accounts that you do not own. "
                "Ask an administrator of the server for the link."
            )
        return _link(call, tx, user)


def _link(call: Call, tx: Transaction, user: store.User) -> SignInLink:
    _check_link(call, user)
    link = create_link(tx, user.id, sets_password=False)
    audit_server(call, tx, "sign-in-link-created", user.name)
    return {"url": f"{call.services.url}/login#sign-in:{link.secret}", "expires": moment(link.expires_us)}


def _check_link(call: Call, user: store.User) -> None:
    """Refuse a link where nobody signs in, and for a token's own user: a session can create tokens that stay."""
    # A password of the local user would also hide the setup link once sign-in is on.
    if not call.services.settings.login:
        raise conflict("Sign-in is off on this server.")
    if call.identity.kind == "token" and user.id == call.identity.user:
        raise forbidden("A token cannot create a link for its own user. Do it in a browser.")


def _known(tx: Transaction, name: str) -> store.User:
    user = store.find_any_user(tx, name)
    if user is None:
        raise not_found("such user")
    return user


def _enabled(tx: Transaction, name: str) -> store.User:
    user = store.find_user(tx, name)
    if user is None:
        raise not_found("such user", "The user may be disabled.")
    return user


ROUTES = [
    Route("GET", "/api/v1/users", list_users, SERVER_ADMIN, "List the users of the server"),
    Route("POST", "/api/v1/users", create_user, SERVER_ADMIN, "Create a user", body=NewUser, status=201),
    Route(
        "PATCH", "/api/v1/users/{user}", change_user, SERVER_ADMIN,
        "Disable or enable a user, or change their administrator rights", body=UserChange,
    ),
    Route(
        "POST", "/api/v1/users/{user}/password-reset", reset_password, SERVER_ADMIN,
        "End a user's password and return a link to choose a new one", status=201,
    ),
    Route(
        "POST", "/api/v1/users/{user}/sign-in-link", link_for_user, SERVER_ADMIN,
        "Create a link that signs a user in once", status=201,
    ),
    Route(
        "POST", "/api/v1/members/{user}/sign-in-link", link_for_member, "admin",
        "Create a link that signs a member in once", status=201,
    ),
]  # fmt: skip
