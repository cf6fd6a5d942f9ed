"""Who is asking: a token, a browser session, or, without login, whoever reaches loopback."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request

from daskscope.server.failure import Refusal, forbidden, unauthorized
from daskscope.server.services import LOCAL, Services
from daskscope.storage.accounts import Account, find_account, get_account, roles_of
from daskscope.storage.sessions import session_user
from daskscope.storage.tokens import ALLOWED, SCOPES, USED_STEP_US, Token, digest, find_token, mark_used, well_formed
from daskscope.storage.users import get_user

COOKIE = "daskscope_session"
#: How long a token is believed without asking the database again: what a revocation on another server may take.
CACHE_US = 30 * 1_000_000
MOST_CACHED = 10_000
SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class Identity:
    """Who asks, and what they may do in the account they ask about."""

    #: token, session, local, or nobody
    kind: str
    user: int = 0
    name: str = ""
    admin: bool = False
    scopes: frozenset[str] = frozenset()
    account: Account | None = None
    token: int = 0
    #: The only cluster a token may write to; empty: any.
    cluster: str = ""
    #: When the token ends; 0: never.
    expires_us: int = 0


NOBODY = Identity("nobody")


@dataclass(frozen=True)
class Known:
    """A token that was looked up: itself, its account, and whether its user administers the server."""

    token: Token
    account: Account
    admin: bool


class TokenCache:
    """Tokens that were looked up lately, so that a batch costs no query for its token."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: dict[str, tuple[int, Known]] = {}
        self._age = 0

    def get(self, secret: str, now_us: int, load: Callable[[], Known | None]) -> Known | None:
        key = digest(secret)
        with self._lock:
            kept, age = self._tokens.get(key), self._age
        if kept is not None and 0 <= now_us - kept[0] < CACHE_US:
            return kept[1]
        found = load()
        with self._lock:
            if len(self._tokens) >= MOST_CACHED:
                self._tokens.clear()
            self._tokens.pop(key, None)
            # What was read before a change must not be kept after it.
            if found is not None and age == self._age:
                self._tokens[key] = now_us, found
        return found

    def clear(self) -> None:
        """Something about tokens, members or accounts changed."""
        with self._lock:
            self._tokens.clear()
            self._age += 1


def identify(request: Request, services: Services, cache: TokenCache) -> Identity:
    """Who asks; refuses a token or session that is no good, and requests a foreign page made."""
    check_host(request, services)
    header = request.headers.get("authorization", "")
    # Without login there is one user: a recorder may send any token, or none.
    if header and services.settings.login:
        kind, _, secret = header.partition(" ")
        if kind.lower() not in ("bearer", "apitoken") or not secret.strip():
            raise unauthorized("The Authorization header reads: Bearer <token>.")
        return _by_token(secret.strip(), services, cache)
    if not services.settings.login:
        return _local(request, services)
    cookie = request.cookies.get(COOKIE)
    if not cookie:
        return NOBODY
    check_origin(request, services)
    return _by_session(cookie, request, services)


def _by_token(secret: str, services: Services, cache: TokenCache) -> Identity:
    now = services.clock()
    if not well_formed(secret):
        raise unauthorized("This is no daskscope token, or one that was cut off. Make one with: daskscope token create")

    def load() -> Known | None:
        with services.database.read() as connection:
            token = find_token(connection, secret, now)
            if token is None:
                return None
            account, user = get_account(connection, token.account), get_user(connection, token.user)
        if now - token.used_us > USED_STEP_US:
            with services.database.write() as connection:
                mark_used(connection, token.id, now)
        # A token administers the server where its user does and it may do everything: one for reading does not.
        return Known(token, account, user is not None and user.admin and "admin" in token.scopes)

    found = cache.get(secret, now, load)
    if found is None:
        raise unauthorized(
            "This token is not known here, was revoked, or has expired. Log in again with: daskscope login"
        )
    token, account = found.token, found.account
    if token.expires_us and token.expires_us <= now:
        raise unauthorized("This token has expired. Log in again with: daskscope login")
    return Identity(
        "token",
        token.user,
        token.user_name,
        found.admin,
        scopes=token.scopes,
        account=account,
        token=token.id,
        cluster=token.cluster,
        expires_us=token.expires_us,
    )


def _by_session(cookie: str, request: Request, services: Services) -> Identity:
    with services.database.read() as connection:
        number = session_user(connection, cookie, services.clock())
        user = get_user(connection, number) if number is not None else None
        if user is None:
            return NOBODY
        roles = roles_of(connection, user.id)
        name = named_account(request)
        account = find_account(connection, name) if name else None
        if account is None and not name and len(roles) == 1:
            account = get_account(connection, next(iter(roles)))
    if account is None or account.id not in roles:
        return Identity("session", user.id, user.name, user.admin)
    return Identity("session", user.id, user.name, user.admin, ALLOWED[roles[account.id]], account)


def named_account(request: Request) -> str:
    """The account a request names, in its path or as a parameter; empty where it names none."""
    return str(request.path_params.get("account") or request.query_params.get("account") or "")


def _local(request: Request, services: Services) -> Identity:
    check_origin(request, services)
    with services.database.read() as connection:
        account = get_account(connection, services.local_account)
    return Identity("local", services.local_user, LOCAL, admin=True, scopes=frozenset(SCOPES), account=account)


def check_scope(identity: Identity, scope: str) -> None:
    """Refuse whoever may not do what ``scope`` names."""
    if identity.kind == "nobody":
        raise unauthorized("Log in first: daskscope login, or the login page in a browser.")
    if identity.account is None:
        raise Refusal(403, "no_account", "Say which account: ?account=NAME, one you are a member of.")
    if scope not in identity.scopes:
        have = ", ".join(name for name in SCOPES if name in identity.scopes) or "nothing"
        raise forbidden(f"This needs the scope {scope}; yours allows {have}. An owner of the account can change that.")


def check_host(request: Request, services: Services) -> None:
    """Without login: only names that are loopback. A foreign name that resolves to it would make any web page a client."""
    if services.settings.login:
        return
    try:
        host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    except ValueError:
        host = ""
    own = urlsplit(services.settings.url).hostname
    if host not in ("127.0.0.1", "localhost", "::1") and host != own:
        raise forbidden("This server answers to its loopback address only. Set --url to serve it under another name.")


def check_origin(request: Request, services: Services) -> None:
    """A request that changes something must come from a page of ours, or from no page at all."""
    if request.method in SAFE:
        return
    site = request.headers.get("sec-fetch-site", "")
    if site and site not in ("same-origin", "none"):
        raise forbidden("This request was made by a page of another site.")
    origin = request.headers.get("origin", "")
    if not origin:
        # A browser that sends a cookie with a request that changes something always says where it comes from.
        if request.cookies.get(COOKIE) and services.settings.login and not site:
            raise forbidden("This request does not say which page it comes from.")
        return
    allowed = {f"{request.scope['scheme']}://{request.headers.get('host', '')}"}
    if services.settings.url:
        parts = urlsplit(services.settings.url)
        allowed.add(f"{parts.scheme}://{parts.netloc}")
    if origin not in allowed:
        raise forbidden("This request was made by a page of another site.")
