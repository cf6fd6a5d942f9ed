"""Hosted reports: upload, list, change, delete and view."""

from __future__ import annotations

import json
import mmap
import tempfile
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from daskscope import units
from daskscope.errors import RecordingError, WireError
from daskscope.model.untrusted import clean
from daskscope.report.schema import Report
from daskscope.server import documents
from daskscope.server.contract import HostedReport
from daskscope.server.documents import build_upload
from daskscope.server.errors import Refusal, bad_request, forbidden, not_found, too_large
from daskscope.server.http import parameters
from daskscope.server.http.audit import audit
from daskscope.server.http.content import CONTENT_PATH, MEMBER, SHARED, content_url, find_content, html_response
from daskscope.server.http.identity import HEADER, make_ticket, named_account
from daskscope.server.http.pages import BYTES, DATA_HEADERS, DataResponse
from daskscope.server.http.parameters import Limit, Place, Text, find_cluster, find_document, is_number, since_us
from daskscope.server.http.routing import CONTENT, PUBLIC, Call, Route, receive
from daskscope.server.ingest.limits import Upload
from daskscope.server.pools import HEAVY
from daskscope.server.processes.job import JobFailed
from daskscope.server.views import report_view
from daskscope.storage.base.blobs import new_path
from daskscope.storage.base.database import InvalidInput
from daskscope.storage.catalog import reports as store
from daskscope.storage.runs.read import Amount
from daskscope.wire.decode import read_frame
from daskscope.wire.layout import FILE_MAGIC

#: How long an upload may take.
UPLOAD_S = 600.0
#: Maximum unpacked size of a recording, as a multiple of the maximum upload; real ones unpack to five times their size.
MAX_RAW_TIMES = 20
#: Maximum rows of a recording: one per byte, where real rows take five, plus some; each takes 230 bytes to read. A
#: frame of constants claims a quarter of a million rows in 300 bytes.
SPARE_ROWS, MAX_ROWS = 500_000, 20_000_000
Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=60)]


class UploadQuery(msgspec.Struct, forbid_unknown_fields=True):
    filename: Text = "dask-report.html"
    title: Text = ""
    #: Empty means the account's preference.
    visibility: Literal["", "private", "public"] = ""
    tags: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    days_to_expire: Annotated[int, msgspec.Meta(ge=1, le=3650)] | None = None


class ReportsQuery(msgspec.Struct, forbid_unknown_fields=True):
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
    #: Days from now; 0 means never.
    days_to_expire: Annotated[int, msgspec.Meta(ge=0, le=3650)] | None = None
    #: Create a new link and end the old one.
    new_link: bool = False


class NewShare(msgspec.Struct, forbid_unknown_fields=True):
    #: Empty means the account's preference.
    visibility: Literal["", "private", "public"] = ""


# ---------------------------------------------------------------- upload and list


async def upload_report(call: Call) -> HostedReport:
    """Upload a recording, which the server renders, or any HTML, which it shows in a sandbox."""
    services, limit = call.services, call.services.settings.max_report
    used = await run_in_threadpool(check_room, call, _claimed(call))
    # Not in memory: uploads are large and slow, and there may be many.
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
                f"This report is larger than {units.nbytes(limit)}. "
                "The server's operator can raise the limit with --max-report."
            ) from None
        except store.ReportsFull as error:
            raise too_large(str(error)) from None
        # Identify again: the upload may have taken ten minutes.
        call.identity = await run_in_threadpool(call.again)
        return await services.pools.run(HEAVY, call.account.id, _upload, call, path)


def _keep(call: Call, file: BinaryIO, part: bytes, upload: Upload, used: int) -> None:
    """Write a part of an upload if all concurrent uploads have room: a body may not state its size."""
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


