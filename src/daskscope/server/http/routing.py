"""Routing: from declared routes to an application that identifies, checks, parses and answers every request.

A route declares who can call it, its query and body, and its function. The OpenAPI document and the test that calls
every route with every kind of wrong token use the same declarations.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from daskscope.errors import DaskscopeError
from daskscope.server.caches import TokenCache
from daskscope.server.errors import Refusal, bad_request, not_found, too_large, unavailable
from daskscope.server.http.identity import (
    NOBODY,
    SAFE,
    Identity,
    cached_identity,
    check_host,
    check_scope,
    identify,
    is_content_host,
    named_account,
)
from daskscope.server.http.pages import message_page
from daskscope.server.http.protocol import MAX_HEADERS
from daskscope.server.pools import HEAVY, NO_ACCOUNT, READ
from daskscope.server.services import Services
from daskscope.storage.base.blobs import StoreAway
from daskscope.storage.base.database import DatabaseError, InvalidInput, detail_of, is_outage
from daskscope.storage.people.accounts import Account
from daskscope.storage.runs.read import RunTooLarge
from daskscope.wire.layout import MAX_CLUSTER

logger = logging.getLogger("daskscope.server")

#: Who can call a route: anyone, any signed-in user, administrators of the server, or callers with the scope.
#: ``ANYBODY`` is not identified at all, so it answers while the database is down. ``CONTENT`` is neither: its address is
#: signed. It is the only kind of route on the origin of uploaded HTML, besides probes, and is nowhere else.
ANYBODY, PUBLIC, USER, SERVER_ADMIN, CONTENT = "anybody", "public", "user", "server-admin", "content"
PROBES = ("/healthz", "/readyz", "/readyz/read")
#: Largest JSON body.
MAX_JSON = 1024 * 1024
#: The same for routes that need no credentials.
MAX_PUBLIC = 4 * 1024
#: An escaped NUL in JSON, but not an escaped backslash before ``u0000``, as in code.
ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
#: How long a body may take to arrive; a slow one holds memory.
BODY_S = 60.0


@dataclass(frozen=True)
class Route:
    """A route of the API."""

    method: str
    path: str
    handler: Callable[..., Any]
    access: str
    summary: str
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    #: Content type of a body that is not JSON; the handler reads it itself.
    content: str = ""
    status: int = 200
    #: Content type of a response that is not JSON.
    answers: str = "application/json"
    #: Reads or renders whole runs, and runs in one of a few threads.
    heavy: bool = False
    #: A page for people: a browser without a session is redirected to the sign-in page, and errors are pages too.
    page: bool = False

    @property
    def changes(self) -> bool:
        """Return whether the route changes an account, other than by ingest. A recorder's token ends with its parent."""
        return self.method not in SAFE and self.access not in (ANYBODY, PUBLIC, CONTENT, "ingest")


@dataclass
class Call:
    """A checked request."""

    request: Request
    services: Services
    identity: Identity
    now_us: int
    query: Any = None
    body: Any = None
    #: Identifies the caller again, from the database.
    again: Callable[[], Identity] = lambda: NOBODY

    @property
    def account(self) -> Account:
        assert self.identity.account is not None
        return self.identity.account

    @property
    def account_id(self) -> int:
        """Return the number of the account; ``NO_ACCOUNT`` if the request names none."""
        return self.identity.account.id if self.identity.account else NO_ACCOUNT

    @property
    def lost_after_us(self) -> int:
        return self.services.settings.lost_after * 1_000_000

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    common = {**JSON_HEADERS, **(headers or {})}
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        # A lone surrogate from a recorder: JSON can escape it, UTF-8 cannot encode it.
        data = json.dumps(value).encode()
    return Response(data, status, common, "application/json")


#: A response for programs is never shown as a page or in a frame.
JSON_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def build_app(routes: Sequence[Route], services: Services) -> Starlette:
    """Return the application that serves ``routes``."""
    app = Starlette(
        routes=[StarletteRoute(r.path, _endpoint(r, services), methods=[r.method], name=name_of(r)) for r in routes],
        exception_handlers={HTTPException: _hardened(_http_exception), Exception: _hardened(_unexpected)},
    )
    # No redirects for trailing slashes: they would use the Host header, which the client controls.
    app.router.redirect_slashes = False
    app.state.services = services
    return app


def name_of(route: Route) -> str:
    return str(getattr(route.handler, "__name__", "route"))


