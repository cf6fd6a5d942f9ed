"""Hosted reports: upload, list, change, delete, and look at them."""

from __future__ import annotations

import mmap
import tempfile
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from daskscope import units
from daskscope.analysis.rollup import clean
from daskscope.errors import RecordingError, WireError
from daskscope.model.recording import Recording
from daskscope.report.document import build
from daskscope.report.schema import Report
from daskscope.server import cursor, pages, rendering
from daskscope.server.arriving import Upload
from daskscope.server.contract import HostedReport
from daskscope.server.failure import Refusal, bad_request, forbidden, not_found, too_large
from daskscope.server.names import is_number
from daskscope.server.pools import HEAVY
from daskscope.server.routes.clusters import Limit, Place, Text
from daskscope.server.routing import PUBLIC, Call, Route, receive
from daskscope.server.since import since_us
from daskscope.server.views import moment, parsed, seconds
from daskscope.storage import reports as store
from daskscope.storage.blobs import new_path
from daskscope.wire.decode import read_frame
from daskscope.wire.file import read_recording
from daskscope.wire.layout import FILE_MAGIC

BYTES = "application/octet-stream"
#: How long an upload may take.
UPLOAD_S = 600.0
#: What a recording may unpack to, as a multiple of what may be uploaded; real ones have five times their size.
MOST_RAW_TIMES = 20
#: Rows it may have: one for each byte, where real ones take five, and some more; each takes 230 bytes when it is read. A frame of
#: constants has a quarter of a million of them in 300 bytes.
SPARE_ROWS, MOST_ROWS = 500_000, 20_000_000
Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=60)]


class UploadQuery(msgspec.Struct, forbid_unknown_fields=True):
    filename: Text = "dask-report.html"
    title: Text = ""
    #: Empty: what the account prefers.
    visibility: Literal["", "private", "public"] = ""
    tags: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    days_to_expire: Annotated[int, msgspec.Meta(ge=1, le=3650)] | None = None


class ListQuery(msgspec.Struct, forbid_unknown_fields=True):
    search: Text = ""
    tag: Text = ""
    since: Text = ""
    user: Text = ""
    limit: Limit = 100
    cursor: Place = ""


class ReportChange(msgspec.Struct, forbid_unknown_fields=True):
    title: Text | None = None
    filename: Text | None = None
    tags: Annotated[list[Tag], msgspec.Meta(max_length=50)] | None = None
    visibility: Literal["private", "public"] | None = None
    #: Days from now; 0: never.
    days_to_expire: Annotated[int, msgspec.Meta(ge=0, le=3650)] | None = None
    #: A new link; the old one ends.
    new_link: bool = False


# ---------------------------------------------------------------- upload and list


async def upload_report(call: Call) -> HostedReport:
    """A recording, which the server renders, or any HTML, which it shows in a sandbox."""
    services, limit = call.services, call.services.settings.max_report
    used = await run_in_threadpool(check_room, call, _claimed(call))
    # Not in memory: it is large, takes as long as its sender likes, and there may be many.
    with (
        services.arriving.upload(call.account.id) as upload,
        tempfile.TemporaryDirectory(dir=services.settings.directory, prefix="upload-") as directory,
    ):
        path = Path(directory) / "upload.daskscope"
        try:
            with path.open("wb") as file:
                await receive(call.request, limit, lambda part: _keep(call, file, part, upload, used), UPLOAD_S)
        except Refusal as refusal:
            if refusal.status != 413:
                raise
            raise too_large(
                f"This report is larger than the {units.nbytes(limit)} this server takes. "
                "Whoever runs it can change that with --max-report."
            ) from None
        except store.ReportsFull as error:
            raise too_large(str(error)) from None
        # It may have taken ten minutes to come.
        call.identity = await run_in_threadpool(call.again)
        return await services.pools.run(HEAVY, _upload, call, path)