def add(call: Call, new: store.NewReport, html_path: str = "") -> store.Report:
    """Store a report whose files are written. Delete them if the account has no room."""
    try:
        with call.services.archive.write() as tx:
            limit = call.services.settings.max_reports
            row = store.add_report(tx, call.account.id, call.identity.user, new, limit=limit)
            if html_path:
                store.change_report(tx, row.id, {"html_path": html_path})
            audit(call, tx, "report-created", row.title or row.filename, id=row.number, visibility=row.visibility)
    except store.ReportsFull as error:
        for path in filter(None, (new.path, html_path)):
            call.services.archive.store.delete(path)
        raise too_large(str(error)) from None
    return row


def _claimed(call: Call) -> int:
    """Return the claimed size of a body; the real size is checked when it has arrived."""
    claimed = call.request.headers.get("content-length", "")
    return int(claimed[:20]) if claimed.isdigit() else 0


def check_room(call: Call, nbytes: int) -> int:
    """Refuse what cannot fit before receiving it and building its document. Return the bytes in use if they are limited."""
    limit = call.services.settings.max_reports
    if not limit:
        return 0
    with call.services.archive.read() as tx:
        used = store.used_nbytes(tx, call.account.id)
    if used + nbytes > limit:
        raise too_large(str(store.ReportsFull(used, limit)))
    return used


def _is_html(data: bytes) -> bool:
    start = data.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head", b"<!--"))


def _recording(call: Call, path: Path, common: dict[str, Any]) -> store.NewReport:
    try:
        unpacked = _check_raw(path, MAX_RAW_TIMES * call.services.settings.max_report)
        title = call.query.title or call.query.filename
        built = build_upload(call.services, call.account.id, path, title, unpacked)
    except (RecordingError, WireError, InvalidInput) as error:
        raise bad_request(f"This recording cannot be read: {error}") from None
    except JobFailed as error:
        raise documents.build_failed(str(error)) from None
    made = documents.load(call.services, call.account.id, built.path)
    facts = _facts(built.cluster, json.loads(made.report))
    return store.NewReport(kind="recording", path=built.path, title=title, **facts, **common)


def _check_raw(path: Path, limit: int) -> Amount:
    """Refuse a recording whose batches claim more than fits into memory, without unpacking it. Return its claim."""
    with path.open("rb") as file:
        # Closed when the last view of it is gone.
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    claimed, rows, offset = 0, 0, len(FILE_MAGIC)
    while offset < len(data):
        try:
            frame = read_frame(memoryview(data), offset)
        except WireError:
            # The rest is damaged and will not be read.
            break
        claimed, rows, offset = claimed + frame.header.raw, rows + frame.header.rows, offset + frame.size
    # Only whole frames count: any number of zeros may follow them.
    if claimed > limit or rows > min(SPARE_ROWS + offset, MAX_ROWS):
        raise bad_request("This recording is too large when unpacked.")
    return Amount(claimed, rows)


def _facts(cluster: str, report: Report) -> dict[str, Any]:
    totals = report["totals"]
    facts = {
        "cluster": cluster,
        "status": report["answer"]["state"],
        "duration_us": totals["duration_us"],
        "tasks": totals["tasks"],
        "errors": totals["errors"],
    }
    # Clean the values: a database stores neither NUL nor integers beyond 64 bits.
    return {name: clean(value) for name, value in facts.items()}


def _put(call: Call, data: bytes, name: str) -> str:
    path = new_path(call.account.id, "reports", name)
    with call.services.archive.read() as tx:
        sealed = tx.seal(call.account.id, data, path)
    call.services.archive.store.put(path, sealed)
    return path


def list_reports(call: Call) -> dict[str, Any]:
    query: ReportsQuery = call.query
    place = parameters.decode(query.cursor, int)
    with call.services.archive.read() as tx:
        rows = store.list_reports(
            tx, call.account.id, search=query.search, tag=query.tag, user=query.user,
            since_us=since_us(query.since, call.now_us), limit=query.limit + 1, before=place[0] if place else None)  # fmt: skip
    more, rows = len(rows) > query.limit, rows[: query.limit]
    items = [report_view(row, call.services.url) for row in rows]
    return {"items": items, "next": parameters.encode(rows[-1].number) if more else None}


