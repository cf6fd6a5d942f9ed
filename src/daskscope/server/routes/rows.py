"""Rows of a run: its events, a window of its tasks, and the documents the viewer shows."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec
import numpy as np
from starlette.responses import Response

from daskscope.model.recording import Completeness
from daskscope.model.table import Table
from daskscope.server import cursor, rendering
from daskscope.server.contract import HostedReport
from daskscope.server.failure import Refusal, not_found
from daskscope.server.routes.clusters import Limit, Text, find
from daskscope.server.routes.reports import BYTES, DATA_HEADERS, add, report_view
from daskscope.server.routing import Call, Route
from daskscope.server.views import moment, parsed
from daskscope.storage.reports import NewReport
from daskscope.storage.runs import Part, read_steadily
from daskscope.wire.layout import FILE_MAGIC
from daskscope.wire.rows import frames_of_table

#: Tasks of one answer: more than a screen has pixels.
MOST_TASKS = 20_000
Time = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class EventsQuery(msgspec.Struct, forbid_unknown_fields=True):
    topic: Text = ""
    limit: Limit = 100
    cursor: Text = ""


class TasksQuery(msgspec.Struct, forbid_unknown_fields=True):
    start_us: Time = 0
    stop_us: Time = 1 << 62
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_TASKS)] = MOST_TASKS


#: What a window of tasks shows; a file holds twice as much, and the rest is not read.
TASK_TEXTS = ("key", "prefix", "worker", "status", "computation")
TASK_NUMBERS = ("start_us", "stop_us", "thread", "nbytes")


def _table(call: Call, row: dict[str, Any], part: Part) -> Table:
    services, (name,) = call.services, part.tables
    recording = read_steadily(
        services.database, services.vault, services.store, call.account.id, row["id"], row["name"], part
    )
    return recording[name]


def list_events(call: Call) -> dict[str, Any]:
    query: EventsQuery = call.query
    row = find(call)
    events = _table(call, row, Part(("events",)))
    place = cursor.decode(query.cursor, int)
    order = np.argsort(events["time_us"], kind="stable")[::-1]
    if query.topic:
        order = order[events["topic"][order] == query.topic]
    # Counted from the oldest: those that come meanwhile are the newest.
    left = min(max(place[0], 0), len(order)) if place else len(order)
    first = len(order) - left
    chosen = events.take(order[first : first + query.limit])
    columns = [chosen[name].tolist() for name in ("time_us", "topic", "kind", "worker", "detail")]
    items = [
        {"time": moment(time), "topic": topic, "kind": kind, "worker": worker, "detail": parsed(detail, {})}
        for time, topic, kind, worker, detail in zip(*columns, strict=True)
    ]
    rest = left - query.limit
    return {"items": items, "next": cursor.encode(rest) if rest > 0 else None, "total": len(order)}


def list_tasks(call: Call) -> dict[str, Any]:
    """Executions that overlap a window, as columns; of more than fit, the longest, and it says of how many."""
    query: TasksQuery = call.query
    row = find(call)
    part = Part(("tasks",), window=(query.start_us, query.stop_us), columns=(*TASK_TEXTS, *TASK_NUMBERS))
    tasks = _table(call, row, part)
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
    """The whole run as a recording file, for ``daskscope show``, ``open`` and ``export``."""
    row, services = find(call), call.services
    recording = read_steadily(
        services.database, services.vault, services.store, call.account.id, row["id"], row["name"]
    )
    if recording.damage and not any(table.rows for table in recording.tables.values()):
        # A file without a batch has nothing that could say what is not in it.
        raise Refusal(500, "damaged", f"Nothing of this cluster can be read: {recording.damage}")
    # A file says that it is incomplete by the numbers of batches it does not have: those that never came, and of what is damaged
    # one. The gap is behind the first batch, for a reader takes the first number for where the recording began.
    gap = recording.missing_batches + bool(recording.damage)
    parts, sequence = [FILE_MAGIC], 0
    for name, table in recording.tables.items():
        part = recording.completeness.get(name, Completeness())
        frames = list(
            frames_of_table(
                table,
                cluster=row["cluster"],
                epoch=row["start_us"],
                sequence=sequence,
                # An entity's older rows are gone because newer ones took their place: nothing is missing.
                kept=table.rows + part.missing,
                dropped=part.dropped,
            )
        )
        parts += frames
        sequence += len(frames)
        if frames and gap:
            sequence, gap = sequence + gap, 0
    return Response(b"".join(parts), media_type=BYTES, headers=DATA_HEADERS)


class BlockQuery(msgspec.Struct, forbid_unknown_fields=True):
    #: The entity tag of the document it belongs to. Without it, it is of the newest, which of a live run may be another one.
    of: Text = ""


def _rendering(call: Call, row: dict[str, Any]) -> tuple[rendering.Rendering, str]:
    computation = str(call.request.path_params.get("computation", ""))
    title = row["name"] or row["cluster"]
    try:
        return rendering.of_run(call.services, call.account.id, row["id"], title, computation)
    except rendering.NoSuchComputation:
        raise not_found("such computation") from None


def view_document(call: Call) -> Response:
    shown, path = _rendering(call, find(call))
    headers = {**DATA_HEADERS, "ETag": f'"{rendering.name_of(path)}"'}
    return Response(shown.report, media_type="application/json", headers=headers)


def view_block(call: Call) -> Response:
    query: BlockQuery = call.query
    # Looked for first: of a cluster that was deleted nothing is shown, whatever is still in memory.
    row = find(call)
    # Made anew, it would have columns of other rows, and it would be made for every column of a live cluster.
    shown = rendering.remembered(call.account.id, query.of) if query.of else None
    data = (shown or _rendering(call, row)[0]).blocks.get(call.path("block"))
    if data is None:
        raise not_found("such block")
    return Response(data, media_type=BYTES, headers=DATA_HEADERS)


def share(call: Call) -> HostedReport:
    """A computation as a report of its own: it stays when the cluster is deleted."""
    made, _ = _rendering(call, find(call))
    report = json.loads(made.report)
    totals = report["totals"]
    new = NewReport(
        filename=f"{call.path('computation')}.html",
        title=str(report["title"]),
        kind="recording",
        path=rendering.store(call.services, call.account.id, made),
        nbytes=made.nbytes,
        visibility=call.account.preferences.visibility,
        cluster=call.path("cluster"),
        status=str(report["answer"]["status"]),
        duration_us=int(totals["duration_us"]),
        tasks=int(totals["tasks"]),
        errors=int(totals["errors"]),
    )
    return report_view(add(call, new), call.services.url)


ONE = "/api/v1/clusters/{cluster}"
COMPUTATION = f"{ONE}/computations/{{computation}}"
ROUTES = [
    Route("POST", f"{COMPUTATION}/share", share, "write", "A computation as a report", status=201, heavy=True),
    Route(
        "GET", f"{ONE}/events", list_events, "read", "What happened, the newest first", query=EventsQuery, heavy=True
    ),
    Route(
        "GET",
        f"{ONE}/tasks",
        list_tasks,
        "read",
        "Executions in a window of time, as columns",
        query=TasksQuery,
        heavy=True,
    ),
    Route(
        "GET", f"{ONE}/recording", download, "read", "The whole cluster as a recording file", answers=BYTES, heavy=True
    ),
    Route("GET", f"{ONE}/view/report.json", view_document, "read", "What the viewer shows of a cluster", heavy=True),
    Route(
        "GET",
        f"{ONE}/view/blocks/{{block}}",
        view_block,
        "read",
        "One of its columns",
        query=BlockQuery,
        answers=BYTES,
        heavy=True,
    ),
    Route(
        "GET",
        f"{COMPUTATION}/view/report.json",
        view_document,
        "read",
        "The same of a computation",
        heavy=True,
    ),
    Route(
        "GET",
        f"{COMPUTATION}/view/blocks/{{block}}",
        view_block,
        "read",
        "One of its columns",
        query=BlockQuery,
        answers=BYTES,
        heavy=True,
    ),
]
