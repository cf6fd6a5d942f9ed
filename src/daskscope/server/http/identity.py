"""Who sends a request: by token, by session, or by the secret of a server without sign-in."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from starlette.requests import Request

from daskscope.client.local_server import LOOPBACK
from daskscope.model.states import SCOPES
from daskscope.server.caches import Known, TokenCache
from daskscope.server.errors import Refusal, forbidden, secret_needed, unauthorized
from daskscope.server.services import LOCAL, LocalSecret, Services
from daskscope.server.settings import Settings
from daskscope.storage.people.accounts import Account, find_account, get_account, roles_of
from daskscope.storage.people.sessions import find_session
from daskscope.storage.people.tokens import ALLOWED, Token, digest, find_token, mark_used, renewed_us, well_formed
from daskscope.storage.people.users import get_user

# A browser session is bound to this server's pages by a page secret.
#
# Browsers send cookies to every port of a host, so another server on the same host (a Dask dashboard, for example) receives the
# cookie of a session and could replay it. The cookie alone is therefore worth nothing: signing in also returns a secret that
# the app keeps in its local storage, which belongs to one scheme, host and port, and sends in a header. The server stores a
# digest of both.
#
# A frame cannot send headers. It gets a ticket in its URL: signed with the digest of the secret, for one path and account, and
# valid for a minute.

HEADER = "daskscope-page"
TICKET_US = 60 * 1_000_000


def is_https(request: Request, services: Services) -> bool:
    return bool(request.scope["scheme"] == "https") or services.settings.url.startswith("https://")


def cookie_name(request: Request, services: Services) -> str:
    """Return the name of the session cookie.

    With https, the prefix makes browsers refuse a cookie of that name from http or another host. With http, the port
    keeps two servers on one host from replacing each other's cookie.
    """
    if is_https(request, services):
        return "__Secure-daskscope" if services.settings.root_path else "__Host-daskscope"
    return f"daskscope_{urlsplit(services.url).port or 80}"


def has_page_secret(request: Request, page_digest: str, account: str, now_us: int) -> bool:
    """Return whether a request with the cookie of a session comes from a page of this server."""
    if not page_digest:
        return False
    secret = request.headers.get(HEADER, "")
    if secret:
        return hmac.compare_digest(digest(secret), page_digest)
    expires, _, signature = request.query_params.get("ticket", "").partition(".")
    if request.method != "GET" or not (expires.isascii() and expires.isdigit()) or len(expires) > 17:
        return False
    if not now_us < int(expires) <= now_us + TICKET_US:
        return False
    wanted = _signature(page_digest, request.url.path, account, expires)
    return hmac.compare_digest(wanted.encode(), signature.encode())


def make_ticket(request: Request, path: str, account: str, now_us: int) -> str:
    """Return a ticket for a path of this server and an account."""
    expires = str(now_us + TICKET_US)
    secret = request.headers.get(HEADER, "")
    return f"{expires}.{_signature(digest(secret), path, account, expires)}"


def _signature(page_digest: str, path: str, account: str, expires: str) -> str:
    return hmac.new(page_digest.encode(), f"{path}\n{account}\n{expires}".encode(), hashlib.sha256).hexdigest()


SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class Identity:
    """The caller, and what they can do in the account of the request."""

    #: token, session, local, or nobody
    kind: str
    user: int = 0
    name: str = ""
    admin: bool = False
    scopes: frozenset[str] = frozenset()
    account: Account | None = None
    token: int = 0
    #: The only cluster a token can write to; empty means any.
    cluster: str = ""
    #: When the token expires; 0 means never.
    expires_us: int = 0
    #: Whether the server has no sign-in, and so one user: recorders say who runs a cluster.
    is_local: bool = False


NOBODY = Identity("nobody")
NOBODY_LOCAL = Identity("nobody", is_local=True)


def identify(request: Request, services: Services, cache: TokenCache) -> Identity:
    """Identify the caller. Refuse invalid tokens and sessions, and requests made by pages of other sites."""
    check_host(request, services)
    header = request.headers.get("authorization", "")
    local = services.local_secret
    if header:
        kind, _, secret = header.partition(" ")
        if kind.lower() not in ("bearer", "apitoken") or not secret.strip():
            raise unauthorized("The Authorization header reads: Bearer <token>.")
        if local is not None and local.is_value(secret.strip()):
            check_origin(request, services)
            return _local(services)
        return _by_token(secret.strip(), request, services, cache)
    cookie = request.cookies.get(cookie_name(request, services))
    if not cookie:
        return NOBODY if local is None else NOBODY_LOCAL
    check_origin(request, services)
    return (
        _by_session(cookie, request, services) if local is None else _by_local_cookie(cookie, request, services, local)
    )


def cached_identity(request: Request, services: Services, cache: TokenCache) -> Identity | None:
    """Return the caller of a request with a cached token, without the database; None if ``identify`` must be asked."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    now = services.archive.clock()
    found = cache.peek(secret.strip(), now) if kind.lower() in ("bearer", "apitoken") else None
    if found is None or _other_account(found, request):
        return None
    check_host(request, services)
    return _identity_of(found, services, now)


