"""Increments: what a page that follows a live cluster or computation does not have yet."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

import msgspec
from starlette.responses import Response

from daskscope.server.errors import unavailable
from daskscope.server.http.data import DataResponse
from daskscope.server.http.parameters import Text, find_cluster
from daskscope.server.http.routing import Call, Route
from daskscope.server.increments import Follow, empty_body, news
from daskscope.server.live import Listener
from daskscope.server.pools import HEAVY, READ

BYTES = "application/vnd.daskscope.increment"
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
#: A cursor of 50 epochs.
Cursor = Annotated[str, msgspec.Meta(max_length=3_000)]
#: Seconds to wait for new batches before answering that there are none.
Wait = Annotated[float, msgspec.Meta(ge=0, le=25)]


class IncrementQuery(msgspec.Struct, forbid_unknown_fields=True):
    cursor: Cursor = ""
    computation: Text = ""
    wait: Wait = 0.0


async def get_increment(call: Call) -> Response:
    """Return what is new, as soon as there is something."""
    query: IncrementQuery = call.query
    live, deadline = call.services.live, time.monotonic() + query.wait
    if query.wait and live.full(call.account.id):
        raise unavailable("Too many live pages are open. Try again later.", 30)
    # Listen before looking, so that nothing that arrives in between is missed.
    listener = live.listen(call.account.id, call.identity.user) if query.wait else None
    try:
        while True:
            # The first increment reads minutes of a run.
            pool = READ if query.cursor else HEAVY
            follow, body = await call.services.pools.run(pool, call.account.id, _look, call)
            if body is not None:
                return DataResponse([body], BYTES, HEADERS)
            left = deadline - time.monotonic()
            may_wait = left > 0 and follow.cluster.is_live
            if not (may_wait and await _changed(listener, follow.cluster.cluster, left)):
                return DataResponse([empty_body(follow)], BYTES, HEADERS)
    finally:
        if listener is not None:
            live.leave(listener)


def _look(call: Call) -> tuple[Follow, memoryview | None]:
    query: IncrementQuery = call.query
    cluster = find_cluster(call)
    call.services.live.followed.note(call.account.id, cluster.cluster)
    now_us = call.services.archive.clock()
    follow = Follow(call.account.id, cluster, query.computation, query.cursor, now_us)
    return follow, news(call.services, follow)


async def _changed(listener: Listener | None, cluster: str, seconds: float) -> bool:
    """Wait for a batch of the cluster. Return False if none came in time, or if the stream of the user has ended."""
    if listener is None:
        return False

    async def wait() -> bool:
        async for changed in listener.changes(seconds):
            if cluster in changed:
                return True
            if not changed:
                return False
        return False

    try:
        return await asyncio.wait_for(wait(), seconds)
    except asyncio.TimeoutError:
        return False


ROUTES = [
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/increments",
        get_increment,
        "read",
        "Return what a page that follows a live cluster does not have yet",
        query=IncrementQuery,
        answers=BYTES,
    ),
]