# ---------------------------------------------------------------- one report


def own_report(call: Call) -> store.Report:
    """Return the report of the path to a member."""
    number = call.path("report")
    with call.services.archive.read() as tx:
        row = store.find_report(tx, call.account.id, int(number)) if is_number(number) else None
    if row is None:
        raise not_found("such report")
    return row


def _shared(call: Call) -> store.Report:
    """Return the report of a share link."""
    with call.services.archive.read() as tx:
        row = store.find_shared(tx, call.path("share"))
    if row is None:
        raise not_found("report with this link", "The link may have expired.")
    return row


def get_report(call: Call) -> HostedReport:
    return report_view(own_report(call), call.services.url)


def _decides(call: Call, row: store.Report) -> bool:
    """Return whether the caller can change who sees a report: its uploader and owners of the account."""
    return row.user_id == call.identity.user or "admin" in call.identity.scopes


def change_report(call: Call) -> HostedReport:
    row, change = own_report(call), call.body
    sharing = change.visibility is not None or change.days_to_expire is not None or change.new_link
    if sharing and not _decides(call, row):
        raise forbidden("Only the uploader of a report or an owner of the account can change who sees it.")
    values: dict[str, Any] = {
        name: value
        for name, value in (("title", change.title), ("filename", change.filename), ("tags", change.tags))
        if value is not None
    }
    visibility = change.visibility or row.visibility
    if change.visibility is not None:
        values["visibility"] = change.visibility
        values["share"] = (row.share or store.new_share()) if visibility == "public" else ""
    if change.new_link and visibility == "public":
        values["share"] = store.new_share()
    if change.days_to_expire is not None:
        values["expires_us"] = call.now_us + change.days_to_expire * units.DAY if change.days_to_expire else 0
    if values:
        with call.services.archive.write() as tx:
            store.change_report(tx, row.id, values)
            if sharing:
                shared = {"visibility": visibility, "new_link": change.new_link}
                audit(call, tx, "report-shared", row.title or row.filename, id=row.number, **shared)
            changed = store.find_report(tx, call.account.id, row.number)
        if changed is None:
            # It was deleted meanwhile.
            raise not_found("such report")
        row = changed
    return report_view(row, call.services.url)


def delete_report(call: Call) -> dict[str, Any]:
    row = own_report(call)
    if not _decides(call, row):
        raise forbidden("Only the uploader of a report or an owner of the account can delete it.")
    with call.services.archive.write() as tx:
        paths = store.delete_report(tx, row.id)
        audit(call, tx, "report-deleted", row.title or row.filename, id=row.number)
    for path in paths:
        call.services.archive.store.delete(path)
    return {"deleted": row.number}


# ---------------------------------------------------------------- what is in it


def _document(call: Call, row: store.Report) -> Response:
    if row.kind != "recording":
        raise not_found("such document")
    made = documents.load(call.services, row.account_id, row.path)
    return DataResponse([made.report], "application/json", DATA_HEADERS)


def _block(call: Call, row: store.Report) -> Response:
    if row.kind != "recording":
        raise not_found("such block")
    made = documents.load(call.services, row.account_id, row.path)
    data = made.blocks.get(call.path("block"))
    if data is None:
        raise not_found("such block")
    return DataResponse([data], BYTES, DATA_HEADERS)


def report_document(call: Call) -> Response:
    return _document(call, own_report(call))


def report_block(call: Call) -> Response:
    return _block(call, own_report(call))


def report_html(call: Call) -> Response:
    return html_response(call.services, call.request, own_report(call), way=MEMBER)