def _keep(call: Call, file: BinaryIO, part: bytes, upload: Upload, used: int) -> None:
    """Write a part of an upload, where all that come at once have room: a body need not say how large it is."""
    limit = call.services.settings.max_reports
    if limit and used + upload.add(len(part)) > limit:
        raise store.ReportsFull(used, limit)
    file.write(part)


def _upload(call: Call, file: Path) -> HostedReport:
    query: UploadQuery = call.query
    tags = tuple(dict.fromkeys(tag.strip()[:60] for tag in query.tags.split(",") if tag.strip()))[:50]
    visibility = query.visibility or call.account.preferences.visibility
    expires = call.now_us + query.days_to_expire * units.DAY if query.days_to_expire else 0
    with file.open("rb") as opened:
        start = opened.read(2000)
    common: dict[str, Any] = {
        "filename": query.filename,
        "visibility": visibility,
        "tags": tags,
        "expires_us": expires,
        "nbytes": file.stat().st_size,
    }
    if start.startswith(FILE_MAGIC):
        new, html_path = _recording(call, file, common), ""
    elif _is_html(start):
        html_path = _put(call, file.read_bytes(), "html")
        new = store.NewReport(kind="html", path="", title=query.title or query.filename, **common)
    else:
        raise bad_request("This is neither a recording nor an HTML report.")
    return report_view(add(call, new, html_path), call.services.url)


def add(call: Call, new: store.NewReport, html_path: str = "") -> dict[str, Any]:
    """Store a report whose files are written; they go where the account has no room for it."""
    try:
        with call.services.database.write() as connection:
            limit = call.services.settings.max_reports
            row = store.add_report(connection, call.account.id, call.identity.user, new, call.now_us, limit=limit)
            if html_path:
                store.change_report(connection, row["id"], {"html_path": html_path})
    except store.ReportsFull as error:
        for path in filter(None, (new.path, html_path)):
            call.services.store.delete(path)
        raise too_large(str(error)) from None
    return row


def _claimed(call: Call) -> int:
    """How large a body says it is; what it says is checked when it is there."""
    claimed = call.request.headers.get("content-length", "")
    return int(claimed[:20]) if claimed.isdigit() else 0


def check_room(call: Call, nbytes: int) -> int:
    """Refuse what cannot fit before it is received and rendered, which takes long; what the account has, if that is limited."""
    limit = call.services.settings.max_reports
    if not limit:
        return 0
    with call.services.database.read() as connection:
        used = store.used_nbytes(connection, call.account.id, call.now_us)
    if used + nbytes > limit:
        raise too_large(str(store.ReportsFull(used, limit)))
    return used


def _is_html(data: bytes) -> bool:
    start = data.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head", b"<!--"))


def _recording(call: Call, path: Path, common: dict[str, Any]) -> store.NewReport:
    try:
        _check_raw(path, MOST_RAW_TIMES * call.services.settings.max_report)
        recording = read_recording(path)
    except (RecordingError, WireError) as error:
        raise bad_request(f"This recording cannot be read: {error}") from None
    title = call.query.title or call.query.filename
    report, blocks = build(recording, title=title, **rendering.embedded(recording))
    made = rendering.render(report, blocks)
    stored = rendering.store(call.services, call.account.id, made)
    return store.NewReport(kind="recording", path=stored, title=title, **_facts(recording, report), **common)


def _check_raw(path: Path, limit: int) -> None:
    """Refuse a recording whose batches claim more than could be held; they are not unpacked for it."""
    with path.open("rb") as file:
        # Closed when the last view of it is gone.
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    claimed, rows, offset = 0, 0, len(FILE_MAGIC)
    most = min(SPARE_ROWS + len(data), MOST_ROWS)
    while offset < len(data):
        try:
            frame = read_frame(memoryview(data), offset)
        except WireError:
            # What follows is damaged, and will not be read.
            return
        claimed, rows, offset = claimed + frame.header.raw, rows + frame.header.rows, offset + frame.size
        if claimed > limit or rows > most:
            raise bad_request("This recording unpacks to more than this server takes.")


