"""Sign in and out, and the browser sessions of the caller."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from daskscope.model.states import AuditAction, Scope
from daskscope.server.contract import BrowserSession, DeviceSignIn, Opened
from daskscope.server.errors import Refusal, conflict, forbidden, not_found, secret_needed, too_many
from daskscope.server.http.audit import address_of, audit_server
from daskscope.server.http.identity import check_origin, cookie_name, is_https
from daskscope.server.http.passwords import caller_address, check_password, count_attempt
from daskscope.server.http.routing import PUBLIC, USER, Call, Route, json_response
from daskscope.server.pools import NO_ACCOUNT, PASSWORD
from daskscope.server.services import LOCAL
from daskscope.server.views import moment
from daskscope.storage.people import sessions, users
from daskscope.storage.people import sessions as store
from daskscope.storage.people.accounts import create_account, find_account, get_account, roles_of, set_member
from daskscope.storage.people.audit import Event, record
from daskscope.storage.people.sessions import end_setup, setup_matches
from daskscope.storage.people.tokens import ALLOWED, DEFAULT_DAYS, Link, create_token, find_link
from daskscope.storage.people.tokens import use_link as redeem_link
from daskscope.units import DAY


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


Text = Annotated[str, msgspec.Meta(max_length=200)]
Secret = Annotated[str, msgspec.Meta(max_length=1000)]
#: How often a waiting command line may poll.
INTERVAL_S = 2
#: Maximum device sign-ins that wait for confirmation.
MAX_LOGINS = 1_000
#: Maximum device sign-ins per address and quarter of an hour, so that one address cannot use them all.
MAX_PER_ADDRESS = 100


class PasswordLogin(msgspec.Struct, forbid_unknown_fields=True):
    user: Text
    password: Secret


class LocalSecretGiven(msgspec.Struct, forbid_unknown_fields=True):
    secret: Secret


class LinkSignIn(msgspec.Struct, forbid_unknown_fields=True):
    secret: Secret
    #: The new password, if the link is for choosing one.
    password: Secret = ""


class DeviceRequest(msgspec.Struct, forbid_unknown_fields=True):
    label: Text = ""
    host: Text = ""
    #: The token gets those that the role of the user allows.
    scopes: tuple[Scope, ...] = ("ingest", "read", "write", "admin")
    #: The account to choose first in the browser.
    account: Text = ""


class DeviceCode(msgspec.Struct, forbid_unknown_fields=True):
    device_code: Secret


class DeviceDecision(msgspec.Struct, forbid_unknown_fields=True):
    user_code: Text
    account: Text
    approve: bool = True


class CodeQuery(msgspec.Struct, forbid_unknown_fields=True):
    user_code: Text


class Setup(msgspec.Struct, forbid_unknown_fields=True):
    secret: Secret
    user: Text
    password: Secret
    team: Text


async def log_in(call: Call) -> Response:
    body: PasswordLogin = call.body
    if not call.services.settings.login:
        raise conflict("Sign-in is off on this server.")
    # A page of another site must not sign a user in.
    check_origin(call.request, call.services)
    number, stored = await check_password(call, body.user, body.password)
    if not number:
        raise _wrong()
    return await run_in_threadpool(_logged_in, call, number, body.user, stored)


def _wrong() -> Refusal:
    return Refusal(401, "wrong_password", "Wrong name or password.")


def _logged_in(call: Call, user: int, name: str, stored: str) -> Response:
    with call.services.archive.write() as tx:
        # The password may have changed during the comparison, which ended all other sessions.
        if not users.has_password(tx, user, stored):
            raise _wrong()
        new = sessions.open_session(tx, user, agent_of(call), address_of(call))
        audit_server(call, tx, "sign-in", name, user=name, by="password")
    return _opened(call, name, new)


def agent_of(call: Call) -> str:
    return call.request.headers.get("user-agent", "")


def _opened(call: Call, name: str, new: sessions.NewSession) -> Response:
    """Return the response that gives a session to the browser."""
    opened: Opened = {"user": name, "page_secret": new.page}
    response = json_response(opened)
    response.set_cookie(
        cookie_name(call.request, call.services),
        new.cookie,
        max_age=sessions.SESSION_US // 1_000_000,
        httponly=True,
        # Only the app's own pages use it, so a request from another site never needs it.
        samesite="strict",
        secure=is_https(call.request, call.services),
        path=call.services.settings.root_path or "/",
    )
    return response


def open_local(call: Call) -> Response:
    """Give a browser that was opened with the secret of a server without sign-in what a session has."""
    local = call.services.local_secret
    if local is None:
        raise conflict("Sign-in is on at this server, so its URL has no secret.")
    check_origin(call.request, call.services)
    if not local.is_value(call.body.secret):
        raise secret_needed("This is not the secret of this server.")
    return _opened(call, LOCAL, sessions.NewSession(local.cookie, local.page))


async def use_link(call: Call) -> Response:
    """Sign in with a link that an owner or administrator created, and choose a new password if it asks for one."""
    if not call.services.settings.login:
        raise conflict("Sign-in is off on this server.")
    check_origin(call.request, call.services)
    # Check the secret first: hashing a password is slow, and anyone can call this.
    link = await run_in_threadpool(_find_link, call)
    hashed = ""
    if link.sets_password:
        hashed = await call.services.pools.run(PASSWORD, NO_ACCOUNT, users.hash_password, call.body.password)
    return await run_in_threadpool(_signed_in_by_link, call, hashed)


def _find_link(call: Call) -> Link:
    with call.services.archive.read() as tx:
        link = find_link(tx, call.body.secret)
    if link is None:
        raise _no_link()
    return link


def _no_link() -> Refusal:
    return Refusal(410, "expired", "This link was already used, or it has expired. Ask for a new one.")


def _signed_in_by_link(call: Call, hashed: str) -> Response:
    with call.services.archive.write() as tx:
        link = redeem_link(tx, call.body.secret)
        user = users.get_user(tx, link.user_id) if link else None
        if link is None or user is None or link.sets_password != bool(hashed):
            raise _no_link()
        if hashed:
            users.set_password(tx, user.id, hashed)
            audit_server(call, tx, "password-changed", user.name, user=user.name)
        users.forget_attempts(tx, f"user {user.name}")
        # Choosing a password proves that the link reached its user, or the user will notice.
        new = sessions.open_session(tx, user.id, agent_of(call), address_of(call), by_link=not hashed)
        audit_server(call, tx, "sign-in", user.name, user=user.name, by="link")
    return _opened(call, user.name, new)


def log_out(call: Call) -> Response:
    name = cookie_name(call.request, call.services)
    cookie = call.request.cookies.get(name)
    if cookie and call.identity.kind == "session":
        with call.services.archive.write() as tx:
            sessions.close_session(tx, cookie)
            audit_server(call, tx, "sign-out", call.identity.name)
        call.services.live.end_streams(call.identity.user)
    response = json_response({"logged_out": True})
    response.delete_cookie(
        name,
        path=call.services.settings.root_path or "/",
        secure=is_https(call.request, call.services),
        httponly=True,
        samesite="strict",
    )
    return response


def begin_device(call: Call) -> dict[str, Any]:
    """Begin a device sign-in: a user confirms it in a browser, then the command line gets a token."""
    if not call.services.settings.login:
        raise conflict("Sign-in is off on this server, so there is nothing to confirm.")
    with call.services.archive.write() as tx:
        count_attempt(tx, {f"device {caller_address(call)}": MAX_PER_ADDRESS})
        # Anyone can begin one, so limit how many wait.
        if sessions.count_waiting(tx) >= MAX_LOGINS:
            raise too_many("Too many sign-ins are waiting for confirmation. Try again in a few minutes.", 60)
        body: DeviceRequest = call.body
        secret, code = sessions.begin_login(
            tx, body.label, address=address_of(call), host=body.host, scopes=body.scopes)  # fmt: skip
    return {
        "device_code": secret,
        "user_code": code,
        # Without the code: people type what their own terminal shows, so a link from somebody else approves nothing.
        "verification_url": f"{call.services.url}/device{f'?account={quote(body.account)}' if body.account else ''}",
        "expires_in": sessions.LOGIN_US // 1_000_000,
        "interval": INTERVAL_S,
    }


def collect_device(call: Call) -> dict[str, Any]:
    """Return the token once the sign-in is confirmed."""
    with call.services.archive.write() as tx:
        login = sessions.collect_login(tx, call.body.device_code)
        if login is None:
            raise Refusal(410, "expired", "This sign-in has expired or was used. Run daskscope login again.")
        if login.state == "waiting":
            raise Refusal(428, "waiting", "This sign-in is not confirmed yet.")
        if login.state == "denied" or login.user_id is None or login.account_id is None:
            raise forbidden("This sign-in was denied in the browser.")
        account = get_account(tx, login.account_id)
        roles = roles_of(tx, login.user_id)
        role = roles.get(account.id)
        user = users.get_user(tx, login.user_id)
        if role is None or user is None:
            raise forbidden("You are no longer a member of this account.")
        wanted = frozenset(login.scopes.split())
        # In other accounts the role of the user may allow more. Each request is limited by the role in its account.
        allowed = (
            frozenset[str]().union(*(ALLOWED[one] for one in roles.values())) if "accounts" in wanted else ALLOWED[role]
        )
        scopes = allowed & wanted
        if not ALLOWED[role] & wanted:
            raise forbidden(f"Your role in {account.name} is {role}, which allows none of the requested scopes.")
        label, expires = login.label or "daskscope login", tx.now_us + DEFAULT_DAYS * DAY
        number, secret = create_token(
            tx, account=account.id, user=user.id, scopes=scopes, label=label, expires_us=expires)  # fmt: skip
        details = {"id": number, "scopes": sorted(scopes), "expires": moment(expires)}
        record(tx, Event(account.id, user.name, "token-created", label, address_of(call), details))
    return {
        "token": secret,
        "account": account.name,
        "user": user.name,
        "expires": moment(expires),
        "scopes": sorted(scopes),
    }


def show_device(call: Call) -> DeviceSignIn:
    """Return the details of a code before it is confirmed."""
    with call.services.archive.read() as tx:
        login = sessions.find_login(tx, call.query.user_code)
    if login is None:
        raise not_found("sign-in with this code", "Codes expire after ten minutes.")
    return {
        "user_code": login.user_code,
        "state": login.state,
        "address": login.address,
        "host": login.host,
        "label": login.label,
        "scopes": login.scopes.split(),
    }


def decide_device(call: Call) -> dict[str, Any]:
    body: DeviceDecision = call.body
    # A token that could confirm sign-ins would be a way to create tokens.
    if call.identity.kind != "session":
        raise forbidden("Confirm this sign-in in a browser.")
    with call.services.archive.write() as tx:
        account = find_account(tx, body.account)
        if account is None or account.id not in roles_of(tx, call.identity.user):
            raise not_found("such account")
        code = body.user_code.strip().upper()
        if not sessions.decide_login(tx, code, call.identity.user, account.id, approve=body.approve):
            raise not_found("sign-in with this code", "Codes expire after ten minutes.")
        login = sessions.find_login(tx, code)
        about = {"address": login.address, "host": login.host} if login else {}
        action: AuditAction = "device-approved" if body.approve else "device-denied"
        subject = login.label if login else ""
        record(tx, Event(account.id, call.identity.name, action, subject, address_of(call), about))
    return {"user_code": code, "state": "approved" if body.approve else "denied"}


async def set_up(call: Call) -> Response:
    """Create the first user and account with the link that the server printed at its first start."""
    check_origin(call.request, call.services)
    # Check the secret first: hashing a password is slow, and anyone can call this.
    await run_in_threadpool(_check_secret, call)
    hashed = await call.services.pools.run(PASSWORD, NO_ACCOUNT, users.hash_password, call.body.password)
    user = await run_in_threadpool(_make_first, call, hashed)
    return await run_in_threadpool(_logged_in, call, user, call.body.user, hashed)


def _check_secret(call: Call) -> None:
    with call.services.archive.read() as tx:
        if not setup_matches(tx, call.body.secret):
            raise _no_setup()


def _no_setup() -> Refusal:
    return forbidden("This setup link was already used, or is not the one this server printed.")


def _make_first(call: Call, hashed: str) -> int:
    body: Setup = call.body
    with call.services.archive.write() as tx:
        if not setup_matches(tx, body.secret):
            raise _no_setup()
        user = users.create_user(tx, body.user, hashed, admin=True)
        account = create_account(tx, body.team)
        set_member(tx, account.id, user.id, "owner")
        # What was recorded while sign-in was off belongs to the first user too.
        before = find_account(tx, LOCAL)
        if before is not None:
            set_member(tx, before.id, user.id, "owner")
        # A concurrent use of the same link fails here.
        if not end_setup(tx):
            raise _no_setup()
        audit_server(call, tx, "setup", account.name, user=user.name)
    return user.id


ROUTES = [
    Route("GET", "/api/v1/me/sessions", list_sessions, USER, "List your browser sessions"),
    Route("DELETE", "/api/v1/me/sessions/{session}", end_session, USER, "End one of your browser sessions"),
    Route("POST", "/api/v1/session", log_in, PUBLIC, "Sign in with a password", body=PasswordLogin),
    Route("POST", "/api/v1/session/link", use_link, PUBLIC, "Sign in with a link that works once", body=LinkSignIn),
    Route(
        "POST",
        "/api/v1/session/secret",
        open_local,
        PUBLIC,
        "Open the app of a server without sign-in, with its secret",
        body=LocalSecretGiven,
    ),
    Route("DELETE", "/api/v1/session", log_out, PUBLIC, "Sign out"),
    Route("POST", "/api/v1/setup", set_up, PUBLIC, "Create the first user with the printed secret", body=Setup),
    Route(
        "POST",
        "/api/v1/device",
        begin_device,
        PUBLIC,
        "Begin a device sign-in",
        body=DeviceRequest,
        status=201,
    ),
    Route(
        "POST", "/api/v1/device/token", collect_device, PUBLIC, "Collect the token of a device sign-in", body=DeviceCode
    ),
    Route("GET", "/api/v1/device", show_device, USER, "Return the details of a device sign-in", query=CodeQuery),
    Route(
        "POST", "/api/v1/device/decision", decide_device, USER, "Confirm or deny a device sign-in", body=DeviceDecision
    ),
]