def report_ticket(call: Call) -> dict[str, Any]:
    """Return a URL parameter or another URL for a frame with uploaded HTML: a frame cannot send headers."""
    row, settings = own_report(call), call.services.settings
    if row.kind != "html":
        raise not_found("HTML version of this report")
    if settings.content_url:
        with call.services.archive.read() as tx:
            return {"ticket": None, "url": content_url(tx, settings, row, way=MEMBER)}
    # Without a page secret there is nothing to bind it to: a token goes into a header.
    if HEADER not in call.request.headers or call.identity.kind == "token":
        return {"ticket": None, "url": None}
    path = call.request.url.path.removesuffix("/ticket")
    ticket = make_ticket(call.request, path, named_account(call.request), call.now_us)
    return {"ticket": ticket, "url": None}


def shared_document(call: Call) -> Response:
    return _document(call, _shared(call))


def shared_block(call: Call) -> Response:
    return _block(call, _shared(call))


def shared_html(call: Call) -> Response:
    return html_response(call.services, call.request, _shared(call), way=SHARED)


def content(call: Call) -> Response:
    """Return uploaded HTML on the origin that serves nothing else."""
    with call.services.archive.read() as tx:
        found = find_content(tx, call.path("address"))
    if found is None:
        raise not_found(
            "report at this address", "Addresses of frames end after a minute. Reload the page with the frame."
        )
    row, way = found
    return html_response(call.services, call.request, row, way=way)


def share(call: Call) -> HostedReport:
    """Create a report from a computation. It stays when the cluster is deleted."""
    made = find_document(call, find_cluster(call)).document
    report = json.loads(made.report)
    new = store.NewReport(
        filename=f"{call.path('computation')}.html",
        title=str(report["title"]),
        kind="recording",
        path=documents.store(call.services, call.account.id, made),
        nbytes=made.nbytes,
        visibility=call.body.visibility or call.account.preferences.visibility,
        **_facts(call.path("cluster"), report),
    )
    return report_view(add(call, new), call.services.url)


ROUTES = [
    Route(
        "POST", "/api/v1/clusters/{cluster}/computations/{computation}/share", share, "write",
        "Create a report from a computation", body=NewShare, status=201, heavy=True,
    ),
    Route("GET", "/api/v1/reports", list_reports, "read", "List reports, newest first", query=ReportsQuery),
    Route(
        "POST", "/api/v1/reports", upload_report, "write", "Upload a recording or an HTML report",
        query=UploadQuery, content=BYTES, status=201,
    ),
    Route("GET", "/api/v1/reports/{report}", get_report, "read", "Return a report"),
    Route("PATCH", "/api/v1/reports/{report}", change_report, "write", "Rename, tag, share or expire a report", body=ReportChange),
    Route("DELETE", "/api/v1/reports/{report}", delete_report, "write", "Delete a report"),
    Route("GET", "/api/v1/reports/{report}/document/report.json", report_document, "read", "Return its document", heavy=True),
    Route("GET", "/api/v1/reports/{report}/document/blocks/{block}", report_block, "read", "Return a block of it", answers=BYTES),
    Route("GET", "/api/v1/reports/{report}/html", report_html, "read", "Return uploaded HTML, in a sandbox", answers="text/html"),
    Route("GET", "/api/v1/reports/{report}/html/ticket", report_ticket, "read", "Return a ticket for a frame with uploaded HTML"),
    Route("GET", "/api/v1/shared/{share}/document/report.json", shared_document, PUBLIC, "Return the document of a shared report"),
    Route("GET", "/api/v1/shared/{share}/document/blocks/{block}", shared_block, PUBLIC, "Return a block of it", answers=BYTES),
    Route("GET", "/api/v1/shared/{share}/html", shared_html, PUBLIC, "Return the HTML of a shared report", answers="text/html"),
    Route("GET", f"{CONTENT_PATH}/{{address}}", content, CONTENT, "Return uploaded HTML on its own origin", answers="text/html"),
]  # fmt: skip
