"""From declared routes to an application: every request is identified, checked, parsed and answered in one place.

A route says who may call it, what its query and body look like, and which function answers. The same declarations make the
OpenAPI document and the test that calls every route with every kind of wrong token.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import secrets
import time
from collections.abc import Callable, Sequence
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
from daskscope.server.failure import Refusal, bad_request, not_found, too_large, unavailable
from daskscope.server.identity import (
    NOBODY,
    SAFE,
    Identity,
    TokenCache,
    check_host,
    check_scope,
    identify,
    named_account,
)
from daskscope.server.pages import message_page
from daskscope.server.pools import HEAVY
from daskscope.server.services import Services
from daskscope.storage.accounts import Account
from daskscope.storage.blobs import StoreAway
from daskscope.storage.database import DatabaseError, detail_of, is_outage

logger = logging.getLogger("daskscope.server")

#: Who may call a route: everybody, every user that is logged in, administrators of the server, or whoever has the scope.
#: ``ANYBODY`` is not even looked up, so that it answers while the database is away.
ANYBODY, PUBLIC, USER, SERVER_ADMIN = "anybody", "public", "user", "server-admin"
#: Largest JSON body.
MOST_JSON = 1024 * 1024
#: How long a body may take to arrive; one that trickles in holds memory for nothing.
BODY_S = 60.0


@dataclass(frozen=True)
class Route:
    """One thing that can be asked."""

    method: str
    path: str
    handler: Callable[..., Any]
    access: str
    summary: str
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    #: What the body is where it is not JSON; the handler reads it itself.
    content: str = ""
    status: int = 200
    #: What is answered where it is not JSON.
    answers: str = "application/json"
    #: Reads or renders whole runs: gets one of a few threads.
    heavy: bool = False
    #: A page for people: a browser that is not logged in is sent to the login, and refusals are pages too.
    page: bool = False

    @property
    def changes(self) -> bool:
        """Whether it changes what an account has, besides taking batches; a recorder's token ends with the one it is made of."""
        return self.method not in SAFE and self.access not in (ANYBODY, PUBLIC, "ingest")


@dataclass
class Call:
    """One request, checked."""

    request: Request
    services: Services
    identity: Identity
    cache: TokenCache
    now_us: int
    query: Any = None
    body: Any = None
    #: Asks the database anew who this is, and whether they may do this.
    again: Callable[[], Identity] = lambda: NOBODY

    @property
    def account(self) -> Account:
        assert self.identity.account is not None
        return self.identity.account

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
        # Half of a surrogate pair, in a text a recorder sent: JSON can say it with an escape, UTF-8 cannot.
        data = json.dumps(value).encode()
    return Response(data, status, common, "application/json")


#: An answer for programs is no page, is in no frame, and is nobody else's.
JSON_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def build_app(routes: Sequence[Route], services: Services) -> Starlette:
    """The application that answers ``routes``."""
    cache = TokenCache()
    app = Starlette(
        routes=[
            StarletteRoute(r.path, _endpoint(r, services, cache), methods=[r.method], name=name_of(r)) for r in routes
        ],
        exception_handlers={HTTPException: _http_exception, Exception: _unexpected},
    )
    # A path is right or it is not; a redirect would be made from the Host header, which is the client's.
    app.router.redirect_slashes = False
    app.state.services, app.state.cache = services, cache
    return app


def name_of(route: Route) -> str:
    return str(getattr(route.handler, "__name__", "route"))


def _endpoint(route: Route, services: Services, cache: TokenCache) -> Callable[[Request], Any]:
    is_async = inspect.iscoroutinefunction(route.handler)

    async def answer(request: Request) -> Response:
        call = await run_in_threadpool(_checked, route, request, services, cache)
        await _read_body(route, request, call)
        if route.changes:
            # A token is believed for half a minute, and a body may take a minute to come. What was revoked meanwhile must not make
            # itself a token, or a member, that stays.
            call.identity = await run_in_threadpool(call.again)
        if is_async:
            value = await route.handler(call)
        elif route.heavy:
            value = await services.pools.run(HEAVY, route.handler, call)
        else:
            value = await run_in_threadpool(route.handler, call)
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
        except DaskscopeError as error:
            response = _refused(route, request, bad_request(str(error)))
        services.counters.add("requests", 1, f"{name_of(route)} {response.status_code // 100}xx")
        services.counters.add("request_seconds", time.perf_counter() - began, name_of(route))
        return response

    return endpoint


def _away(services: Services, error: DatabaseError | StoreAway) -> Refusal:
    """What a request is told that needs something which is away; a database that only dislikes what we asked is a bug of ours."""
    if isinstance(error, DatabaseError) and not is_outage(error):
        raise error
    what = "its store" if isinstance(error, StoreAway) else "its database"
    services.complain(f"{what.removeprefix('its ')} does not answer: {detail_of(error)}")
    return unavailable(f"The server cannot reach {what} at the moment. Try again soon.")