def _facts(recording: Recording, report: Report) -> dict[str, Any]:
    clusters, totals = recording["clusters"], report["totals"]
    facts = {
        "cluster": str(clusters["cluster"][0]) if clusters.rows else "",
        "status": report["answer"]["status"],
        "duration_us": totals["duration_us"],
        "tasks": totals["tasks"],
        "errors": totals["errors"],
    }
    # Whatever the recording claims: a database has neither NUL nor numbers beyond 64 bits.
    return {name: clean(value) for name, value in facts.items()}


def _put(call: Call, data: bytes, name: str) -> str:
    path = new_path(call.account.id, "reports", name)
    with call.services.database.read() as connection:
        sealed = call.services.vault.seal(connection, call.account.id, data)
    call.services.store.put(path, sealed)
    return path


def report_view(row: dict[str, Any], base: str) -> HostedReport:
    url = f"{base}/{row['account']}/reports/{row['number']}"
    public = row["visibility"] == "public" and row["share"]
    return {
        "id": row["number"],
        "filename": row["filename"],
        "title": row["title"],
        "private": not public,
        "url": f"{url}/{row['share']}" if public else url,
        "kind": row["kind"],
        "account": row["account"],
        "user": row["user"],
        "created": moment(row["created_us"]),
        "expires": moment(row["expires_us"]),
        "size": row["nbytes"],
        "duration": seconds(row["duration_us"]),
        "n_tasks": row["tasks"],
        "n_errors": row["errors"],
        "status": row["status"],
        "cluster_id": row["cluster"],
        "tags": parsed(row["tags"], []),
    }


def list_reports(call: Call) -> dict[str, Any]:
    query: ListQuery = call.query
    place = cursor.decode(query.cursor, int)
    with call.services.database.read() as connection:
        rows = store.list_reports(
            connection, call.account.id, call.now_us, search=query.search, tag=query.tag, user=query.user,
            since_us=since_us(query.since, call.now_us), limit=query.limit + 1, before=place[0] if place else None,
        )  # fmt: skip
    more, rows = len(rows) > query.limit, rows[: query.limit]
    items = [report_view(row, call.services.url) for row in rows]
    return {"items": items, "next": cursor.encode(rows[-1]["number"]) if more else None}


# ---------------------------------------------------------------- one report


def own_report(call: Call) -> dict[str, Any]:
    """The report of the path, for a member."""
    number = call.path("report")
    with call.services.database.read() as connection:
        row = store.find_report(connection, call.account.id, int(number), call.now_us) if is_number(number) else None
    if row is None:
        raise not_found("such report")
    return row


def _shared(call: Call) -> dict[str, Any]:
    """The report of a public link."""
    with call.services.database.read() as connection:
        row = store.find_shared(connection, call.path("share"), call.now_us)
    if row is None:
        raise not_found("such report; its link may have ended")
    return row


def get_report(call: Call) -> HostedReport:
    return report_view(own_report(call), call.services.url)


def _decides(call: Call, row: dict[str, Any]) -> bool:
    """Whether somebody may say who sees a report and how long: who uploaded it, and owners of the account."""
    return row["user_id"] == call.identity.user or "admin" in call.identity.scopes


def change_report(call: Call) -> HostedReport:
    row, change = own_report(call), call.body
    sharing = change.visibility is not None or change.days_to_expire is not None or change.new_link
    if sharing and not _decides(call, row):
        raise forbidden("Only whoever uploaded a report, or an owner of the account, says who may see it.")
    values: dict[str, Any] = {
        name: value
        for name, value in (("title", change.title), ("filename", change.filename), ("tags", change.tags))
        if value is not None
    }
    visibility = change.visibility or row["visibility"]
    if change.visibility is not None:
        values["visibility"] = change.visibility
        values["share"] = (row["share"] or store.new_share()) if visibility == "public" else ""
    if change.new_link and visibility == "public":
        values["share"] = store.new_share()
    if change.days_to_expire is not None:
        values["expires_us"] = call.now_us + change.days_to_expire * units.DAY if change.days_to_expire else 0
    if values:
        with call.services.database.write() as connection:
            store.change_report(connection, row["id"], values)
            changed = store.find_report(connection, call.account.id, row["number"], call.now_us)
        if changed is None:
            # Somebody deleted it meanwhile.
            raise not_found("such report")
        row = changed
    return report_view(row, call.services.url)


