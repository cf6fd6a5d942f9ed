"""Every route with every kind of unauthorized caller: the right error, in the same format, without foreign data."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.routing import Route as Mounted
from tests.helpers.compared_runs import measured_run
from tests.helpers.hosted import HostedServer, HttpResponse
from tests.helpers.samples import sample_frames, sample_recording
from tests.helpers.services import Hosting, free_port

from daskscope.server.http.content import MEMBER, content_url
from daskscope.server.http.routing import ANYBODY, CONTENT, PROBES, PUBLIC, SERVER_ADMIN, USER, Route
from daskscope.storage.base.database import InvalidInput
from daskscope.storage.catalog.reports import find_report
from daskscope.storage.people.accounts import check_name, find_account
from daskscope.storage.people.sessions import session_id

#: In every text of the account under attack.
MARK = "classified"
CLUSTER = "classified-cluster"
OPEN = (ANYBODY, PUBLIC, CONTENT)
#: Pages without an account.
SIGN_IN_PATHS = {"setup", "login", "device"}
#: Pages of the web app, and paths where it says that there is none.
APP_PATHS = (
    "",
    *SIGN_IN_PATHS,
    "ours",
    "ours/runs",
    "ours/settings",
    "ours/errors/0123",
    "ours/reports/1",
    f"ours/clusters/{CLUSTER}",
    f"ours/clusters/{CLUSTER}/live",
    f"ours/clusters/{CLUSTER}/report",
    f"ours/clusters/{CLUSTER}/computations/c",
    f"ours/clusters/{CLUSTER}/computations/c/what-if",
    "nobody/nothing",
    "no/such/page/at/all",
    "ours/clusters/%2e%2e/%2e%2e/etc/passwd",
    "a/api/clusters",
    "apis/v1/clusters",
    "robots.txt",
)
#: Path parameters whose values exist in every account, and so are not secret.
COMMON = {"user", "session"}
#: Routes that create something in the account of the caller, whatever is in another account.
CREATING = ("PUT /api/v1/baselines/{baseline}/{test}",)


@dataclass(frozen=True)
class Secrets:
    """The account under attack, and the values of its path parameters."""

    server: HostedServer
    values: dict[str, str]
    html: str
    share_html: str

    @property
    def routes(self) -> list[Route]:
        """Return all routes of the running application, so that no route is forgotten."""
        mounted = self.server.app.routes
        assert all(type(one) is Mounted for one in mounted)
        return [inspect.getclosurevars(one.endpoint).nonlocals["route"] for one in mounted if isinstance(one, Mounted)]

    def path(self, route: Route, **other: str) -> str:
        values = {**self.values, **other}
        if "/html" in route.path:
            values |= {"report": self.html, "share": other.get("share", self.share_html)}
        # A new path parameter needs a value here, or the tests would prove nothing.
        path = re.sub(r"{(\w+)(?::\w+)?}", lambda part: values[part[1]], route.path)
        required = {} if route.query is None else _example(route.query)
        if route.path == "/api/v1/compare":
            run = f"{values['cluster']}/{values['computation']}"
            required = {"before": run, "after": run}
        return path + ("?" + "&".join(f"{name}={value}" for name, value in required.items()) if required else "")

    def ask(self, route: Route, more: str = "", **caller: Any) -> HttpResponse:
        path = self.path(route, **caller.pop("values", {}))
        path += (("&" if "?" in path else "?") + more) if more else ""
        body = _example(route.body) if route.body is not None else b"x" if route.content else None
        return self.server.ask(route.method, path, body, whole=route.answers != "text/event-stream", **caller)


def _example(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the smallest valid body."""
    schema = msgspec.json.schema(kind)["$defs"][kind.__name__]
    return {name: _value(schema["properties"][name]) for name in schema.get("required", ())}


