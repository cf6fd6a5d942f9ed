"""The application: the API's routes and the pages."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.responses import RedirectResponse, Response

from daskscope.server import forms, pages
from daskscope.server.routes import ROUTES
from daskscope.server.routes.reports import BYTES, is_number, report_block, report_document, report_html
from daskscope.server.routes.rows import view_block, view_document
from daskscope.server.routing import PUBLIC, Call, Route, build_app
from daskscope.server.services import Services
from daskscope.storage import reports as report_store
from daskscope.storage.accounts import find_account, list_accounts, roles_of
from daskscope.storage.clusters import find_cluster


def home(call: Call) -> Response:
    text = f"This is a daskscope server. Its API is described at {call.services.url}/api/v1/openapi.json"
    return pages.message_page("daskscope", text)


def report_page(call: Call) -> Response:
    """A hosted report, for members."""
    row = _member_report(call)
    if row is None:
        return pages.message_page("Not found", "There is no such report, or you have to log in to see it.", 404)
    return _show(row, f"{_root(call)}/{row['account']}/reports/{row['number']}")


def _member_report(call: Call) -> dict[str, Any] | None:
    number = call.path("report")
    if call.identity.kind == "nobody" or not is_number(number):
        return None
    with call.services.database.read() as connection:
        account = find_account(connection, call.path("account"))
        if account is None or account.id not in roles_of(connection, call.identity.user):
            return None
        return report_store.find_report(connection, account.id, int(number), call.now_us)


def shared_page(call: Call) -> Response:
    """A hosted report, for whoever has the link."""
    with call.services.database.read() as connection:
        row = report_store.find_shared(connection, call.path("share"), call.now_us)
    if row is None or str(row["number"]) != call.path("report") or row["account"] != call.path("account"):
        return pages.message_page("Not found", "There is no report under this link, or the link has ended.", 404)
    return _show(row, f"{_root(call)}/api/v1/shared/{quote(row['share'])}")


def cluster_page(call: Call) -> Response:
    """Everything a cluster did, or one of its computations, in the viewer."""
    with call.services.database.read() as connection:
        cluster = call.path("cluster")
        row = find_cluster(connection, call.account.id, cluster, call.now_us, call.lost_after_us)
    if row is None:
        return pages.message_page("Not found", "There is no such cluster in this account.", 404)
    computation = call.request.path_params.get("computation")
    part = f"/computations/{quote(computation, safe='')}" if computation else ""
    address = f"{_root(call)}/{call.account.name}/clusters/{quote(cluster, safe='')}{part}/view"
    return pages.viewer_page(address, row["name"] or cluster)


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
    return forms.device_page(_root(call), call.identity.name, names)


COMPUTATION = "/{account}/clusters/{cluster}/computations/{computation}"
#: What a member's browser is sent; the data of a page lies beside it, so that the account is in the path.
PAGES = [
    Route("GET", "/", home, PUBLIC, "The front page", answers="text/html"),
    Route("GET", "/setup", setup, PUBLIC, "Make the first user", answers="text/html"),
    Route("GET", "/login", login, PUBLIC, "Log in", answers="text/html"),
    Route("GET", "/device", device, PUBLIC, "Confirm the login of a command line", answers="text/html"),
    Route("GET", "/{account}/reports/{report}", report_page, PUBLIC, "A report, for members", answers="text/html"),
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
    Route("GET", "/{account}/clusters/{cluster}", cluster_page, "read", "A cluster", answers="text/html"),
    Route("GET", "/{account}/clusters/{cluster}/view/report.json", view_document, "read", "What the viewer shows"),
    Route(
        "GET",
        "/{account}/clusters/{cluster}/view/blocks/{block}",
        view_block,
        "read",
        "One of its columns",
        answers=BYTES,
    ),
    Route("GET", COMPUTATION, cluster_page, "read", "A computation", answers="text/html"),
    Route("GET", f"{COMPUTATION}/view/report.json", view_document, "read", "What the viewer shows"),
    Route("GET", f"{COMPUTATION}/view/blocks/{{block}}", view_block, "read", "One of its columns", answers=BYTES),
    Route(
        "GET", "/{account}/reports/{report}/{share}", shared_page, PUBLIC, "A report, by its link", answers="text/html"
    ),
]


def application(services: Services) -> Starlette:
    return build_app([*ROUTES, *PAGES], services)
