"""Batches come in: checked, rolled up, handed to the writer, acknowledged once durable."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.concurrency import run_in_threadpool

from daskscope.analysis.rollup import clean_text, roll_up
from daskscope.errors import NewerFormat, WireError
from daskscope.server.failure import Refusal, bad_request, forbidden, too_many, unavailable
from daskscope.server.identity import Identity
from daskscope.server.routing import Call, Route, read_limited
from daskscope.server.writer import Overloaded, StorageAway
from daskscope.storage.clusters import close_asked, find_cluster
from daskscope.storage.ingest import Batch
from daskscope.wire.decode import read_frame

FRAMES = "application/vnd.daskscope.frames"
#: Frames of one body; the recorder sends a dozen.
MOST_FRAMES = 2_000
#: Decompressed bytes of one body: what its frames claim, checked before any is decompressed.
MOST_RAW = 256 * 1024 * 1024


async def ingest(call: Call) -> dict[str, Any]:
    """Take a body of frames."""
    body = await read_limited(call.request, call.services.settings.max_body)
    batches = await run_in_threadpool(parse, body, call.identity)
    _check_quota(call, batches, len(body))
    if call.identity.cluster:
        await run_in_threadpool(_check_clusters, call, {batch.header.cluster for batch in batches})
    try:
        taken = await asyncio.wrap_future(call.services.writer.submit(batches))
    except Overloaded:
        call.services.counters.add("overloaded")
        raise unavailable("The server cannot keep up at the moment. Send this again soon.") from None
    except StorageAway as error:
        raise unavailable(f"The server cannot store anything at the moment: {error}", 10) from None
    answer: dict[str, Any] = {"taken": taken.fresh, "duplicates": taken.duplicates}
    if await run_in_threadpool(_asked_to_close, call, batches):
        answer["close"] = True
    return answer


def _asked_to_close(call: Call, batches: list[Batch]) -> bool:
    """Whether somebody asked the cluster to shut down. Looked up only with its own row, which comes every few seconds."""
    clusters = {batch.header.cluster for batch in batches if batch.header.table == "clusters"}
    if not clusters:
        return False
    with call.services.database.read() as connection:
        return close_asked(connection, call.account.id, clusters)


def parse(body: bytes, identity: Identity) -> list[Batch]:
    """The batches of a body; one that is wrong refuses it all, and nothing is stored."""
    assert identity.account is not None
    # Without login there is one user, and the recorder knows better who it is.
    user = "" if identity.kind == "local" else identity.name
    batches: list[Batch] = []
    offset, raw, view = 0, 0, memoryview(body)
    try:
        while offset < len(body):
            frame = read_frame(view, offset)
            raw += frame.header.raw
            if raw > MOST_RAW or len(batches) >= MOST_FRAMES:
                raise bad_request("This body holds more batches than are taken at once. Send it in parts.")
            _check_header(frame.header.cluster, frame.header.epoch)
            part = bytes(view[offset : offset + frame.size])
            batches.append(Batch(identity.account.id, user, frame.header, part, roll_up(frame.without_keys())))
            offset += frame.size
    except NewerFormat as error:
        raise Refusal(422, "newer_format", f"The recorder is newer than this server: {error}.") from None
    except WireError as error:
        raise bad_request(f"This is no body of whole batches: {error}.") from None
    if not batches:
        raise bad_request("There are no batches in this body.")
    return batches


def _check_header(cluster: str, epoch: int) -> None:
    if not cluster or clean_text(cluster, 200) != cluster or not cluster.isprintable():
        raise bad_request("A batch names no cluster a server could list.")
    if epoch < 0:
        raise bad_request("A batch has an impossible epoch.")


def _check_quota(call: Call, batches: list[Batch], nbytes: int) -> None:
    wait = call.services.quotas.spend(call.identity.token, sum(batch.header.rows for batch in batches), nbytes)
    if wait:
        call.services.counters.add("over_quota")
        raise too_many("This token has sent more than it may in a minute.", wait)


def _check_clusters(call: Call, clusters: set[str]) -> None:
    """A token for one cluster may also bring what another recorder of the same user left behind and cannot send itself."""
    for cluster in clusters - {call.identity.cluster}:
        with call.services.database.read() as connection:
            row = find_cluster(connection, call.account.id, cluster, call.now_us, call.lost_after_us)
        if row is None or row["user"] != call.identity.name or row["state"] != "lost":
            raise forbidden("This token may write to one cluster only, and this is another one.")


ROUTES = [
    Route(
        "POST",
        "/api/v1/ingest",
        ingest,
        "ingest",
        "Take recorded batches; answers once they are durable",
        content=FRAMES,
    ),
]