def _value(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    return True if schema.get("type") == "boolean" else "x" * max(1, schema.get("minLength", 1))


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


@pytest.fixture(scope="module")
def secrets(hosted_once: Hosting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secrets]:
    # Its cluster is not lost while the tests run: another recorder could then deliver its data.
    with hosted_once(tmp_path_factory.mktemp("walk"), login=True, lost_after=3_600) as server:
        server.make_account("ours", olga="owner", vera="viewer")
        server.make_account("theirs", mallory="owner")
        yield filled(server, "olga", "ours")


@pytest.fixture(scope="module")
def local(hosted_once: Hosting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secrets]:
    """The only account of a server without sign-in."""
    with hosted_once(tmp_path_factory.mktemp("local")) as server:
        yield filled(server, "local", "local")


@pytest.fixture(scope="module")
def apart(hosted_once: Hosting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secrets]:
    """An account of a server that serves uploaded HTML from another origin."""
    port = free_port()
    urls = {"url": f"http://127.0.0.1:{port}", "content_url": f"http://localhost:{port}"}
    with hosted_once(tmp_path_factory.mktemp("apart"), login=True, port=port, **urls) as server:
        server.make_account("ours", olga="owner", vera="viewer")
        server.make_account("theirs", mallory="owner")
        yield filled(server, "olga", "ours")


def filled(server: HostedServer, user: str, account: str) -> Secrets:
    """Return a server's account filled with one of everything."""
    owner = server.make_token(user, account)
    assert server.send(sample_frames(CLUSTER, MARK), token=owner).status == 200

    def upload(data: bytes, visibility: str) -> dict[str, Any]:
        answer = server.ask("POST", f"/api/v1/reports?title={MARK}&visibility={visibility}", data, token=owner)
        assert answer.status == 201
        made: dict[str, Any] = answer.json()
        return made

    kept = {"runs": [measured_run(1).to_dict()]}
    assert server.ask("PUT", f"/api/v1/baselines/main/{MARK}-test", kept, token=owner).status == 200
    page = f"<!doctype html><p>{MARK}".encode()
    recording, html = upload(sample_recording(MARK), "private"), upload(page, "private")
    shared, shared_html = upload(sample_recording(MARK), "public"), upload(page, "public")
    document = server.ask("GET", f"/api/v1/reports/{recording['id']}/document/report.json", token=owner)
    block = re.search(r'"block":\s*"([\w.-]+)"', document.text)
    assert block is not None
    tokens = server.ask("GET", "/api/v1/tokens", token=owner).json()["items"]
    asset = re.search(r"/assets/([\w.-]+)", server.ask("GET", "/").text)
    assert asset is not None
    values = {
        "account": account,
        "address": signed_address(server, account, int(html["id"])),
        "cluster": CLUSTER,
        "computation": f"{MARK}-comp",
        "baseline": "main",
        "block": block[1],
        "fingerprint": server.ask("GET", "/api/v1/errors", token=owner).json()["items"][0]["fingerprint"],
        "name": asset[1],
        "path": f"{account}/clusters/{CLUSTER}",
        "report": str(recording["id"]),
        "session": session_id(server.make_session(user)),
        "share": shared["url"].rpartition("/")[2],
        "test": f"{MARK}-test",
        "token": str(tokens[0]["id"]),
        "user": user,
    }
    return Secrets(server, values, str(html["id"]), shared_html["url"].rpartition("/")[2])


def signed_address(server: HostedServer, account: str, report: int) -> str:
    """Return what opens uploaded HTML on its own origin for a minute."""
    with server.services.archive.read() as tx:
        found = find_account(tx, account)
        row = find_report(tx, found.id, report) if found is not None else None
        assert row is not None
        return content_url(tx, server.settings, row, way=MEMBER).rpartition("/")[2]


@pytest.fixture(autouse=True)
def account_stays_unchanged(secrets: Secrets) -> Iterator[None]:
    """Check that refused requests leave the account unchanged."""
    before = account_data(secrets)
    yield
    assert account_data(secrets) == before


def account_data(secrets: Secrets) -> dict[str, Any]:
    server = secrets.server
    session = server.make_session("olga")
    lists = ("reports", "baselines", "computations", "exceptions", "errors", "members", "preferences")
    found = {name: server.ask("GET", f"/api/v1/{name}", session=session).json() for name in lists}
    tokens = server.ask("GET", "/api/v1/tokens", session=session).json()["items"]
    assert secrets.values["token"] in [str(token["id"]) for token in tokens]
    clusters = server.ask("GET", "/api/v1/clusters", session=session).json()["items"]
    return {**found, "clusters": [(item["id"], item["name"], item["n_tasks"]) for item in clusters]}


def check_refused(route: Route, answer: HttpResponse, *statuses: int) -> None:
    """Check that the response is one of these errors, in the common format, without data of the account."""
    assert answer.status in statuses, (name_of(route), answer.status, answer.text[:300])
    assert answer.code, name_of(route)
    assert MARK not in answer.text.replace(CLUSTER, ""), name_of(route)
    assert answer.headers["Cache-Control"] == "no-store"


class TestRoutesAreReachable:
    def test_an_owner_can_read_every_route(self, secrets: Secrets) -> None:
        owner = secrets.server.make_session("olga")
        for route in secrets.routes:
            if route.method == "GET" and route.access not in (USER, SERVER_ADMIN, *OPEN):
                answer = secrets.ask(route, "account=ours", session=owner)
                assert answer.status == 200, (name_of(route), answer.text[:200])
        secrets.server.ask("DELETE", "/api/v1/session", session=owner)

    def test_a_share_link_works_without_a_token(self, secrets: Secrets) -> None:
        for route in secrets.routes:
            if "{share}" in route.path and route.path.startswith("/api"):
                assert secrets.ask(route).status == 200, name_of(route)

    def test_routes_are_unique(self, secrets: Secrets) -> None:
        declared = [name_of(route) for route in secrets.routes]
        assert len(declared) == len(set(declared))

    def test_every_route_declares_its_access(self, secrets: Secrets) -> None:
        assert {route.access for route in secrets.routes} <= {
            *OPEN,
            USER,
            SERVER_ADMIN,
            "ingest",
            "read",
            "write",
            "admin",
            "tokens",
        }


class TestAnonymous:
    def test_without_a_token_only_public_routes_work(self, secrets: Secrets) -> None:
        for route in secrets.routes:
            answer = secrets.ask(route, values={"share": "a" * 22})
            if route.access in OPEN:
                assert MARK not in answer.text, name_of(route)
                assert answer.status < 500
            else:
                check_refused(route, answer, 401)
                assert answer.headers["WWW-Authenticate"] == "Bearer"

    def test_a_guessed_link_is_not_found(self, secrets: Secrets) -> None:
        for route in (route for route in secrets.routes if "{share}" in route.path):
            for guess in ("a" * 22, "%00", "%2e%2e", "%C3%A9", "'--", "%25", "x" * 5_000):
                check_refused(route, secrets.ask(route, values={"share": guess}), 404)

    def test_the_link_of_one_report_opens_no_other(self, secrets: Secrets) -> None:
        path = f"/ours/reports/{secrets.html}/{secrets.share_html}"
        assert secrets.server.ask("GET", path).status == 404

    @pytest.mark.parametrize("kind", ["malformed", "cut off", "expired", "revoked", "empty", "another scheme"])
    def test_an_invalid_token_is_refused(self, secrets: Secrets, kind: str) -> None:
        server = secrets.server
        good = server.make_token("olga", "ours")
        number = max(item["id"] for item in server.ask("GET", "/api/v1/tokens", token=good).json()["items"])
        if kind == "expired":
            bad = server.make_token("olga", "ours", expires_us=server.services.archive.clock() - 1)
        else:
            bad = {"malformed": "dscope_nonsense", "cut off": good[:-3], "empty": " "}.get(kind, good)
        server.ask("DELETE", f"/api/v1/tokens/{number}", token=good)
        header = {"Authorization": f"{'Basic' if kind == 'another scheme' else 'Bearer'} {bad}"}
        for route in (route for route in secrets.routes if route.access not in (ANYBODY, CONTENT)):
            answer = secrets.ask(route, headers=header)
            check_refused(route, answer, 401)
            assert bad.strip() == "" or bad not in answer.text


class TestWithoutSignIn:
    """Every user of the machine reaches the port, but only one has the secret."""

    def test_the_secret_opens_every_route(self, local: Secrets) -> None:
        for route in (route for route in local.routes if route.method == "GET" and route.access not in (*OPEN, USER)):
            answer = local.ask(route)
            assert answer.status == 200, (name_of(route), answer.text[:200])

    @pytest.mark.parametrize(
        "kind", ["no secret", "wrong secret", "secret of another server", "cookie of another port", "cookie alone"]
    )
    def test_another_user_of_the_machine_gets_nothing(self, local: Secrets, kind: str, tmp_path: Path) -> None:
        server, before = local.server, local_data(local.server)
        with HostedServer(tmp_path) as another:
            foreign = another.services.local_secret
        own = server.services.local_secret
        assert own is not None
        assert foreign is not None
        cookie = f"{server.cookie_name}={{}}"
        callers: dict[str, dict[str, Any]] = {
            "no secret": {"secret": ""},
            "wrong secret": {"secret": server.secret[:-1] + "~"},
            "secret of another server": {"secret": foreign.value},
            "cookie of another port": {
                "secret": "",
                "headers": {"Cookie": cookie.format(foreign.cookie), "Daskscope-Page": foreign.page},
            },
            "cookie alone": {"secret": "", "headers": {"Cookie": cookie.format(own.cookie)}},
        }
        caller = callers[kind]
        for route in local.routes:
            headers = {"Origin": server.origin, **caller.get("headers", {})}
            answer = local.ask(route, values={"share": "a" * 22}, **{**caller, "headers": headers})
            if route.access in (ANYBODY, CONTENT) or (route.access == PUBLIC and not caller["secret"]):
                assert MARK not in answer.text, name_of(route)
                assert answer.status < 500
            else:
                check_refused(route, answer, 401)
                assert answer.code == "secret_needed"
                assert answer.headers["WWW-Authenticate"] == "Bearer"
                assert server.secret not in answer.text
        assert local_data(server) == before

    def test_a_share_link_works_without_the_secret(self, local: Secrets) -> None:
        for route in local.routes:
            if "{share}" in route.path and route.path.startswith("/api"):
                assert local.ask(route, secret="").status == 200, name_of(route)

    def test_an_ingest_token_cannot_read_or_change_anything(self, local: Secrets) -> None:
        token = local.server.make_token("local", "local", "ingest")
        for route in (route for route in local.routes if route.access not in (*OPEN, USER, SERVER_ADMIN, "ingest")):
            check_refused(route, local.ask(route, token=token), 403)


def local_data(server: HostedServer) -> dict[str, Any]:
    found = {name: server.ask("GET", f"/api/v1/{name}").json() for name in ("reports", "baselines", "errors", "tokens")}
    clusters = server.ask("GET", "/api/v1/clusters").json()["items"]
    return {**found, "clusters": [(item["id"], item["name"], item["n_tasks"]) for item in clusters]}


class TestContentHost:
    """On the origin of uploaded HTML there is one route besides probes, whatever credentials a request has."""

    @pytest.mark.parametrize(
        "kind", ["nobody", "owner's token", "owner's session", "foreign token", "ingest token", "malformed token"]
    )
    def test_every_other_route_is_not_found(self, apart: Secrets, kind: str) -> None:
        server = apart.server
        callers: dict[str, dict[str, str]] = {
            "nobody": {},
            "owner's token": {"token": server.make_token("olga", "ours")},
            "owner's session": {"session": server.make_session("olga")},
            "foreign token": {"token": server.make_token("mallory", "theirs")},
            "ingest token": {"token": server.make_token("olga", "ours", "ingest")},
            "malformed token": {"token": "dscope_nonsense"},
        }
        host, seen = {"Host": f"localhost:{server.port}"}, 0
        for route in apart.routes:
            answer = apart.ask(route, headers=host, **callers[kind])
            if route.path in PROBES:
                assert answer.status == 200, name_of(route)
            elif route.access == CONTENT:
                seen += 1
                address = signed_address(server, "ours", int(apart.html))
                answer = apart.ask(route, values={"address": address}, headers=host, **callers[kind])
                assert (answer.status, MARK in answer.text) == (200, True)
                wrong = apart.ask(route, values={"address": address[:-1]}, headers=host, **callers[kind])
                check_refused(route, wrong, 404)
            else:
                check_refused(route, answer, 404)
            assert answer.headers["Set-Cookie"] is None
        assert seen == 1

    def test_its_route_is_not_found_at_the_app(self, apart: Secrets) -> None:
        owner = apart.server.make_session("olga")
        for route in (route for route in apart.routes if route.access == CONTENT):
            address = signed_address(apart.server, "ours", int(apart.html))
            check_refused(route, apart.ask(route, values={"address": address}, session=owner), 404)

    def test_the_app_itself_works(self, apart: Secrets) -> None:
        owner = apart.server.make_session("olga")
        for route in apart.routes:
            if route.method == "GET" and route.access not in (USER, SERVER_ADMIN, *OPEN):
                answer = apart.ask(route, "account=ours", session=owner)
                assert answer.status == (303 if route.path.endswith("/html") else 200), name_of(route)


class TestForeignAccount:
    def test_the_token_of_another_account_finds_nothing(self, secrets: Secrets) -> None:
        token = secrets.server.make_token("mallory", "theirs")
        for route in (route for route in secrets.routes if route.access not in OPEN):
            answer = secrets.ask(route, token=token)
            named_parts = set(re.findall(r"{(\w+)}", route.path)) - COMMON
            if "account" in named_parts or route.access == SERVER_ADMIN:
                check_refused(route, answer, 403)
            elif named_parts:
                # The example is no baseline.
                check_refused(route, answer, 400 if name_of(route) in CREATING else 404)
            else:
                assert MARK not in answer.text, name_of(route)
                assert answer.status < 500

    def test_naming_the_account_does_not_help(self, secrets: Secrets) -> None:
        token, session = secrets.server.make_token("mallory", "theirs"), secrets.server.make_session("mallory")
        for route in (route for route in secrets.routes if route.access not in (*OPEN, USER)):
            for caller in ({"token": token}, {"session": session}):
                check_refused(route, secrets.ask(route, "account=ours", **caller), 403)

    def test_naming_their_own_account_in_the_query_does_not_help(self, secrets: Secrets) -> None:
        session = secrets.server.make_session("mallory")
        for route in (route for route in secrets.routes if "{account}" in route.path and route.access not in OPEN):
            check_refused(route, secrets.ask(route, "account=theirs", session=session), 403)

    def test_the_session_of_another_account_finds_nothing(self, secrets: Secrets) -> None:
        session = secrets.server.make_session("mallory")
        for route in (route for route in secrets.routes if route.access not in (*OPEN, USER, SERVER_ADMIN)):
            named_parts = set(re.findall(r"{(\w+)}", route.path)) - COMMON
            answer = secrets.ask(route, session=session)
            if named_parts:
                created = 400 if name_of(route) in CREATING else 404
                check_refused(route, answer, 403 if "account" in named_parts else created)
            else:
                assert MARK not in answer.text, name_of(route)

    def test_a_missing_page_is_an_html_page(self, secrets: Secrets) -> None:
        pages = [route for route in secrets.routes if route.page]
        assert pages
        for route in pages:
            answer = secrets.ask(route, values={"share": "a" * 22}, headers={"Accept": "text/html"})
            assert answer.status == 404
            assert answer.headers["Content-Type"].startswith("text/html")
            assert MARK not in answer.text

    def test_the_web_app_is_the_same_for_all_callers(self, secrets: Secrets) -> None:
        """It is the same for every caller, and gets its data from the API."""
        sessions = ("", secrets.server.make_session("olga"), secrets.server.make_session("mallory"))
        answers = {
            (answer.status, answer.headers["Content-Type"], answer.body)
            for path in APP_PATHS
            for answer in (secrets.server.ask("GET", f"/{path}", session=session) for session in sessions)
        }
        assert [(*seen, MARK.encode() in body) for *seen, body in answers] == [(200, "text/html; charset=utf-8", False)]

    def test_paths_of_the_api_and_of_files_are_no_pages(self, secrets: Secrets) -> None:
        for path in (
            "api/",
            "api/v1",
            "api/v2/clusters",
            "api/v1/nothing",
            "api/v1/clusters/a/b/c",
            "api//v1/me",
            "a/b/api/v1/me",
        ):
            answer = secrets.server.ask("GET", f"/{path}", headers={"Accept": "text/html"})
            assert (answer.status, answer.code) == (404, "not_found"), path
            assert answer.headers["Content-Type"] == "application/json"
        for path in ("assets/", "assets/nothing.js", "assets/a/b.js", "assets/..%2fapp.html", "assets/../app.html"):
            answer = secrets.server.ask("GET", f"/{path}", headers={"Accept": "text/html"})
            assert (answer.status, answer.code) == (404, "not_found"), path

    def test_the_wrong_method_is_not_the_web_app(self, secrets: Secrets) -> None:
        for method, path, status in (
            ("GET", "/api/v1/sql", 405),
            ("POST", "/api/v1/nothing", 404),
            ("POST", "/ours/clusters", 405),
            ("DELETE", "/nothing/at/all", 405),
            ("POST", "/assets/a/b.js", 404),
        ):
            answer = secrets.server.ask(method, path)
            assert (answer.status, bool(answer.code)) == (status, True), (method, path)

    def test_head_is_answered_like_get(self, secrets: Secrets) -> None:
        for path in ("", "ours/clusters/c/live", "no/such/page/at/all"):
            answer = secrets.server.ask("HEAD", f"/{path}")
            assert (answer.status, answer.body) == (200, b"")
        assert secrets.server.ask("HEAD", "/api/v1/nothing").status == 404

    def test_no_account_has_the_name_of_a_path_of_the_server(self, secrets: Secrets) -> None:
        first = {route.path.split("/")[1] for route in secrets.routes}
        own = {name for name in first if not name.startswith("{")} | SIGN_IN_PATHS
        assert {"api", "assets", "healthz", "login"} <= own
        for name in own:
            with pytest.raises(InvalidInput):
                check_name(name, "account")


#: Routes that change nothing, although their parameters are in a body.
READING = ("/api/v1/sql",)


class TestInsufficientRights:
    @pytest.mark.parametrize("cluster", ["", CLUSTER], ids=["any cluster", "one cluster"])
    def test_an_ingest_token_cannot_read_or_change_anything(self, secrets: Secrets, cluster: str) -> None:
        token = secrets.server.make_token("olga", "ours", "ingest", cluster=cluster)
        for route in (route for route in secrets.routes if route.access not in (*OPEN, USER, "ingest")):
            check_refused(route, secrets.ask(route, token=token), 403)

    def test_a_cluster_token_cannot_create_tokens_or_send_to_other_clusters(self, secrets: Secrets) -> None:
        token = secrets.server.make_token("olga", "ours", "ingest", cluster="another")
        server = secrets.server
        assert server.ask("POST", "/api/v1/ingest-tokens", {"cluster": CLUSTER}, token=token).code == "forbidden"
        assert server.send(sample_frames(CLUSTER, "forged"), token=token).code == "forbidden"
        assert server.send(sample_frames("unknown"), token=token).code == "forbidden"

    def test_a_viewer_can_only_read_with_any_token(self, secrets: Secrets) -> None:
        token, session = secrets.server.make_token("vera", "ours"), secrets.server.make_session("vera")
        for route in (route for route in secrets.routes if route.access not in (*OPEN, USER)):
            for caller in ({"token": token}, {"session": session}):
                answer = secrets.ask(route, **caller)
                if route.access == "read" and route.path in READING:
                    # The example is no SQL.
                    check_refused(route, answer, 400)
                elif route.access == "read" and route.method == "GET":
                    assert answer.status == 200, (name_of(route), answer.text[:200])
                elif route.access == "read" and "token" in caller and route.path == "/api/v1/tokens/{token}":
                    # A token that only reads revokes itself and no other.
                    check_refused(route, answer, 403)
                elif route.access == "read":
                    # They can change only their own things, and these belong to the owner.
                    check_refused(route, answer, 404)
                else:
                    check_refused(route, answer, 403)

    def test_an_owner_of_an_account_does_not_administer_the_server(self, secrets: Secrets) -> None:
        token, session = secrets.server.make_token("olga", "ours"), secrets.server.make_session("olga")
        for route in (route for route in secrets.routes if route.access == SERVER_ADMIN):
            check_refused(route, secrets.ask(route, token=token), 403)
            check_refused(route, secrets.ask(route, session=session), 403)

    def test_routes_for_users_refuse_tokens(self, secrets: Secrets) -> None:
        token = secrets.server.make_token("olga", "ours")
        for route in (route for route in secrets.routes if route.access == USER and route.method != "GET"):
            check_refused(route, secrets.ask(route, token=token), 403)


class TestHeaders:
    def test_responses_forbid_sniffing_and_shared_caching(self, secrets: Secrets) -> None:
        owner = secrets.server.make_session("olga")
        for route in (route for route in secrets.routes if route.method == "GET"):
            headers = secrets.ask(route, "account=ours", session=owner).headers
            assert headers["X-Content-Type-Options"] == "nosniff" or route.access == SERVER_ADMIN, name_of(route)
            # The icon and the web app's versioned files are public.
            kept = ("public, max-age=86400", "public, max-age=31536000, immutable") if route.access == ANYBODY else ()
            assert headers["Cache-Control"] in ("no-store", "private, no-cache", *kept), name_of(route)

    def test_uploaded_content_is_sandboxed_on_every_route(self, secrets: Secrets) -> None:
        owner, seen = secrets.server.make_session("olga"), 0
        for route in (
            route for route in secrets.routes if route.method == "GET" and route.access not in (USER, SERVER_ADMIN)
        ):
            answer = secrets.ask(route, "account=ours", session=owner)
            kind = answer.headers["Content-Type"].partition(";")[0]
            policy = answer.headers["Content-Security-Policy"] or ""
            if kind == "application/octet-stream" or route.path.endswith("/html"):
                seen += 1
                assert policy.startswith("sandbox"), name_of(route)
                assert "allow-same-origin" not in policy
                assert "default-src 'none'" in policy
                assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
            elif kind == "text/html":
                # Our pages run only scripts with a known hash, and cannot be framed.
                assert "default-src 'none'" in policy
                assert "frame-ancestors 'none'" in policy, name_of(route)
                assert not re.search(r"script-src[^;]*unsafe", policy), name_of(route)
        assert seen >= 7
