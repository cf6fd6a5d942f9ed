"""Ingest: check batches, roll them up, pass them to the writer, and acknowledge once they are durable."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from daskscope import units
from daskscope.analysis.running.rollup import RollUp
from daskscope.errors import NewerFormat, WireError
from daskscope.server.errors import Refusal, bad_request, forbidden, too_large, too_many, unavailable
from daskscope.server.http.identity import Identity
from daskscope.server.http.parameters import check_cluster
from daskscope.server.http.routing import Call, Route, json_response, read_limited
from daskscope.server.ingest.writer import Overloaded, StorageAway
from daskscope.server.processes.parse import MAX_TEXT, TooMuchText
from daskscope.server.settings import Settings
from daskscope.storage.catalog.clusters import UserRequests, find_cluster, recording_user
from daskscope.storage.people.accounts import roles_of
from daskscope.storage.people.tokens import has_cluster_token
from daskscope.storage.runs.ingest import Batch, known_batches
from daskscope.storage.runs.retention import stored_nbytes
from daskscope.wire.decode import Frame, read_frame

FRAMES = "application/vnd.daskscope.frames"
#: When a recorder sent a body, in microseconds since the epoch on its own clock.
SENT = "daskscope-sent-us"
#: Maximum digits: the year 5138 has 17.
MAX_SENT_DIGITS = 17
#: Maximum frames of a body; a recorder sends a dozen.
MAX_FRAMES = 2_000
#: Duplicates are looked up before decoding in bodies of this size, or while this many requests wait for the writer: recorders send
#: again what was not acknowledged in a minute. The lookup takes 1 ms, and decoding and adding up 64 kB takes 10 ms. Live recorders
#: send 40 kB; bodies of a backlog are larger.
CHECK_NBYTES, BUSY = 64 * 1024, 32
#: A recorder gets an answer within this time. The database cancels a statement after 30 s, and is given up on 5 s later.
ANSWER_S = 45.0
#: Maximum clusters of a body; a recorder sends one. A body that named 2,000 kept the writer busy for 12 s.
MAX_CLUSTERS = 8
#: Maximum decompressed bytes of a body, from what its frames claim, before any is decompressed.
MAX_RAW = 256 * 1024 * 1024
#: Maximum rows of a body; a recorder's megabyte holds 70,000 tasks. A frame of constants claims any number in 300
#: bytes.
MAX_ROWS = 500_000

#: Header of every response with the limits of a body, so that recorders stay below them.
LIMITS = "Daskscope-Limits"
#: Header of a response to stored batches with how often to post.
PACE = "Daskscope-Pace"


async def ingest(call: Call) -> Response:
    """Receive a body of frames."""
    limits = {LIMITS: limits_of(call.services.settings)}
    try:
        with call.services.in_flight.hold(claimed_size(call)) as has_room:
            if not has_room:
                call.services.counters.add("overloaded")
                raise overloaded()
            answer, clusters = await _store(call)
            return json_response(answer, headers={**limits, PACE: pace_of(call, clusters)})
    except Refusal as refusal:
        refusal.headers.update(limits)
        raise


def limits_of(settings: Settings) -> str:
    """Return the limits of a body. Recorders send less, and split a body that is ``too_large``."""
    return f"bytes={settings.max_body}, frames={MAX_FRAMES}, rows={MAX_ROWS}, characters={MAX_TEXT}"


def pace_of(call: Call, clusters: Iterable[str]) -> str:
    """Return how often to post: whether somebody watches the cluster or follows it live, and the longest silence in seconds.

    That is half of the time after which a silent cluster is lost, because one post may be late.
    """
    live, account = call.services.live, call.account.id
    is_watched, is_followed = (seen.has_any(account, clusters) for seen in (live.watched, live.followed))
    return f"watched={int(is_watched)}, followed={int(is_followed)}, silence={max(1, call.services.settings.lost_after // 2)}"


def overloaded() -> Refusal:
    """Return a refusal with a random time to wait, so that recorders do not come back at the same moment."""
    return unavailable("The server is overloaded. Send this again soon.", random.randint(2, 15))


def claimed_size(call: Call) -> int:
    """Return the claimed size of a body, or the largest one."""
    claimed, limit = call.request.headers.get("content-length", ""), call.services.settings.max_body
    return min(int(claimed[:20]), limit) if claimed.isdigit() else limit


async def _store(call: Call) -> tuple[dict[str, Any], set[str]]:
    """Store a body. Return the answer and the clusters of the body."""
    if not call.services.storage_quota.has_room(call.account.id):
        await run_in_threadpool(_check_storage, call)
    body = await read_limited(call.request, call.services.settings.max_body)
    frames = split(body)
    skipped = 0
    if len(body) >= CHECK_NBYTES or call.services.writer.waiting >= BUSY:
        fresh = await run_in_threadpool(_without_duplicates, call, frames)
        frames, skipped = fresh, len(frames) - len(fresh)
    # Before decompressing anything: the claimed size costs time and memory, not the bytes sent.
    _check_quota(call, sum(frame.header.rows for frame in frames), len(body))
    with _refused():
        roll_ups = await call.services.parsing.roll_up(call.account.id, frames)
    batches = batches_of(frames, roll_ups, call.identity, delay_of(call))
    # A text is sent once and stored with every row that has it.
    _check_quota(call, 0, sum(batch.roll_up.text_length for batch in batches))
    clusters = {batch.header.cluster for batch in batches}
    _check_names(call, batches)
    if call.identity.cluster and clusters != {call.identity.cluster}:
        await run_in_threadpool(_check_clusters, call, clusters)
    if not call.identity.is_local and not call.services.recorded.knows(call.account.id, call.identity.name, clusters):
        await run_in_threadpool(_check_recorder, call, clusters)
    try:
        stored = asyncio.wrap_future(call.services.writer.submit(batches))
        taken = await asyncio.wait_for(asyncio.shield(stored), ANSWER_S)
    except Overloaded:
        call.services.counters.add("overloaded")
        raise overloaded() from None
    except StorageAway as error:
        raise unavailable(f"The server cannot store anything at the moment: {error}.", random.randint(5, 15)) from None
    except asyncio.TimeoutError:
        # The batches may still be stored. They are then duplicates when they come again.
        raise unavailable(
            "The server cannot store anything at the moment: it takes too long.", random.randint(5, 15)
        ) from None
    answer: dict[str, Any] = {"taken": taken.fresh, "duplicates": taken.duplicates + skipped}
    return answer | _asked(taken.requests), clusters


def _asked(requests: Sequence[UserRequests]) -> dict[str, Any]:
    """Return the users' requests to the cluster: to close, or for its stacks."""
    asked: dict[str, Any] = {"close": True} if any(one.is_closing for one in requests) else {}
    for one in requests:
        # An old one, which the recorder has answered, does no harm.
        if one.stacks_asked_us:
            asked["stacks"] = {"cluster": one.cluster, "request": one.stacks_asked_us, "worker": one.stacks_asked_of}
    return asked


