"""Increments of live runs, encoded for a page: a JSON header, and all columns as one compressed block.

No server remembers a page. The cursor is the position of the page in the batches of its run, and any server can continue from it.
Pages that are equally far share one increment.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from dataclasses import dataclass
from typing import TypedDict, cast

import numpy as np

from daskscope.analysis.running.increments import TABLES, WINDOW_S, Increment, make_increment
from daskscope.analysis.running.rollup import BUCKET
from daskscope.analysis.timeline import steps_of
from daskscope.errors import WireError
from daskscope.model.recording import Recording, Table
from daskscope.server.documents import LISTED
from daskscope.server.errors import bad_request
from daskscope.server.services import Services
from daskscope.server.views import scheduler_now_us
from daskscope.storage.catalog import clusters
from daskscope.storage.runs.new_batches import Place, Position, batches_since, position_of, read_recent
from daskscope.storage.runs.read import StoredBatch, join

_LENGTH = struct.Struct("<I")
#: Fast rather than small: an increment has a few kB.
LEVEL = 1
#: An epoch, its highest sequence number and its number of batches.
EPOCH = re.compile(r"(\d{1,18})\.(\d{1,18})\.(\d{1,18})", re.ASCII)
MAX_EPOCHS = 50
#: Executions that the first increment is made of; with more, it covers less time. They take 0.5 s and 100 MB.
MAX_FIRST_TASKS = 200_000
MIN_WINDOW_S = 30
SECOND = 1_000_000


@dataclass(frozen=True)
class Follow:
    """What a page follows, and how far it is."""

    account: int
    cluster: clusters.Cluster
    computation: str
    #: Empty for a page that has nothing yet.
    cursor: str
    now_us: int


def parse_cursor(text: str) -> Position:
    """Return the position that a cursor stands for."""
    parts = text.split("-") if text else []
    places = [EPOCH.fullmatch(part) for part in parts]
    if len(parts) > MAX_EPOCHS or not all(places):
        raise bad_request("This cursor is invalid. Start again without one.")
    return {int(place[1]): Place(int(place[2]), int(place[3])) for place in places if place}


def write_cursor(position: Position) -> str:
    """Return a cursor. Of very many epochs, the latest count: only those get new batches."""
    latest = sorted(position.items())[-MAX_EPOCHS:]
    return "-".join(f"{epoch}.{place.highest}.{place.batches}" for epoch, place in latest)


def news(services: Services, follow: Follow) -> memoryview | None:
    """Return the rows that a page does not have yet; None if it has all."""
    position = parse_cursor(follow.cursor)
    with services.archive.read() as tx:
        newest = position_of(tx, follow.cluster.id)
    if follow.cursor and write_cursor(newest) == write_cursor(position):
        return None
    name = f"{follow.cluster.id} {follow.computation} {follow.cursor} {write_cursor(newest)}"
    return services.increments.load(name, lambda: _make(services, follow, position))


def _make(services: Services, follow: Follow, position: Position) -> memoryview:
    cluster = follow.cluster
    if follow.cursor:
        with services.archive.snapshot() as tx:
            found = batches_since(tx, follow.account, cluster.id, position, TABLES)
        if found is not None:
            batches, reached = found
            recording = Recording(cluster.name, {name: join(name, parts) for name, parts in _tables(batches).items()})
            return _encode(follow, recording, reached)
    now_us = scheduler_now_us(cluster, follow.now_us)
    history = _history(services, cluster, now_us)
    first_us = now_us - window_s(history) * SECOND
    recording, reached = read_recent(
        services.archive, follow.account, cluster.id, cluster.name, TABLES, first_us, now_us, LISTED
    )
    return _encode(follow, recording, reached, first_us, history)


def window_s(history: IncrementHistory) -> int:
    """Return the seconds that a first increment covers: ten minutes, or less if there were very many tasks."""
    seconds, tasks = 0.0, 0
    for count in reversed(history["tasks"]):
        tasks += count
        if tasks > MAX_FIRST_TASKS or seconds >= WINDOW_S:
            break
        seconds += history["step"]
    else:
        return WINDOW_S
    return int(min(WINDOW_S, max(MIN_WINDOW_S, seconds)))


def _tables(batches: list[StoredBatch]) -> dict[str, list[Table]]:
    tables: dict[str, list[Table]] = {}
    for batch in batches:
        try:
            tables.setdefault(batch.name, []).append(batch.table())
        except WireError:
            # Compaction will report it.
            continue
    return tables


def _history(services: Services, cluster: clusters.Cluster, now_us: int) -> IncrementHistory:
    """Return thread time and executions of the whole run, in steps."""
    start, _ = clusters.life_of(cluster)
    steps = steps_of(start, max(start + 1, now_us), BUCKET)
    with services.archive.read() as tx:
        sums = clusters.sums_of(tx, cluster.id, steps)
    return {
        "step": steps.step_us / 1e6,
        "seconds": [int((edge - start) // SECOND) for edge in steps.edges[:-1].tolist()],
        "us": [int(value) for value in sums["compute_us"]],
        "tasks": [int(value) for value in sums["tasks"]],
        "errors": [int(value) for value in sums["errors"]],
    }


def known_until_us(cluster: clusters.Cluster, recording: Recording, now_us: int) -> int:
    """Return the time up to which a page knows what the threads of a cluster did."""
    # An idle cluster is silent for half a minute, and sends at once when it has work. Its threads were idle meanwhile.
    if not cluster.is_live or cluster.state == "idle":
        return now_us
    # The new rows may be newer than the cluster's, which was read before them.
    stops = recording["tasks"]["stop_us"]
    return min(now_us, max(clusters.known_until_us(cluster), int(stops[stops <= now_us].max(initial=0))))


def _encode(
    follow: Follow,
    recording: Recording,
    reached: Position,
    first_us: int = 0,
    history: IncrementHistory | None = None,
) -> memoryview:
    cluster = follow.cluster
    start, _ = clusters.life_of(cluster)
    now_us = scheduler_now_us(cluster, follow.now_us)
    first_us = max(first_us, now_us - WINDOW_S * SECOND)
    made = make_increment(recording, start, first_us, now_us, follow.computation)
    header: IncrementHeader = {
        "cursor": write_cursor(reached),
        "is_first": history is not None,
        "origin_us": made.origin_us,
        "now_us": now_us,
        "known_until_us": known_until_us(cluster, recording, now_us),
        "is_live": cluster.is_live,
        "window": WINDOW_S,
        "first_second": max(0, (first_us - made.origin_us) // SECOND),
        "names": cast(IncrementNames, made.names),
        "workers": cast(list[IncrementWorker], made.workers),
        "errors": cast(list[IncrementError], made.errors),
        "keys": list(made.keys),
        "left_out": made.left_out,
        # The sums of the run are not split by computation.
        "history": None if follow.computation else history,
        "columns": [
            (part, name, values.dtype.str.lstrip("<|"), len(values))
            for part, columns in made.parts.items()
            for name, values in columns.items()
        ],
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    return memoryview(b"".join((_LENGTH.pack(len(text)), text, zlib.compress(_columns(made), LEVEL))))


def _columns(made: Increment) -> bytes:
    return b"".join(np.ascontiguousarray(v).tobytes() for columns in made.parts.values() for v in columns.values())


def empty_body(follow: Follow) -> memoryview:
    """Return an increment without rows: the page has everything."""
    return _encode(follow, Recording("", {}), parse_cursor(follow.cursor))


class IncrementWorker(TypedDict):
    worker: str
    name: str
    threads: int
    memory_limit: int
    start_us: int
    #: 0 while it is connected.
    stop_us: int
    verdict: str


class IncrementError(TypedDict):
    """Failures of an error group. Key, prefix and time belong to the last failure."""

    fingerprint: str
    type: str
    message: str
    prefix: str
    key: str
    count: int
    time_us: int


class IncrementNames(TypedDict):
    """Names, which columns refer to by position."""

    prefixes: list[str]
    #: Worker and thread.
    lanes: list[tuple[str, int]]
    workers: list[str]
    #: File, function, line and whose code it is.
    frames: list[tuple[str, str, int, str]]


class IncrementHistory(TypedDict):
    """Sums over the whole run in steps of ``step`` seconds, by the first second of each step."""

    step: float
    seconds: list[int]
    us: list[int]
    tasks: list[int]
    errors: list[int]


class IncrementHeader(TypedDict):
    """The header of an increment. Its columns follow as bytes, in the order of ``columns``."""

    #: Ask for the next increment with it.
    cursor: str
    #: Whether the page must forget what it has: the increment contains everything.
    is_first: bool
    #: Seconds and bars count from this time on the scheduler's clock.
    origin_us: int
    now_us: int
    #: Rows up to this time have arrived. Nothing is known of the time since, so that it is neither busy nor idle.
    known_until_us: int
    is_live: bool
    #: Seconds that a page keeps.
    window: int
    #: The first second of which the first increment has rows; it covers less than the window if there were very many.
    first_second: int
    names: IncrementNames
    workers: list[IncrementWorker]
    errors: list[IncrementError]
    #: The key of each bar; empty for activities besides computing.
    keys: list[str]
    #: Executions without a bar, because there were too many.
    left_out: int
    #: None except in the first increment of a cluster.
    history: IncrementHistory | None
    #: Part, column, type and length.
    columns: list[tuple[str, str, str, int]]