def _by_token(secret: str, request: Request, services: Services, cache: TokenCache) -> Identity:
    now = services.archive.clock()
    if not well_formed(secret) and services.local_secret is not None:
        raise secret_needed("This is neither the secret of this server nor a token.")
    if not well_formed(secret):
        raise unauthorized(
            "This is not a daskscope token, or it is incomplete. Create one with: daskscope token create"
        )

    def load() -> Known | None:
        with services.ingest_archive.read() as tx:
            token = find_token(tx, secret)
            if token is None:
                return None
            account, user = get_account(tx, token.account), get_user(tx, token.user)
        if token.is_unmarked(now):
            with services.ingest_archive.write() as tx:
                mark_used(tx, token.id)
                token = replace(token, expires_us=renewed_us(tx, token))
        # A token administers the server only if its user does and it has every scope.
        return Known(token, account, user is not None and user.admin and "admin" in token.scopes)

    found = cache.get(secret, now, load)
    if found is None and services.local_secret is not None:
        raise secret_needed("This token is unknown, revoked or expired.")
    if found is None:
        raise unauthorized("This token is unknown, revoked or expired. Sign in again with: daskscope login")
    identity = _identity_of(found, services, now)
    named = "" if identity.is_local else _other_account(found, request)
    return _in_account(identity, found.token, named, services) if named else identity


def _other_account(found: Known, request: Request) -> str:
    """Return the account that a request names, if it is not the token's and the token is for all accounts of its user."""
    named = named_account(request)
    return named if "accounts" in found.token.granted and named != found.account.name else ""


def _in_account(identity: Identity, token: Token, name: str, services: Services) -> Identity:
    """Return the scopes that a token for all accounts has in one of them."""
    with services.ingest_archive.read() as tx:
        account, roles = find_account(tx, name), roles_of(tx, token.user)
        if account is None or account.id not in roles:
            own = sorted(get_account(tx, number).name for number in roles)
            raise Refusal(403, "other_account", f"You are not a member of {name}. Your accounts: {', '.join(own)}.")
    return replace(identity, account=account, scopes=token.granted & ALLOWED[roles[account.id]])


def _identity_of(found: Known, services: Services, now: int) -> Identity:
    token, account = found.token, found.account
    if token.expires_us and token.expires_us <= now:
        raise unauthorized("This token has expired. Sign in again with: daskscope login")
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
        is_local=token.user == services.local_user,
    )