def split(body: bytes) -> list[Frame]:
    """Return the frames of a body with verified checksums, still compressed. Refuse an invalid body as a whole."""
    frames: list[Frame] = []
    offset, raw, rows, view = 0, 0, 0, memoryview(body)
    with _refused():
        while offset < len(body):
            frame = read_frame(view, offset)
            header = frame.header
            raw, rows = raw + header.raw, rows + header.rows
            if raw > MAX_RAW or rows > MAX_ROWS or len(frames) >= MAX_FRAMES:
                raise too_large("This body is too large. Send it in parts.")
            check_cluster(header.cluster)
            if header.epoch < 0:
                raise bad_request("A batch has an invalid epoch.")
            frames.append(frame)
            offset += frame.size
    if not frames:
        raise bad_request("This body contains no batches.")
    clusters = len({frame.header.cluster for frame in frames})
    if clusters > MAX_CLUSTERS:
        raise too_large(f"This body names {clusters:,} clusters. Send at most {MAX_CLUSTERS} at a time.")
    return frames


def delay_of(call: Call) -> int:
    """Return when a body began to arrive on the server's clock minus when it was sent; 0 if unknown."""
    sent = call.request.headers.get(SENT, "")
    if not (sent.isascii() and sent.isdigit() and len(sent) <= MAX_SENT_DIGITS):
        return 0
    return call.now_us - int(sent)


def batches_of(
    frames: Sequence[Frame], roll_ups: Sequence[RollUp], identity: Identity, delay_us: int = 0
) -> list[Batch]:
    """Return frames and their roll-ups as batches of the sender."""
    assert identity.account is not None
    # Without sign-in there is one user, and the recorder knows who it is.
    user, account = "" if identity.is_local else identity.name, identity.account.id
    return [
        Batch(account, user, frame.header, frame.whole, roll_up, delay_us)
        for frame, roll_up in zip(frames, roll_ups, strict=True)
    ]


