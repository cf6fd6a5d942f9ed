"""Uploaded HTML, shown in a frame: from this server's own origin, or from another one (``--content-url``).

The sandbox gives uploaded HTML an origin of its own in any case. A second origin also protects the app from a browser whose
sandbox has a hole. It serves uploaded HTML and health checks, and nothing else: no page, no API, no sign-in. No cookie
is read or set there. The URL of a frame is the right to see it: signed with a key of the account, for one report, and valid
for a minute. A URL made for a share link also ends with the link.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from daskscope.server.caches import Shared
from daskscope.server.errors import not_found
from daskscope.server.http import pages
from daskscope.server.http.identity import TICKET_US, is_content_host
from daskscope.server.http.pages import DATA_HEADERS
from daskscope.server.http.parameters import is_number
from daskscope.server.services import Services
from daskscope.server.settings import Settings
from daskscope.storage.base.archive import Transaction
from daskscope.storage.catalog.reports import Report, get_report

#: Not the first segment of a page: an account may have any name that is not reserved.
CONTENT_PATH = "/api/v1/content"
#: How a reader came to the report. A share link can be revoked on its own.
MEMBER, SHARED = "member", "shared"


@dataclass(frozen=True)
class Page:
    """Uploaded HTML."""

    data: bytes

    @property
    def nbytes(self) -> int:
        return len(self.data)


#: Uploaded HTML that is being read, and some that was read recently.
_pages: Shared[Page] = Shared(16 * 1024 * 1024)


def content_url(tx: Transaction, settings: Settings, row: Report, *, way: str) -> str:
    """Return the URL of uploaded HTML on its own origin."""
    expires = str(tx.now_us + TICKET_US)
    return f"{settings.content_url}{CONTENT_PATH}/{row.id}.{way}.{expires}.{_signature(tx, row, way, expires)}"


def find_content(tx: Transaction, address: str) -> tuple[Report, str] | None:
    """Return the report of an address and how its reader came to it; None if the address is not valid, or no longer."""
    parts = address.split(".")
    if len(parts) != 4 or not (is_number(parts[0]) and is_number(parts[2])):
        return None
    number, way, expires, signature = parts
    if not tx.now_us < int(expires) <= tx.now_us + TICKET_US:
        return None
    row = get_report(tx, int(number))
    if row is None or way not in (MEMBER, SHARED) or (way == SHARED and not row.is_shared):
        return None
    wanted = _signature(tx, row, way, expires)
    return (row, way) if hmac.compare_digest(wanted.encode(), signature.encode(errors="replace")) else None


def _signature(tx: Transaction, row: Report, way: str, expires: str) -> str:
    link = row.share if way == SHARED else ""
    return tx.sign(row.account_id, f"content {row.id} {way} {link} {expires}")


def html_response(services: Services, request: Request, row: Report, *, way: str) -> Response:
    """Return uploaded HTML to a frame. A browser that opens it otherwise is sent to the page with the frame."""
    if row.kind != "html":
        raise not_found("HTML version of this report")
    settings, is_content = services.settings, is_content_host(request, services.settings)
    is_framed = request.headers.get("sec-fetch-dest", "iframe") == "iframe"
    if not is_framed or is_content != bool(settings.content_url):
        # A path, unless it leads to the other origin: the server may have several names.
        root = services.url if is_content else settings.root_path
        link = f"/{quote(row.share)}" if way == SHARED else ""
        return RedirectResponse(f"{root}/{quote(row.account)}/reports/{row.number}{link}", 303, DATA_HEADERS)

    def read() -> Page:
        data = services.archive.store.get(row.html_path)
        with services.archive.read() as tx:
            return Page(tx.open(row.account_id, data, row.html_path))

    ancestors = " ".join(settings.page_origins) if is_content else "'self'"
    return pages.sandboxed(_pages.load(row.html_path, read).data, ancestors)