def _refused(route: Route, request: Request, refusal: Refusal) -> Response:
    """One shape for programs; a page for people."""
    if not route.page or "text/html" not in request.headers.get("accept", ""):
        return json_response(refusal.body(), refusal.status, refusal.headers)
    return message_page("Not found" if refusal.status == 404 else "Sorry", str(refusal), refusal.status)


def _checked(route: Route, request: Request, services: Services, cache: TokenCache) -> Call:
    if route.access == ANYBODY:
        check_host(request, services)
        return Call(request, services, NOBODY, cache, services.clock())
    identity = identify(request, services, cache)
    if route.access in (USER, SERVER_ADMIN):
        if identity.kind == "nobody":
            check_scope(identity, "read")
        if route.access == SERVER_ADMIN and not identity.admin:
            raise Refusal(403, "forbidden", "Only an administrator of this server may do this.")
    elif route.access != PUBLIC:
        check_scope(identity, route.access)
        _check_account(request, identity)
    if not all(map(_storable, request.path_params.values())):
        raise not_found("such thing")
    call = Call(request, services, identity, cache, services.clock())
    call.again = lambda: _checked(route, request, services, TokenCache()).identity
    if route.query is not None:
        call.query = _parse_query(request, route.query)
    return call


def _storable(text: object) -> bool:
    """Whether a database could hold a text at all; neither takes halves of surrogate pairs, PostgreSQL no NUL either."""
    return "\x00" not in str(text) and not any("\ud800" <= char <= "\udfff" for char in str(text))


def _check_account(request: Request, identity: Identity) -> None:
    """The account comes from the token; one that is named must be the same."""
    # Without login there is one account, whatever a program that knows more of them calls it; links name it, though.
    named = request.path_params.get("account") if identity.kind == "local" else named_account(request)
    assert identity.account is not None
    if named and named != identity.account.name:
        raise Refusal(
            403, "other_account", f"This token belongs to the account {identity.account.name}. Log in for the other one with: "
            "daskscope login --account NAME"
        )  # fmt: skip


def _parse_query(request: Request, kind: type[msgspec.Struct]) -> Any:
    values = {key: value for key, value in request.query_params.items() if key != "account"}
    known = set(kind.__struct_fields__)
    unknown = sorted(set(values) - known)
    if unknown:
        raise bad_request(f"There is no parameter {unknown[0][:60]!r}. The parameters are {', '.join(sorted(known))}.")
    if not all(map(_storable, values.values())):
        raise bad_request("A parameter holds a character that no text has.")
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise bad_request(f"A parameter is wrong: {error}.") from None


async def _read_body(route: Route, request: Request, call: Call) -> None:
    if route.body is None:
        return
    data = await read_limited(request, MOST_JSON)
    if b"\\u0000" in data:
        raise bad_request("The body holds a character that no text has.")
    try:
        call.body = msgspec.json.decode(data or b"{}", type=route.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"The body is wrong: {error}.") from None


async def read_limited(request: Request, limit: int, patience: float = BODY_S) -> bytes:
    """The whole body, where it is not larger than allowed."""
    parts: list[bytes] = []
    await receive(request, limit, parts.append, patience)
    return b"".join(parts)


async def receive(request: Request, limit: int, take: Callable[[bytes], object], patience: float) -> None:
    """Hand over the body as it comes, where it is not larger than allowed and does not take for ever."""
    claimed = request.headers.get("content-length", "")
    if claimed.isdigit() and int(claimed[:20]) > limit:
        raise too_large(f"This body has {int(claimed[:20]):,} bytes, and at most {limit:,} are taken.")

    async def read() -> None:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise too_large(f"This body has more than the {limit:,} bytes that are taken.")
            take(part)

    try:
        await asyncio.wait_for(read(), patience)
    except asyncio.TimeoutError:
        raise Refusal(408, "too_slow", f"This body did not arrive within {patience:.0f} s. Send it again.") from None


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        text = f"There is nothing at {request.scope['path'][:200]}."
        if "text/html" in request.headers.get("accept", "") and "/api/" not in request.scope["path"]:
            return message_page("Not found", f"{text} The address may be wrong, or what was here is deleted.", 404)
        refusal = Refusal(404, "not_found", text)
    elif error.status_code == 405:
        refusal = Refusal(
            405, "method_not_allowed", "This cannot be asked that way.", headers=dict(error.headers or {})
        )
    else:
        refusal = Refusal(error.status_code, "refused", str(error.detail), headers=dict(error.headers or {}))
    return json_response(refusal.body(), refusal.status, refusal.headers)


async def _unexpected(request: Request, error: Exception) -> Response:
    # A number to find the traceback in the log by; the traceback itself is nobody's business.
    number = secrets.token_hex(4)
    # Its repr: a path may hold newlines, and would write lines of its own into the log.
    logger.error("%s %r failed (%s)", request.method, request.scope["path"], number, exc_info=error)
    refusal = Refusal(500, "internal", f"The server failed. Its log has the reason under {number}.")
    return json_response(refusal.body(), 500)
