"""Logging in: with a password in a browser, or by confirming a code for a command line."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from daskscope.server.failure import Refusal, conflict, forbidden, not_found, too_many
from daskscope.server.identity import COOKIE, check_origin
from daskscope.server.pools import PASSWORD
from daskscope.server.routing import PUBLIC, USER, Call, Route, json_response
from daskscope.server.services import LOCAL
from daskscope.storage import sessions, users
from daskscope.storage.accounts import create_account, find_account, get_account, roles_of, set_member
from daskscope.storage.setup import end_setup, setup_matches
from daskscope.storage.tokens import ALLOWED, create_token

Text = Annotated[str, msgspec.Meta(max_length=200)]
Secret = Annotated[str, msgspec.Meta(max_length=1000)]
#: How often a waiting command line may ask.
INTERVAL_S = 2
#: Logins of command lines that may wait at once.
MOST_LOGINS = 1_000
#: Of them those that one address may begin in a quarter of an hour: it must not take them all.
MOST_FROM_AN_ADDRESS = 100


class PasswordLogin(msgspec.Struct, forbid_unknown_fields=True):
    user: Text
    password: Secret


class DeviceRequest(msgspec.Struct, forbid_unknown_fields=True):
    label: Text = ""


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
        raise conflict("This server asks for no login.")
    # A foreign page must not log somebody in as somebody else.
    check_origin(call.request, call.services)
    number, stored = await check_password(call, body.user, body.password)
    if not number:
        raise _wrong()
    return await run_in_threadpool(_logged_in, call, number, body.user, stored)


def _wrong() -> Refusal:
    return Refusal(401, "wrong_password", "The name or the password is not right.")


async def check_password(call: Call, user: str, password: str) -> tuple[int, str]:
    """The number of the user whose password this is, else 0, and its hash; whoever guesses too often is refused."""
    number, stored = await run_in_threadpool(_stored, call, user)
    right = await call.services.pools.run(PASSWORD, users.password_matches, password, stored)
    if not (right and number):
        return 0, ""
    await run_in_threadpool(_was_right, call, user)
    return number, stored


def _address(call: Call) -> str:
    return f"address {call.request.client.host if call.request.client else ''}"


def _stored(call: Call, user: str) -> tuple[int, str]:
    limits = {f"user {user}": users.MOST_FOR_A_USER, _address(call): users.MOST_ATTEMPTS}
    with call.services.database.write() as connection:
        _count(connection, call, limits)
        return users.stored_password(connection, user)


def _count(connection: Any, call: Call, limits: dict[str, int]) -> None:
    try:
        users.count_attempt(connection, limits, call.now_us)
    except users.TooManyAttempts as error:
        raise too_many(str(error), users.LOCK_US / 1e6) from None


def _was_right(call: Call, user: str) -> None:
    with call.services.database.write() as connection:
        users.forget_attempts(connection, f"user {user}")
        users.take_back_attempt(connection, _address(call))


def _logged_in(call: Call, user: int, name: str, stored: str) -> Response:
    agent = call.request.headers.get("user-agent", "")
    with call.services.database.write() as connection:
        # The password may have been changed while it was compared, which ended every session but this one.
        if not users.has_password(connection, user, stored):
            raise _wrong()
        secret = sessions.open_session(connection, user, agent, call.now_us)
    response = json_response({"user": name})
    response.set_cookie(
        COOKIE,
        secret,
        max_age=sessions.SESSION_US // 1_000_000,
        httponly=True,
        samesite="lax",
        secure=call.request.scope["scheme"] == "https" or call.services.settings.url.startswith("https://"),
        path=call.services.settings.root_path or "/",
    )
    return response


def log_out(call: Call) -> Response:
    cookie = call.request.cookies.get(COOKIE)
    if cookie:
        with call.services.database.write() as connection:
            sessions.close_session(connection, cookie)
    response = json_response({"logged_out": True})
    response.delete_cookie(COOKIE, path=call.services.settings.root_path or "/")
    return response


def begin_device(call: Call) -> dict[str, Any]:
    """A command line wants a token: somebody has to confirm it in a browser."""
    if not call.services.settings.login:
        raise conflict("This server asks for no login: nothing has to be confirmed.")
    with call.services.database.write() as connection:
        _count(connection, call, {f"device {_address(call)}": MOST_FROM_AN_ADDRESS})
        # Anybody may begin one: what waits must have an end.
        if sessions.count_waiting(connection, call.now_us) >= MOST_LOGINS:
            raise too_many("Too many logins wait to be confirmed. Try again in some minutes.", 60)
        secret, code = sessions.begin_login(connection, call.body.label, call.now_us)
    return {
        "device_code": secret,
        "user_code": code,
        "verification_url": f"{call.services.url}/device?code={code}",
        "expires_in": sessions.LOGIN_US // 1_000_000,
        "interval": INTERVAL_S,
    }


def collect_device(call: Call) -> dict[str, Any]:
    """The token, once somebody has confirmed."""
    with call.services.database.write() as connection:
        login = sessions.collect_login(connection, call.body.device_code, call.now_us)
        if login is None:
            raise Refusal(410, "expired", "This login has expired or was used. Run daskscope login again.")
        if login.state == "waiting":
            raise Refusal(428, "waiting", "Nobody has confirmed this login yet.")
        if login.state == "denied" or login.user is None or login.account is None:
            raise forbidden("This login was denied in the browser.")
        account = get_account(connection, login.account)
        role = roles_of(connection, login.user).get(account.id)
        user = users.get_user(connection, login.user)
        if role is None or user is None:
            raise forbidden("You are no member of this account any more.")
        _, secret = create_token(
            connection, account=account.id, user=user.id, scopes=ALLOWED[role], label=login.label or "daskscope login",
            now_us=call.now_us,
        )  # fmt: skip
    return {"token": secret, "account": account.name, "user": user.name}


def show_device(call: Call) -> dict[str, Any]:
    """What a code was made for, before somebody confirms it."""
    with call.services.database.read() as connection:
        login = sessions.find_login(connection, call.query.user_code, call.now_us)
    if login is None:
        raise not_found("login with this code; codes last ten minutes")
    return {"user_code": login.user_code, "label": login.label, "state": login.state}


def decide_device(call: Call) -> dict[str, Any]:
    body: DeviceDecision = call.body
    # A token that could confirm logins would be a way to get another token out of nothing.
    if call.identity.kind != "session":
        raise forbidden("A login is confirmed by a person, in a browser.")
    with call.services.database.write() as connection:
        account = find_account(connection, body.account)
        if account is None or account.id not in roles_of(connection, call.identity.user):
            raise not_found("such account")
        code = body.user_code.strip().upper()
        if not sessions.decide_login(
            connection, code, call.identity.user, account.id, call.now_us, approve=body.approve
        ):
            raise not_found("login with this code; codes last ten minutes")
    return {"user_code": code, "state": "approved" if body.approve else "denied"}


async def set_up(call: Call) -> Response:
    """The first user and account, by whoever has the link the server printed when it first started."""
    check_origin(call.request, call.services)
    # First of all: a password takes long to hash, and anybody can ask.
    await run_in_threadpool(_check_secret, call)
    hashed = await call.services.pools.run(PASSWORD, users.hash_password, call.body.password)
    user = await run_in_threadpool(_make_first, call, hashed)
    return await run_in_threadpool(_logged_in, call, user, call.body.user, hashed)


def _check_secret(call: Call) -> None:
    with call.services.database.read() as connection:
        if not setup_matches(connection, call.body.secret):
            raise _no_setup()


def _no_setup() -> Refusal:
    return forbidden("This set-up link was used, or is not the one this server printed.")


def _make_first(call: Call, hashed: str) -> int:
    body: Setup = call.body
    with call.services.database.write() as connection:
        if not setup_matches(connection, body.secret):
            raise _no_setup()
        user = users.create_user(connection, body.user, hashed, call.now_us, admin=True)
        account = create_account(connection, call.services.vault, body.team, call.now_us)
        set_member(connection, account.id, user.id, "owner", call.now_us)
        # What was recorded while the server asked for no login is theirs, too.
        before = find_account(connection, LOCAL)
        if before is not None:
            set_member(connection, before.id, user.id, "owner", call.now_us)
        # Whoever else came with the same link at the same moment finds it gone.
        if not end_setup(connection):
            raise _no_setup()
    return user.id


ROUTES = [
    Route("POST", "/api/v1/session", log_in, PUBLIC, "Log in with a password", body=PasswordLogin),
    Route("DELETE", "/api/v1/session", log_out, PUBLIC, "Log out"),
    Route("POST", "/api/v1/setup", set_up, PUBLIC, "Make the first user, with the printed secret", body=Setup),
    Route(
        "POST",
        "/api/v1/device",
        begin_device,
        PUBLIC,
        "Begin a login of a command line",
        body=DeviceRequest,
        status=201,
    ),
    Route("POST", "/api/v1/device/token", collect_device, PUBLIC, "Collect its token", body=DeviceCode),
    Route("GET", "/api/v1/device", show_device, USER, "What a code was made for", query=CodeQuery),
    Route("POST", "/api/v1/device/decision", decide_device, USER, "Confirm or deny a login", body=DeviceDecision),
]
