"""The application: the API's routes and the pages."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.responses import RedirectResponse, Response

from daskscope.server import forms, pages, shell
from daskscope.server.failure import not_found
from daskscope.server.routes import ROUTES
from daskscope.server.routes.reports import BYTES, own_report, report_block, report_document, report_html
from daskscope.server.routes.rows import view_block, view_document
from daskscope.server.routing import ANYBODY, PUBLIC, Call, Route, build_app
from daskscope.server.services import Services
from daskscope.storage import reports as report_store
from daskscope.storage.accounts import list_accounts, roles_of
from daskscope.storage.sessions import find_login


def icon(_: Call) -> Response:
    return pages.icon()


def report_page(call: Call) -> Response:
    """A hosted report, for members."""
    row = own_report(call)
    return _show(row, f"{_root(call)}/{row['account']}/reports/{row['number']}")


def shared_page(call: Call) -> Response:
    """A hosted report, for whoever has the link."""
    with call.services.database.read() as connection:
        row = report_store.find_shared(connection, call.path("share"), call.now_us)
    if row is None or str(row["number"]) != call.path("report") or row["account"] != call.path("account"):
        raise not_found("such report; its link may have ended")
    return _show(row, f"{_root(call)}/api/v1/shared/{quote(row['share'])}")


def _show(row: dict[str, Any], address: str) -> Response:
    title = str(row["title"] or row["filename"])
    return (
        pages.frame_page(f"{address}/html", title)
        if row["kind"] == "html"
        else pages.viewer_page(f"{address}/view", title)
    )


def _root(call: Call) -> str:
    return call.services.settings.root_path


def setup(call: Call) -> Response:
    return forms.setup_page(_root(call))


def login(call: Call) -> Response:
    return forms.login_page(_root(call))


def device(call: Call) -> Response:
    """Confirm the login of a command line; whoever is not logged in does that first."""
    if call.identity.kind != "session":
        code = quote(call.request.query_params.get("code", "")[:20])
        return RedirectResponse(f"{_root(call)}/login?next={quote(f'{_root(call)}/device?code={code}', safe='')}", 303)
    with call.services.database.read() as connection:
        roles = roles_of(connection, call.identity.user)
        names = [account.name for account in list_accounts(connection) if account.id in roles]
        login = find_login(connection, call.request.query_params.get("code", "")[:20], call.now_us)
    return forms.device_page(_root(call), call.identity.name, names, login.label if login else "")


COMPUTATION = "/{account}/clusters/{cluster}/computations/{computation}"
#: What a member's browser is sent; the data of a page lies beside it, so that the account is in the path.
PAGES = [
    Route("GET", "/favicon.ico", icon, ANYBODY, "The icon of a tab", answers="image/svg+xml"),
    Route("GET", "/setup", setup, PUBLIC, "Make the first user", answers="text/html"),
    Route("GET", "/login", login, PUBLIC, "Log in", answers="text/html"),
    Route("GET", "/device", device, PUBLIC, "Confirm the login of a command line", answers="text/html"),
    Route(
        "GET",
        "/{account}/reports/{report}",
        report_page,
        "read",
        "A report, for members",
        answers="text/html",
        page=True,
    ),
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
