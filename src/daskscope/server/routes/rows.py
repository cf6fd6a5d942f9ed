"""Rows and documents of a run: its events, a window of its tasks, and what the viewer shows."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Sequence
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from starlette.responses import Response

from daskscope.model.recording import Table
from daskscope.server import documents
from daskscope.server.build_document import Document
from daskscope.server.documents import HERE_NBYTES, LISTED, amount_here
from daskscope.server.errors import Refusal, not_found, unavailable
from daskscope.server.http import parameters
from daskscope.server.http.pages import BYTES, DATA_HEADERS, DataResponse
from daskscope.server.http.parameters import Limit, Text, find_cluster, find_document
from daskscope.server.http.routing import Call, Route
from daskscope.server.processes.job import JobFailed, Unreadable
from daskscope.server.processes.recordings import RecordingRequest, Run, recording_file, run_apart
from daskscope.server.services import Services
from daskscope.server.views import moment, parsed
from daskscope.storage.runs.read import Part, RunTooLarge, count_rows, read_snapshot

#: Maximum tasks of one response: more than a screen has pixels.
MAX_TASKS = 20_000
Time = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class EventsQuery(msgspec.Struct, forbid_unknown_fields=True):
    topic: Text = ""
    limit: Limit = 100
    cursor: Text = ""


class TasksQuery(msgspec.Struct, forbid_unknown_fields=True):
    start_us: Time = 0
    stop_us: Time = 1 << 62
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_TASKS)] = MAX_TASKS


#: Columns of a window of tasks; a file has twice as many, and the rest is not read.
TASK_TEXTS = ("key", "prefix", "worker", "status", "computation")
TASK_NUMBERS = ("start_us", "stop_us", "thread", "nbytes")


def _table(call: Call, part: Part) -> Table:
    row, (name,) = find_cluster(call), part.tables
    return read_snapshot(call.services.archive, call.account.id, row.id, row.name, part, LISTED)[name]


def list_events(call: Call) -> dict[str, Any]:
    query: EventsQuery = call.query
    events = _table(call, Part(("events",)))
    place = parameters.decode(query.cursor, int)
    order = np.argsort(events["time_us"], kind="stable")[::-1]
    if query.topic:
        order = order[events["topic"][order] == query.topic]
    # Count from the oldest: new events are added at the end.
    left = min(max(place[0], 0), len(order)) if place else len(order)
    first = len(order) - left
    chosen = events.take(order[first : first + query.limit])
    items = [
        {"time": moment(time), "topic": topic, "kind": kind, "worker": worker, "detail": parsed(detail, {})}
        for time, topic, kind, worker, detail in chosen.records("time_us", "topic", "kind", "worker", "detail")
    ]
    rest = left - query.limit
    return {"items": items, "next": parameters.encode(rest) if rest > 0 else None, "total": len(order)}


def list_tasks(call: Call) -> dict[str, Any]:
    """Return executions that overlap a window as columns. If there are too many, return the longest and the total."""
    query: TasksQuery = call.query
    part = Part(("tasks",), window=(query.start_us, query.stop_us), columns=(*TASK_TEXTS, *TASK_NUMBERS))
    tasks = _table(call, part)
    start, stop = tasks["start_us"], tasks["stop_us"]
    inside = np.flatnonzero((stop >= query.start_us) & (start <= query.stop_us) & (start > 0))
    total = len(inside)
    if total > query.limit:
        longest = np.argpartition(stop[inside] - start[inside], total - query.limit)[total - query.limit :]
        inside = np.sort(inside[longest])
    chosen = tasks.take(inside)
    texts = {name: chosen[name].tolist() for name in TASK_TEXTS}
    numbers = {name: chosen[name].tolist() for name in TASK_NUMBERS}
    return {"total": total, "shown": len(inside), "columns": {**numbers, **texts}}


def download(call: Call) -> Response:
    """Return the whole run as a recording file for ``daskscope show``, ``open`` and ``export``."""
    row, services = find_cluster(call), call.services
    request = RecordingRequest(call.account.id, run=Run(row.id, row.name), cluster=row.cluster, start_us=row.start_us)
    try:
        with services.build_memory.reserve(HERE_NBYTES, request.account):
            parts: Sequence[bytes | memoryview] = list(
                recording_file(services.archive, request, amount_here(services, request.account))
            )
    except RunTooLarge:
        parts = [_written_apart(services, request)]
    except Unreadable as error:
        raise Refusal(500, "damaged", str(error)) from None
    return DataResponse(parts, BYTES, DATA_HEADERS)


def _written_apart(services: Services, request: RecordingRequest) -> memoryview:
    """Return a recording file that a process of its own wrote. The system reads it as it is sent, and then deletes it."""
    assert request.run is not None
    with services.archive.read() as tx:
        rows = count_rows(tx, request.run.run)
    with tempfile.TemporaryDirectory(prefix="daskscope-recording-") as name:
        path = Path(name) / "recording"
        try:
            run_apart(services.runner, msgspec.structs.replace(request, path=str(path)), rows)
        except Unreadable as error:
            raise Refusal(500, "damaged", str(error)) from None
        except JobFailed as error:
            raise unavailable(str(error)) from None
        with path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


class BlockQuery(msgspec.Struct, forbid_unknown_fields=True):
    #: The entity tag of its document. Without it, use the newest document, which may differ for a live run.
    of: Text = ""


def cluster_document(call: Call) -> Response:
    shown = find_document(call, find_cluster(call))
    created = format_datetime(datetime.fromtimestamp(shown.created_us // 1_000_000, timezone.utc), usegmt=True)
    headers = {**DATA_HEADERS, "ETag": f'"{shown.name}"', "Last-Modified": created}
    return DataResponse([shown.document.report], "application/json", headers)


def by_name(call: Call, name: str) -> Document:
    return documents.by_name(call.services, call.account.id, name)


def cluster_block(call: Call) -> Response:
    query: BlockQuery = call.query
    # Find the cluster first: nothing of a deleted cluster is shown, even if it is cached.
    row = find_cluster(call)
    # Not a new document: it would have columns of other rows, and one would be made per column of a live cluster.
    shown = by_name(call, query.of) if query.of else find_document(call, row).document
    data = shown.blocks.get(call.path("block"))
    if data is None:
        raise not_found("such block")
    return DataResponse([data], BYTES, DATA_HEADERS)


ONE = "/api/v1/clusters/{cluster}"
ROUTES = [
    Route("GET", f"{ONE}/events", list_events, "read", "List events, newest first", query=EventsQuery, heavy=True),
    Route(
        "GET",
        f"{ONE}/tasks",
        list_tasks,
        "read",
        "Return executions in a time window, as columns",
        query=TasksQuery,
        heavy=True,
    ),
    Route(
        "GET",
        f"{ONE}/recording",
        download,
        "read",
        "Download the cluster as a recording file",
        answers=BYTES,
        heavy=True,
    ),
]
for path, subject in ((ONE, "cluster"), (f"{ONE}/computations/{{computation}}", "computation")):
    ROUTES += [
        Route(
            "GET",
            f"{path}/document/report.json",
            cluster_document,
            "read",
            f"Return a {subject}'s document",
            heavy=True,
        ),
        Route(
            "GET",
            f"{path}/document/blocks/{{block}}",
            cluster_block,
            "read",
            "Return a document block",
            query=BlockQuery,
            answers=BYTES,
            heavy=True,
        ),
    ]