@contextmanager
def _refused() -> Iterator[None]:
    """Return a decoding error as an error response."""
    try:
        yield
    except NewerFormat as error:
        raise Refusal(422, "newer_format", f"The recorder is newer than this server: {error}.") from None
    except WireError as error:
        raise bad_request(f"This body is not a sequence of complete batches: {error}.") from None
    except TooMuchText:
        raise too_large("This body has too much text. Send it in parts.") from None
    except MemoryError:
        # Not "too large": a recorder drops a batch that is too large by itself, and this one may fit a minute later.
        raise unavailable("The server has too little memory at the moment.", random.randint(5, 15)) from None


def _check_quota(call: Call, rows: int, nbytes: int) -> None:
    wait = call.services.quotas.spend(call.identity.token, rows, nbytes)
    if wait:
        call.services.counters.add("over_quota")
        raise too_many("This token has reached its limit per minute.", wait)


def _without_duplicates(call: Call, frames: list[Frame]) -> list[Frame]:
    """Return the frames that are not stored yet, without decoding any; at least one, which shows that the cluster lives."""
    with call.services.ingest_archive.read() as tx:
        known = known_batches(tx, call.account.id, [frame.header for frame in frames])
    fresh = [frame for frame, is_known in zip(frames, known, strict=True) if not is_known]
    call.services.counters.add("batches", len(frames) - len(fresh), "skipped")
    return fresh or frames[:1]


def _check_storage(call: Call) -> None:
    """Refuse data of an account whose storage is full. Recorders send it again later."""

    def measure() -> int:
        with call.services.ingest_archive.read() as tx:
            return stored_nbytes(tx, call.account.id)

    quota = call.services.storage_quota
    used = quota.used(call.account.id, measure)
    if quota.limit and used >= quota.limit:
        call.services.counters.add("over_quota")
        raise Refusal(
            507, "storage_full", f"The account {call.account.name} uses {units.nbytes(used)} of {units.nbytes(quota.limit)}. "
            "Delete clusters, or keep task data for fewer days (Settings). The server's operator can raise --max-storage.",
            headers={"Retry-After": "60"},
        )  # fmt: skip


def _check_names(call: Call, batches: list[Batch]) -> None:
    """Refuse more new clusters, workers, computations and error groups than an account may add per minute."""
    kind, wait = call.services.new_names.spend(call.account.id, names_of(batches))
    if kind:
        call.services.counters.add("over_quota")
        limit = call.services.new_names.limits[kind]
        raise too_many(f"This account reached its limit of {limit:,} new {kind} per minute.", wait)


def names_of(batches: Sequence[Batch]) -> dict[str, set[Hashable]]:
    """Return the names in the batches, by kind."""
    names: dict[str, set[Hashable]] = {"clusters": {batch.header.cluster for batch in batches}}
    for kind in ("workers", "computations"):
        names[kind] = {
            (batch.header.cluster, *key) for batch in batches for key in batch.roll_up.entities.get(kind, ())
        }
    names["error groups"] = {row["fingerprint"] for batch in batches for row in batch.roll_up.exceptions}
    return names


def _check_clusters(call: Call, clusters: set[str]) -> None:
    """Check the clusters of a batch.

    A token for one cluster may also deliver what another recorder of the same user left.
    """
    for cluster in clusters - {call.identity.cluster}:
        with call.services.ingest_archive.read() as tx:
            row = find_cluster(tx, call.account.id, cluster)
            # Registered, but the server has not heard of it yet.
            silent = row is None and has_cluster_token(tx, call.account.id, call.identity.user, cluster)
        is_own = row is not None and (call.identity.is_local or row.user == call.identity.name)
        lost = row is not None and is_own and row.state == "lost"
        if not (lost or silent):
            raise forbidden("This token can write to one cluster only, and this is a different one.")


def _check_recorder(call: Call, clusters: set[str]) -> None:
    """Refuse batches of a cluster that another user records: a member must not take it over."""
    user = call.identity.name
    for cluster in clusters:
        with call.services.ingest_archive.read() as tx:
            recorded_by = recording_user(tx, call.account.id, cluster)
            is_allowed = recorded_by in (None, user) or roles_of(tx, call.identity.user).get(call.account.id) == "owner"
        if not is_allowed:
            raise forbidden(
                f"This cluster is recorded by {recorded_by or 'another user'}. Only they can send its data."
            )
        if recorded_by is not None:
            call.services.recorded.add(call.account.id, user, cluster)


ROUTES = [
    Route(
        "POST",
        "/api/v1/ingest",
        ingest,
        "ingest",
        "Store recorded batches; responds once they are durable",
        content=FRAMES,
    ),
]