def _endpoint(route: Route, services: Services) -> Callable[[Request], Any]:
    cache = services.token_cache
    is_async = inspect.iscoroutinefunction(route.handler)

    async def answer(request: Request) -> Response:
        _check_headers(request)
        _check_place(route, request, services)
        if route.access in (ANYBODY, CONTENT):
            # Not in a thread: probes must be answered while all threads wait for the database.
            call = _checked(route, request, services, cache)
        elif route.access == "ingest" and (known := cached_identity(request, services, cache)) is not None:
            # A recorder posts every few seconds; a thread costs as much as the rest of this check.
            call = _checked(route, request, services, cache, known)
        else:
            call = await run_in_threadpool(_checked, route, request, services, cache)
        await services.pools.turn(call.account_id)
        await _read_body(route, request, call)
        if route.changes:
            # Identify again: a token is cached for half a minute and a body may take a minute. A caller revoked
            # meanwhile must not create a token or member that stays.
            call.identity = await run_in_threadpool(call.again)
        if is_async:
            value = await route.handler(call)
        else:
            value = await services.pools.run(HEAVY if route.heavy else READ, call.account_id, route.handler, call)
        return value if isinstance(value, Response) else json_response(value, route.status)

    async def endpoint(request: Request) -> Response:
        began = time.perf_counter()
        try:
            response = await answer(request)
        except Refusal as refusal:
            response = _refused(route, request, refusal)
        except ClientDisconnect:
            response = Response(status_code=400)
        except (DatabaseError, StoreAway) as error:
            response = _refused(route, request, _away(services, error))
        except InvalidInput as error:
            response = _refused(route, request, bad_request(str(error)))
        except DaskscopeError as error:
            response = _refused(route, request, _broken(services, error))
        harden(response, services)
        services.counters.add("requests", 1, f"{name_of(route)} {response.status_code // 100}xx")
        services.counters.add("request_seconds", time.perf_counter() - began, name_of(route))
        return response

    return endpoint


#: Nothing here uses these, and a page in a frame must not either.
PERMISSIONS = ", ".join(
    f"{name}=()"
    for name in (
        "accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "hid", "magnetometer", "microphone", "midi",
        "payment", "serial", "usb", "xr-spatial-tracking",
    )
)  # fmt: skip


def harden(response: Response, services: Services) -> None:
    """Add the headers that every response has, unless the route set its own."""
    for name, value in (
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Permissions-Policy", PERMISSIONS),
        ("Referrer-Policy", "no-referrer"),
    ):
        response.headers.setdefault(name, value)
    if services.settings.is_https:
        # A year, as browsers expect.
        response.headers.setdefault("Strict-Transport-Security", "max-age=31536000")


def _check_headers(request: Request) -> None:
    """Refuse large headers that arrived at once: the protocol limits only those that arrive in parts."""
    scope = request.scope
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    if size + len(scope["raw_path"]) + len(scope["query_string"]) > MAX_HEADERS:
        raise Refusal(431, "headers_too_large", f"The headers of this request have more than {MAX_HEADERS:,} bytes.")


def _check_place(route: Route, request: Request, services: Services) -> None:
    """Refuse a route that is not on the origin of the request."""
    is_content = is_content_host(request, services.settings)
    if route.path not in PROBES and is_content != (route.access == CONTENT):
        raise not_found("page at this address")


def _away(services: Services, error: DatabaseError | StoreAway) -> Refusal:
    """Return the 503 response for an unavailable database or store; a refused statement is a bug and stays a 500."""
    if isinstance(error, DatabaseError) and not is_outage(error):
        raise error
    what = "its store" if isinstance(error, StoreAway) else "its database"
    services.complain(f"{what.removeprefix('its ')} does not answer: {detail_of(error)}")
    return unavailable(f"The server cannot reach {what} at the moment. Try again soon.")


def _broken(services: Services, error: DaskscopeError) -> Refusal:
    """Return the 500 response for what is wrong with the server itself: a missing file, a master key that does not fit.

    What is too large to be read is the caller's to change.
    """
    if isinstance(error, RunTooLarge):
        return too_large(str(error))
    services.complain(f"the server's own data cannot be used: {error}")
    return Refusal(500, "internal", "The server cannot use its own data. The reason is in its log.")


def _refused(route: Route, request: Request, refusal: Refusal) -> Response:
    """Return an error as JSON for programs and as a page for people."""
    if not route.page or "text/html" not in request.headers.get("accept", ""):
        return json_response(refusal.body(), refusal.status, refusal.headers)
    return message_page("Not found" if refusal.status == 404 else "Sorry", str(refusal), refusal.status)


