"""Bind a browser session to this server's pages.

Browsers send cookies to every port of a host, so another server on the same host (a Dask dashboard, for example) receives
the cookie of a session and could replay it. The cookie alone is therefore worth nothing: signing in also returns a secret
that the app keeps in its local storage, which belongs to one scheme, host and port, and sends in a header. The server
stores a digest of both.

A frame cannot send headers. It gets a ticket in its URL: signed with the digest of the secret, for one path and account,
and valid for a minute.
"""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlsplit

from starlette.requests import Request

from daskscope.server.services import Services
from daskscope.storage.tokens import digest

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
