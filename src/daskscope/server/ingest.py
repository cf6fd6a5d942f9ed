"""Batches come in: checked, rolled up, handed to the writer, acknowledged once durable."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.concurrency import run_in_threadpool

from daskscope.analysis.rollup import roll_up
from daskscope.errors import NewerFormat, WireError
from daskscope.server.failure import Refusal, bad_request, forbidden, too_many, unavailable
from daskscope.server.identity import Identity
from daskscope.server.names import check_cluster
from daskscope.server.pools import PARSE
from daskscope.server.routing import Call, Route, read_limited
from daskscope.server.writer import Overloaded, StorageAway
from daskscope.storage.clusters import close_asked, find_cluster
from daskscope.storage.ingest import Batch
from daskscope.storage.tokens import has_cluster_token
from daskscope.wire.decode import Frame, read_frame

FRAMES = "application/vnd.daskscope.frames"
#: When a recorder sent a body, in microseconds since the epoch by its own clock.
SENT = "daskscope-sent-us"
#: Digits of it: the year 5138 has 17.
LONGEST_SENT = 17
#: Frames of one body; the recorder sends a dozen.
MOST_FRAMES = 2_000
#: Decompressed bytes of one body: what its frames claim, checked before any is decompressed.
MOST_RAW = 256 * 1024 * 1024
#: Rows of one body; a recorder's megabyte holds 70,000 tasks. A frame of constants has any number of them in 300 bytes.
MOST_ROWS = 500_000
#: Characters of text that a body may bring, all rows that name one counted: a thousand failures have 8 million.
MOST_TEXT = 32_000_000


async def ingest(call: Call) -> dict[str, Any]:
    """Take a body of frames."""
    body = await read_limited(call.request, call.services.settings.max_body)
    frames = split(body)
    # Before anything is decompressed: what costs time and memory is what a batch claims, not how many bytes it has.
    _check_quota(call, sum(frame.header.rows for frame in frames), len(body))
    batches = await call.services.pools.run(PARSE, parse, frames, call.identity, delay_of(call))
    # A text is sent once and stored with every row that has it.
    _check_quota(call, 0, sum(batch.roll_up.text_length for batch in batches))
    if call.identity.cluster:
        await run_in_threadpool(_check_clusters, call, {batch.header.cluster for batch in batches})
    try:
        taken = await asyncio.wrap_future(call.services.writer.submit(batches))
    except Overloaded:
        call.services.counters.add("overloaded")
        raise unavailable("The server cannot keep up at the moment. Send this again soon.") from None
    except StorageAway as error:
        raise unavailable(f"The server cannot store anything at the moment: {error}.", 10) from None
    answer: dict[str, Any] = {"taken": taken.fresh, "duplicates": taken.duplicates}
    if await run_in_threadpool(_asked_to_close, call, batches):
        answer["close"] = True
    return answer


def _asked_to_close(call: Call, batches: list[Batch]) -> bool:
    """Whether somebody asked the cluster to shut down. Looked up only with what comes every few seconds and no more often."""
    clusters = {batch.header.cluster for batch in batches if batch.header.table in ("clusters", "samples")}
    if not clusters:
        return False
    with call.services.database.read() as connection:
        return close_asked(connection, call.account.id, clusters)


def split(body: bytes) -> list[Frame]:
    """The frames of a body, checksums verified, nothing decompressed; a body that is wrong is refused whole."""
    frames: list[Frame] = []
    offset, raw, rows, view = 0, 0, 0, memoryview(body)
    with _refused():
        while offset < len(body):
            frame = read_frame(view, offset)
            header = frame.header
            raw, rows = raw + header.raw, rows + header.rows
            if raw > MOST_RAW or rows > MOST_ROWS or len(frames) >= MOST_FRAMES:
                raise bad_request("This body holds more than is taken at once. Send it in parts.")
            check_cluster(header.cluster)
            if header.epoch < 0:
                raise bad_request("A batch has an impossible epoch.")
            frames.append(frame)
            offset += frame.size
    if not frames:
        raise bad_request("There are no batches in this body.")
    return frames


def delay_of(call: Call) -> int:
    """When a body began to arrive on our clock, less when it was sent on the recorder's; 0 where the recorder does not say."""
    sent = call.request.headers.get(SENT, "")
    if not (sent.isascii() and sent.isdigit() and len(sent) <= LONGEST_SENT):
        return 0
    return call.now_us - int(sent)


def parse(frames: list[Frame], identity: Identity, delay_us: int = 0) -> list[Batch]:
    """The batches of some frames, rolled up; one that is wrong refuses them all."""
    assert identity.account is not None
    # Without login there is one user, and the recorder knows better who it is.
    user, account = "" if identity.kind == "local" else identity.name, identity.account.id
    batches, texts = list[Batch](), 0
    with _refused():
        for frame in frames:
            # The keys of a million tasks are in their batches; those of what failed are looked for in the catalog.
            rows = frame.table() if frame.header.table == "exceptions" else frame.without_keys()
            batches.append(Batch(account, user, frame.header, frame.whole, roll_up(rows), delay_us))
            texts += batches[-1].roll_up.text_length
            if texts > MOST_TEXT:
                raise bad_request("This body holds more text than is taken at once. Send it in parts.")
    return batches


@contextmanager
def _refused() -> Iterator[None]:
    """What the wire says is wrong, as the server says it."""
    try:
        yield
    except NewerFormat as error:
        raise Refusal(422, "newer_format", f"The recorder is newer than this server: {error}.") from None
    except WireError as error:
        raise bad_request(f"This is no body of whole batches: {error}.") from None


def _check_quota(call: Call, rows: int, nbytes: int) -> None:
    wait = call.services.quotas.spend(call.identity.token, rows, nbytes)
    if wait:
        call.services.counters.add("over_quota")
        raise too_many("This token has sent more than it may in a minute.", wait)


def _check_clusters(call: Call, clusters: set[str]) -> None:
    """A token for one cluster may also bring what another recorder of the same user left behind and cannot send itself."""
    for cluster in clusters - {call.identity.cluster}:
        with call.services.database.read() as connection:
            row = find_cluster(connection, call.account.id, cluster, call.now_us, call.lost_after_us)
            # Registered, and gone before the server heard of it.
            silent = row is None and has_cluster_token(connection, call.account.id, call.identity.user, cluster)
        lost = row is not None and row["user"] == call.identity.name and row["state"] == "lost"
        if not (lost or silent):
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