def delete_report(call: Call) -> dict[str, Any]:
    row = own_report(call)
    if not _decides(call, row):
        raise forbidden("Only whoever uploaded a report, or an owner of the account, can delete it.")
    with call.services.database.write() as connection:
        paths = store.delete_report(connection, row["id"])
    for path in paths:
        call.services.store.delete(path)
    return {"deleted": row["number"]}


# ---------------------------------------------------------------- what is in it


def _document(call: Call, row: dict[str, Any]) -> Response:
    if row["kind"] != "recording":
        raise not_found("such document")
    made = rendering.load(call.services, row["account_id"], row["path"])
    return Response(made.report, media_type="application/json", headers=DATA_HEADERS)


def _block(call: Call, row: dict[str, Any]) -> Response:
    if row["kind"] != "recording":
        raise not_found("such block")
    made = rendering.load(call.services, row["account_id"], row["path"])
    data = made.blocks.get(call.path("block"))
    if data is None:
        raise not_found("such block")
    return Response(data, media_type=BYTES, headers=DATA_HEADERS)


def _html(call: Call, row: dict[str, Any]) -> Response:
    if row["kind"] != "html":
        raise not_found("such HTML")
    data = call.services.store.get(row["html_path"])
    with call.services.database.read() as connection:
        page = call.services.vault.open(connection, row["account_id"], data)
    return pages.sandboxed(page)


#: A rendering is a set of numbers and names, never a page: no browser may take it for one.
DATA_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def report_document(call: Call) -> Response:
    return _document(call, own_report(call))


def report_block(call: Call) -> Response:
    return _block(call, own_report(call))


def report_html(call: Call) -> Response:
    return _html(call, own_report(call))


def shared_document(call: Call) -> Response:
    return _document(call, _shared(call))


def shared_block(call: Call) -> Response:
    return _block(call, _shared(call))


def shared_html(call: Call) -> Response:
    return _html(call, _shared(call))


ROUTES = [
    Route("GET", "/api/v1/reports", list_reports, "read", "Reports, the newest first", query=ListQuery),
    Route(
        "POST", "/api/v1/reports", upload_report, "write", "Upload a recording or an HTML report",
        query=UploadQuery, content=BYTES, status=201,
    ),
    Route("GET", "/api/v1/reports/{report}", get_report, "read", "One report"),
    Route("PATCH", "/api/v1/reports/{report}", change_report, "write", "Rename, tag, share or end a report", body=ReportChange),
    Route("DELETE", "/api/v1/reports/{report}", delete_report, "write", "Delete a report"),
    Route("GET", "/api/v1/reports/{report}/view/report.json", report_document, "read", "What the viewer shows", heavy=True),
    Route("GET", "/api/v1/reports/{report}/view/blocks/{block}", report_block, "read", "One of its columns", answers=BYTES),
    Route("GET", "/api/v1/reports/{report}/html", report_html, "read", "Uploaded HTML, in a sandbox", answers="text/html"),
    Route("GET", "/api/v1/shared/{share}/view/report.json", shared_document, PUBLIC, "The same, by a public link"),
    Route("GET", "/api/v1/shared/{share}/view/blocks/{block}", shared_block, PUBLIC, "The same, by a public link", answers=BYTES),
    Route("GET", "/api/v1/shared/{share}/html", shared_html, PUBLIC, "The same, by a public link", answers="text/html"),
]  # fmt: skip
