"""The web app: its pages, its files, and shared reports."""

from __future__ import annotations

import functools
import html
import mimetypes
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import HTMLResponse, Response

from daskscope.errors import DaskscopeError
from daskscope.server.errors import not_found
from daskscope.server.http import pages
from daskscope.server.http.content import SHARED, content_url
from daskscope.server.http.pages import COMMON
from daskscope.server.http.routing import ANYBODY, PUBLIC, Call, Route
from daskscope.storage.catalog import reports as report_store

if TYPE_CHECKING:
    # From Python 3.11 on.
    from importlib.resources.abc import Traversable

#: Scripts and styles come from this server. Scripts set styles of single elements, such as widths of bars.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: File names change with their content.
IMMUTABLE = "public, max-age=31536000, immutable"


class PageConvertor(Convertor[str]):
    """Matches every path except paths of the API and of files: an unknown one of these is an error, and no page.

    A client that was given the URL of a page asks for the API below it. The error tells it to use the URL of the server.
    """

    regex = "(?!(?:api|assets)/|(?:.*/)?api/v1/).*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("page", PageConvertor())


def _built() -> Traversable:
    return files("daskscope.server").joinpath("static")


@functools.cache
def _page(root: str) -> str:
    page = _built().joinpath("app.html")
    if not page.is_file():
        raise DaskscopeError(
            "The web app is not built. In a checkout run scripts/build-web; an installed package has it."
        )
    text = page.read_text(encoding="utf-8").replace("./assets/", f"{html.escape(root, quote=True)}/assets/")
    meta = f'<meta name="daskscope-root" content="{html.escape(root, quote=True)}">'
    return text.replace("<!--DASKSCOPE-ROOT-->", meta)


def shell(call: Call) -> Response:
    """Return the app. It gets all data from the API and redirects to the sign-in page if needed."""
    settings = call.services.settings
    policy = f"{_POLICY}; frame-src {settings.frame_source}"
    return HTMLResponse(_page(settings.root_path), headers={**COMMON, "Content-Security-Policy": policy})


def asset(call: Call) -> Response:
    name = call.path("name")
    file = _built().joinpath("assets").joinpath(name)
    # Serve only names that were built.
    if name not in _names() or not file.is_file():
        raise not_found("such file")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    headers = {"Cache-Control": IMMUTABLE, "X-Content-Type-Options": "nosniff"}
    return Response(file.read_bytes(), media_type=kind, headers=headers)


@functools.cache
def _names() -> frozenset[str]:
    assets = _built().joinpath("assets")
    return frozenset(item.name for item in assets.iterdir()) if assets.is_dir() else frozenset()


def icon(_: Call) -> Response:
    return pages.icon()


def shared_page(call: Call) -> Response:
    """Return a shared report."""
    with call.services.archive.read() as tx:
        row = report_store.find_shared(tx, call.path("share"))
    if row is None or str(row.number) != call.path("report") or row.account != call.path("account"):
        raise not_found("report with this link", "The link may have expired.")
    address = f"{call.services.settings.root_path}/api/v1/shared/{quote(row.share)}"
    title = row.title or row.filename
    if row.kind == "html":
        return _frame_page(call, row, f"{address}/html", title)
    return pages.viewer_page(f"{address}/document", title)


def _frame_page(call: Call, row: report_store.Report, address: str, title: str) -> Response:
    settings = call.services.settings
    if settings.content_url:
        with call.services.archive.read() as tx:
            address = content_url(tx, settings, row, way=SHARED)
    return pages.frame_page(address, title, settings.frame_source)


ROUTES = [
    Route("GET", "/favicon.ico", icon, ANYBODY, "Return the tab icon", answers="image/svg+xml"),
    Route(
        "GET",
        "/{account}/reports/{report}/{share}",
        shared_page,
        PUBLIC,
        "Return a shared report",
        answers="text/html",
        page=True,
    ),
    Route("GET", "/assets/{name}", asset, ANYBODY, "Return a file of the web app", answers="application/octet-stream"),
    # The last route. The app says itself that it has no such page.
    Route("GET", "/{path:page}", shell, ANYBODY, "Return the web app", answers="text/html"),
]
