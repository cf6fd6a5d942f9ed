"""From declared routes to an application: every request is identified, checked, parsed and answered in one place.

A route says who may call it, what its query and body look like, and which function answers. The same declarations make the
OpenAPI document and the test that calls every route with every kind of wrong token.
"""

from __future__ import annotations

import inspect
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from daskscope.errors import DaskscopeError
from daskscope.server.failure import Refusal, bad_request, too_large, unavailable
from daskscope.server.identity import Identity, TokenCache, check_scope, identify, named_account
from daskscope.server.services import Services
from daskscope.storage.accounts import Account

logger = logging.getLogger("daskscope.server")

#: Who may call a route: everybody, every user that is logged in, administrators of the server, or whoever has the scope.
PUBLIC, USER, SERVER_ADMIN = "public", "user", "server-admin"
#: Largest JSON body.
MOST_JSON = 1024 * 1024


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
    common = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})}
    return Response(msgspec.json.encode(value), status, common, "application/json")


def build_app(routes: Sequence[Route], services: Services) -> Starlette:
    """The application that answers ``routes``."""
    cache = TokenCache()
    app = Starlette(
        routes=[
            StarletteRoute(r.path, _endpoint(r, services, cache), methods=[r.method], name=name_of(r)) for r in routes
        ],
        exception_handlers={HTTPException: _http_exception, Exception: _unexpected},
    )
    app.state.services, app.state.cache = services, cache
    return app


def name_of(route: Route) -> str:
    return str(getattr(route.handler, "__name__", "route"))


def _endpoint(route: Route, services: Services, cache: TokenCache) -> Callable[[Request], Any]:
    is_async = inspect.iscoroutinefunction(route.handler)

    async def endpoint(request: Request) -> Response:
        began = time.perf_counter()
        try:
            call = await run_in_threadpool(_checked, route, request, services, cache)
            await _read_body(route, request, call)
            answer = await route.handler(call) if is_async else await run_in_threadpool(route.handler, call)
            response = answer if isinstance(answer, Response) else json_response(answer, route.status)
        except Refusal as refusal:
            response = json_response(refusal.body(), refusal.status, refusal.headers)
        except ClientDisconnect:
            response = Response(status_code=400)
        except DaskscopeError as error:
            response = json_response(bad_request(str(error)).body(), 400)
        except (sa.exc.OperationalError, sa.exc.TimeoutError) as error:
            logger.warning("the database does not answer: %s", str(error).splitlines()[0])
            away = unavailable("The server cannot reach its database at the moment. Try again soon.")
            response = json_response(away.body(), away.status, away.headers)
        services.counters.add("requests", 1, f"{name_of(route)} {response.status_code // 100}xx")
        services.counters.add("request_seconds", time.perf_counter() - began, name_of(route))
        return response

    return endpoint


def _checked(route: Route, request: Request, services: Services, cache: TokenCache) -> Call:
    identity = identify(request, services, cache)
    if route.access == USER:
        if identity.kind == "nobody":
            check_scope(identity, "read")
    elif route.access == SERVER_ADMIN:
        if identity.kind == "nobody":
            check_scope(identity, "read")
        if not identity.admin:
            raise Refusal(403, "forbidden", "Only an administrator of this server may do this.")
    elif route.access != PUBLIC:
        check_scope(identity, route.access)
        _check_account(request, identity)
    call = Call(request, services, identity, cache, services.clock())
    if route.query is not None:
        call.query = _parse_query(request, route.query)
    return call


def _check_account(request: Request, identity: Identity) -> None:
    """The account comes from the token; one that is named must be the same."""
    named = named_account(request)
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
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise bad_request(f"A parameter is wrong: {error}.") from None


async def _read_body(route: Route, request: Request, call: Call) -> None:
    if route.body is None:
        return
    data = await read_limited(request, MOST_JSON)
    try:
        call.body = msgspec.json.decode(data or b"{}", type=route.body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"The body is wrong: {error}.") from None


async def read_limited(request: Request, limit: int) -> bytes:
    """The whole body, where it is not larger than allowed."""
    claimed = request.headers.get("content-length", "")
    if claimed.isdigit() and int(claimed) > limit:
        raise too_large(f"This body has {int(claimed):,} bytes, and at most {limit:,} are taken.")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise too_large(f"This body has more than the {limit:,} bytes that are taken.")
        parts.append(part)
    return b"".join(parts)


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        refusal = Refusal(404, "not_found", f"There is nothing at {request.url.path[:200]}.")
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
    logger.error("%s %s failed (%s)", request.method, request.url.path, number, exc_info=error)
    refusal = Refusal(500, "internal", f"The server failed. Its log has the reason under {number}.")
    return json_response(refusal.body(), 500)
