"""The application: the API's routes and the pages."""

from __future__ import annotations

from urllib.parse import quote

from starlette.applications import Starlette
from starlette.responses import Response

from daskscope.server import pages, shell
from daskscope.server.failure import not_found
from daskscope.server.routes import ROUTES
from daskscope.server.routes.reports import BYTES, report_block, report_document, report_html
from daskscope.server.routes.rows import BlockQuery, view_block, view_document
from daskscope.server.routing import ANYBODY, PUBLIC, Call, Route, build_app
from daskscope.server.services import Services
from daskscope.storage import reports as report_store


def icon(_: Call) -> Response:
    return pages.icon()


def shared_page(call: Call) -> Response:
    """A hosted report, for whoever has the link."""
    with call.services.database.read() as connection:
        row = report_store.find_shared(connection, call.path("share"), call.now_us)
    if row is None or str(row["number"]) != call.path("report") or row["account"] != call.path("account"):
        raise not_found("such report; its link may have ended")
    address = f"{call.services.settings.root_path}/api/v1/shared/{quote(row['share'])}"
    title = str(row["title"] or row["filename"])
    if row["kind"] == "html":
        return pages.frame_page(f"{address}/html", title)
    return pages.viewer_page(f"{address}/view", title)


COMPUTATION = "/{account}/clusters/{cluster}/computations/{computation}"
#: What a member's browser is sent; the data of a page lies beside it, so that the account is in the path.
PAGES = [
    Route("GET", "/favicon.ico", icon, ANYBODY, "The icon of a tab", answers="image/svg+xml"),
    Route(
        "GET", "/{account}/reports/{report}/html", report_html, "read", "Its HTML, in a sandbox", answers="text/html"
    ),
    Route("GET", "/{account}/reports/{report}/view/report.json", report_document, "read", "What the viewer shows"),
    Route(
        "GET",
        "/{account}/reports/{report}/view/blocks/{block}",
        report_block,
        "read",
        "One of its columns",
        answers=BYTES,
    ),
    Route(
        "GET",
        "/{account}/clusters/{cluster}/view/report.json",
        view_document,
        "read",
        "What the viewer shows",
        heavy=True,
    ),
    Route(
        "GET",
        "/{account}/clusters/{cluster}/view/blocks/{block}",
        view_block,
        "read",
        "One of its columns",
        query=BlockQuery,
        answers=BYTES,
        heavy=True,
    ),
    Route("GET", f"{COMPUTATION}/view/report.json", view_document, "read", "What the viewer shows", heavy=True),
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
    Route(
        "GET",
        "/{account}/reports/{report}/{share}",
        shared_page,
        PUBLIC,
        "A report, by its link",
        answers="text/html",
        page=True,
    ),
]


def application(services: Services) -> Starlette:
    return build_app([*ROUTES, *PAGES, *shell.ROUTES], services)