def _checked(
    route: Route, request: Request, services: Services, cache: TokenCache, known: Identity | None = None
) -> Call:
    """Check a request of a caller that is ``known``, or is identified here with the database."""
    if route.access in (ANYBODY, CONTENT):
        # Probes of an orchestrator use the address of the container.
        if route.path not in PROBES and route.access != CONTENT:
            check_host(request, services)
        return Call(request, services, NOBODY, services.archive.clock())
    identity = known or identify(request, services, cache)
    if route.access in (USER, SERVER_ADMIN):
        if identity.kind == "nobody":
            check_scope(identity, "read")
        if route.access == SERVER_ADMIN and not identity.admin:
            raise Refusal(403, "forbidden", "Only an administrator of this server can do this.")
    elif route.access != PUBLIC:
        check_scope(identity, route.access)
        _check_account(request, identity)
    if not all(map(_storable, request.path_params.values())):
        raise not_found("page at this address")
    if route.access == "read" and identity.account is not None and "cluster" in request.path_params:
        services.live.watched.note(identity.account.id, str(request.path_params["cluster"])[:MAX_CLUSTER])
    call = Call(request, services, identity, services.archive.clock())
    call.again = lambda: _checked(route, request, services, TokenCache()).identity
    if route.query is not None:
        call.query = _parse_query(request, route.query)
    return call


def _storable(text: object) -> bool:
    """Return whether a database can store a text: none takes lone surrogates, and PostgreSQL takes no NUL."""
    return "\x00" not in str(text) and not any("\ud800" <= char <= "\udfff" for char in str(text))


def _check_account(request: Request, identity: Identity) -> None:
    """Check that a named account is the token's."""
    # Without sign-in there is one account, whatever name a program uses; links do name it.
    named = request.path_params.get("account") if identity.is_local else named_account(request)
    assert identity.account is not None
    if named and named != identity.account.name:
        raise Refusal(
            403,
            "other_account",
            f"This token is for the account {identity.account.name} only. "
            "Get one for all your accounts with: daskscope login",
        )


def _parse_query(request: Request, kind: type[msgspec.Struct]) -> Any:
    values = {key: value for key, value in request.query_params.items() if key != "account"}
    known = set(kind.__struct_fields__)
    unknown = sorted(set(values) - known)
    if unknown:
        raise bad_request(f"There is no parameter {unknown[0][:60]!r}. The parameters are {', '.join(sorted(known))}.")
    if not all(map(_storable, values.values())):
        raise bad_request("A parameter contains an invalid character.")
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise bad_request(f"A parameter is wrong: {error}.") from None


async def _read_body(route: Route, request: Request, call: Call) -> None:
    if route.body is None:
        return
    # Anyone can send a body to a public route.
    data = await read_limited(request, MAX_PUBLIC if route.access in (ANYBODY, PUBLIC) else MAX_JSON)
    if ESCAPED_NUL.search(data):
        raise bad_request("The body contains an invalid character.")
    try:
        call.body = msgspec.json.decode(data or b"{}", type=route.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"The body is wrong: {error}.") from None


async def read_limited(request: Request, limit: int, patience: float = BODY_S) -> bytes:
    """Return the whole body if it is within the limit."""
    parts: list[bytes] = []
    await receive(request, limit, parts.append, patience)
    return b"".join(parts)


async def receive(request: Request, limit: int, keep: Callable[[bytes], object], patience: float) -> None:
    """Pass the parts of the body to ``keep`` as they arrive, within the limits of size and time."""
    claimed = request.headers.get("content-length", "")
    if claimed.isdigit() and int(claimed[:20]) > limit:
        raise too_large(f"This body has {int(claimed[:20]):,} bytes, and the limit is {limit:,} bytes.")

    async def read() -> None:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise too_large(f"This body is larger than the limit of {limit:,} bytes.")
            keep(part)

    try:
        await asyncio.wait_for(read(), patience)
    except asyncio.TimeoutError:
        raise Refusal(408, "too_slow", f"This body did not arrive within {patience:.0f} s. Send it again.") from None


def _hardened(handler: Callable[[Request, Exception], Awaitable[Response]]) -> Any:
    async def answer(request: Request, error: Exception) -> Response:
        response = await handler(request, error)
        harden(response, request.app.state.services)
        return response

    return answer


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405 and is_content_host(request, request.app.state.services.settings):
        # This host does not reveal which paths exist on the app's host.
        error = HTTPException(404)
    if error.status_code == 404:
        refusal = Refusal(404, "not_found", f"There is nothing at {request.scope['path'][:200]}.")
    elif error.status_code == 405:
        refusal = Refusal(
            405, "method_not_allowed", "This method is not allowed here.", headers=dict(error.headers or {})
        )
    else:
        refusal = Refusal(error.status_code, "refused", str(error.detail), headers=dict(error.headers or {}))
    return json_response(refusal.body(), refusal.status, refusal.headers)


async def _unexpected(request: Request, error: Exception) -> Response:
    # Number the traceback in the log; the response does not contain it.
    number = secrets.token_hex(4)
    # Log the repr: a path may contain newlines, which would forge log lines.
    logger.error("%s %r failed (%s)", request.method, request.scope["path"], number, exc_info=error)
    refusal = Refusal(500, "internal", f"The server failed. The reason is in its log under {number}.")
    return json_response(refusal.body(), 500)