def _by_session(cookie: str, request: Request, services: Services) -> Identity:
    name = named_account(request)
    with services.ingest_archive.read() as tx:
        session = find_session(tx, cookie)
        if session is None or not has_page_secret(request, session.page_digest, name, tx.now_us):
            return NOBODY
        user = get_user(tx, session.user_id)
        if user is None:
            return NOBODY
        roles = roles_of(tx, user.id)
        account = find_account(tx, name) if name else None
        if account is None and not name and len(roles) == 1:
            account = get_account(tx, next(iter(roles)))
    if account is None or account.id not in roles:
        return Identity("session", user.id, user.name, user.admin)
    return Identity("session", user.id, user.name, user.admin, ALLOWED[roles[account.id]], account)


def named_account(request: Request) -> str:
    """Return the account that a request names in its path or as a parameter; empty if none."""
    return str(request.path_params.get("account") or request.query_params.get("account") or "")


def _by_local_cookie(cookie: str, request: Request, services: Services, local: LocalSecret) -> Identity:
    name, now = named_account(request), services.archive.clock()
    if not local.is_cookie(cookie) or not has_page_secret(request, digest(local.page), name, now):
        return NOBODY_LOCAL
    return _local(services)


def _local(services: Services) -> Identity:
    with services.ingest_archive.read() as tx:
        account = get_account(tx, services.local_account)
    return Identity(
        "local", services.local_user, LOCAL, admin=True, scopes=frozenset(SCOPES), account=account, is_local=True
    )


def check_scope(identity: Identity, scope: str) -> None:
    """Refuse a caller without the scope."""
    if identity is NOBODY_LOCAL:
        raise secret_needed("This request has no secret.")
    if identity.kind == "nobody":
        raise unauthorized("Sign in first: run daskscope login, or use the sign-in page in a browser.")
    if identity.account is None:
        raise Refusal(403, "no_account", "Add ?account=NAME with an account you are a member of.")
    if scope not in identity.scopes:
        if scope == "tokens" and identity.kind == "token":
            raise forbidden(
                "This token cannot create tokens. Create one in the browser under Settings, or sign in with: "
                "daskscope login --create-tokens"
            )
        have = ", ".join(name for name in SCOPES if name in identity.scopes) or "nothing"
        raise forbidden(f"This needs the scope {scope}; yours allows {have}. An owner of the account can change that.")


def check_host(request: Request, services: Services) -> None:
    """Accept only the server's own names. Another name that resolves to this address would let any web page in."""
    settings = services.settings
    host = _host_of(request)
    if settings.login:
        if settings.host_names and host not in settings.host_names:
            raise forbidden(f"This server is at {settings.url}. Its operator can allow other names with --hosts.")
    elif host not in LOOPBACK:
        raise forbidden(
            "This server answers to its loopback address only. Set --url and --login to serve it to others."
        )


def is_content_host(request: Request, settings: Settings) -> bool:
    """Return whether a request is for the origin of uploaded HTML."""
    return bool(settings.content_url) and _host_of(request) == settings.content_host


def _host_of(request: Request) -> str:
    try:
        return urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    except ValueError:
        return ""


def check_origin(request: Request, services: Services) -> None:
    """Refuse a request that changes something unless it comes from this server's pages or from no page."""
    if request.method in SAFE:
        return
    site = request.headers.get("sec-fetch-site", "")
    if site and site not in ("same-origin", "none"):
        raise forbidden("This request was made by a page of another site.")
    origin = request.headers.get("origin", "")
    if not origin:
        # A browser that sends a cookie with a changing request always sends its origin.
        if request.cookies.get(cookie_name(request, services)) and not site:
            raise forbidden("This request does not say which page it comes from.")
        return
    own = urlsplit(services.settings.url)
    public = f"{own.scheme}://{own.netloc}" if services.settings.url else ""
    # With a public URL, only pages under it count, unless the request uses a further name.
    here = f"{request.scope['scheme']}://{request.headers.get('host', '')}"
    allowed = {public} if public and _host_of(request) == own.hostname else {public, here}
    if origin not in allowed:
        raise forbidden("This request was made by a page of another site.")
