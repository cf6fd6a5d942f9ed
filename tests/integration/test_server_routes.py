"""Every route with every kind of wrong caller: the right refusal, in the one shape, with nothing of anybody else in it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from starlette.routing import Route as Mounted
from tests.services import Hosting

from daskscope.server.routing import ANYBODY, PUBLIC, SERVER_ADMIN, USER, Route
from daskscope.testing.hosted import Answer, HostedServer
from daskscope.testing.samples import sample_frames, sample_recording

#: In every text of the account that others ask for.
MARK = "classified"
CLUSTER = "classified-cluster"
OPEN = (ANYBODY, PUBLIC)
#: Parts of a path that everybody has of their own: a name in them is nobody's secret.
COMMON = {"user"}


@dataclass(frozen=True)
class Secrets:
    """The account everybody is after, and what stands in its paths."""

    server: HostedServer
    values: dict[str, str]
    html: str
    share_html: str

    @property
    def routes(self) -> list[Route]:
        """All that the running application answers: taken from the application itself, so that no route is forgotten."""
        mounted = self.server.app.routes
        assert all(type(one) is Mounted for one in mounted)
        return [inspect.getclosurevars(one.endpoint).nonlocals["route"] for one in mounted if isinstance(one, Mounted)]

    def path(self, route: Route, **other: str) -> str:
        values = {**self.values, **other}
        if route.path.endswith("/html"):
            values |= {"report": self.html, "share": other.get("share", self.share_html)}
        # A new kind of part must be given a value here, or the walk would prove nothing.
        path = re.sub(r"{(\w+)}", lambda part: values[part[1]], route.path)
        required = {} if route.query is None else _example(route.query)
        return path + ("?" + "&".join(f"{name}={value}" for name, value in required.items()) if required else "")

    def ask(self, route: Route, more: str = "", **caller: Any) -> Answer:
        path = self.path(route, **caller.pop("values", {}))
        path += (("&" if "?" in path else "?") + more) if more else ""
        body = _example(route.body) if route.body is not None else b"x" if route.content else None
        return self.server.ask(route.method, path, body, whole=route.answers != "text/event-stream", **caller)


def _example(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The least that is right."""
    schema = msgspec.json.schema(kind)["$defs"][kind.__name__]
    return {name: _value(schema["properties"][name]) for name in schema.get("required", ())}


def _value(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    return True if schema.get("type") == "boolean" else "x" * max(1, schema.get("minLength", 1))


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


@pytest.fixture(scope="module")
def secrets(hosted_once: Hosting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secrets]:
    with hosted_once(tmp_path_factory.mktemp("walk"), login=True) as server:
        server.make_account("ours", olga="owner", vera="viewer")
        server.make_account("theirs", mallory="owner")
        owner = server.make_token("olga", "ours")
        assert server.send(sample_frames(CLUSTER, MARK), token=owner).status == 200

        def upload(data: bytes, visibility: str) -> dict[str, Any]:
            answer = server.ask("POST", f"/api/v1/reports?title={MARK}&visibility={visibility}", data, token=owner)
            assert answer.status == 201
            made: dict[str, Any] = answer.json()
            return made

        page = f"<!doctype html><p>{MARK}".encode()
        recording, html = upload(sample_recording(MARK), "private"), upload(page, "private")
        shared, shared_html = upload(sample_recording(MARK), "public"), upload(page, "public")
        document = server.ask("GET", f"/api/v1/reports/{recording['id']}/view/report.json", token=owner)
        block = re.search(r'"block":\s*"([\w.-]+)"', document.text)
        assert block is not None
        tokens = server.ask("GET", "/api/v1/tokens", token=owner).json()["items"]
        asset = re.search(r"/assets/([\w.-]+)", server.ask("GET", "/").text)
        assert asset is not None
        values = {
            "account": "ours",
            "cluster": CLUSTER,
            "computation": f"{MARK}-comp",
            "block": block[1],
            "fingerprint": server.ask("GET", "/api/v1/errors", token=owner).json()["items"][0]["fingerprint"],
            "name": asset[1],
            "report": str(recording["id"]),
            "section": "clusters",
            "share": shared["url"].rpartition("/")[2],
            "token": str(tokens[0]["id"]),
            "user": "olga",
        }
        yield Secrets(server, values, str(html["id"]), shared_html["url"].rpartition("/")[2])


@pytest.fixture(autouse=True)
def nothing_changes(secrets: Secrets) -> Iterator[None]:
    """Whatever was refused, the account is as it was."""
    before = everything(secrets)
    yield
    assert everything(secrets) == before


def everything(secrets: Secrets) -> dict[str, Any]:
    server = secrets.server
    session = server.make_session("olga")
    lists = ("reports", "computations", "exceptions", "errors", "members", "preferences")
    found = {name: server.ask("GET", f"/api/v1/{name}", session=session).json() for name in lists}
    tokens = server.ask("GET", "/api/v1/tokens", session=session).json()["items"]
    assert secrets.values["token"] in [str(token["id"]) for token in tokens]
    clusters = server.ask("GET", "/api/v1/clusters", session=session).json()["items"]
    return {**found, "clusters": [(item["id"], item["name"], item["n_tasks"]) for item in clusters]}


def check(route: Route, answer: Answer, *statuses: int) -> None:
    """The refusal is one of these, says so in the one shape, and tells nothing."""
    assert answer.status in statuses, (named(route), answer.status, answer.text[:300])
    assert answer.code, named(route)
    assert MARK not in answer.text.replace(CLUSTER, ""), named(route)
    assert answer.headers["Cache-Control"] == "no-store"


class TestTheWalkMeansSomething:
    def test_everything_that_can_be_read_is_there_for_its_owner(self, secrets: Secrets) -> None:
        owner = secrets.server.make_session("olga")
        for route in secrets.routes:
            if route.method == "GET" and route.access not in (USER, SERVER_ADMIN, *OPEN):
                answer = secrets.ask(route, "account=ours", session=owner)
                assert answer.status == 200, (named(route), answer.text[:200])
        secrets.server.ask("DELETE", "/api/v1/session", session=owner)

    def test_what_has_a_link_is_there_for_everybody_who_has_it(self, secrets: Secrets) -> None:
        for route in secrets.routes:
            if "{share}" in route.path and route.path.startswith("/api"):
                assert secrets.ask(route).status == 200, named(route)

    def test_no_two_routes_answer_to_the_same(self, secrets: Secrets) -> None:
        declared = [named(route) for route in secrets.routes]
        assert len(declared) == len(set(declared))

    def test_every_route_says_who_may_call_it(self, secrets: Secrets) -> None:
        assert {route.access for route in secrets.routes} <= {
            *OPEN,
            USER,
            SERVER_ADMIN,
            "ingest",
            "read",
            "write",
            "admin",
        }


class TestNobody:
    def test_without_a_token_everything_but_the_door_is_closed(self, secrets: Secrets) -> None:
        for route in secrets.routes:
            answer = secrets.ask(route, values={"share": "a" * 22})
            if route.access in OPEN:
                assert MARK not in answer.text, named(route)
                assert answer.status < 500
            else:
                check(route, answer, 401)
                assert answer.headers["WWW-Authenticate"] == "Bearer"

    def test_a_guessed_link_shows_nothing(self, secrets: Secrets) -> None:
        for route in (route for route in secrets.routes if "{share}" in route.path):
            for guess in ("a" * 22, "%00", "%2e%2e", "%C3%A9", "'--", "%25", "x" * 5_000):
                check(route, secrets.ask(route, values={"share": guess}), 404)

    def test_the_link_of_one_report_opens_no_other(self, secrets: Secrets) -> None:
        path = f"/ours/reports/{secrets.html}/{secrets.share_html}"
        assert secrets.server.ask("GET", path).status == 404

    @pytest.mark.parametrize("kind", ["malformed", "cut off", "expired", "revoked", "empty", "another scheme"])
    def test_a_token_that_is_no_good_opens_nothing(self, secrets: Secrets, kind: str) -> None:
        server = secrets.server
        good = server.make_token("olga", "ours")
        number = max(item["id"] for item in server.ask("GET", "/api/v1/tokens", token=good).json()["items"])
        if kind == "expired":
            bad = server.make_token("olga", "ours", expires_us=server.services.clock() - 1)
        else:
            bad = {"malformed": "dscope_nonsense", "cut off": good[:-3], "empty": " "}.get(kind, good)
        server.ask("DELETE", f"/api/v1/tokens/{number}", token=good)
        header = {"Authorization": f"{'Basic' if kind == 'another scheme' else 'Bearer'} {bad}"}
        for route in (route for route in secrets.routes if route.access != ANYBODY):
            answer = secrets.ask(route, headers=header)
            check(route, answer, 401)
            assert bad.strip() == "" or bad not in answer.text


class TestSomebodyElse:
    def test_the_token_of_another_account_finds_nothing(self, secrets: Secrets) -> None:
        token = secrets.server.make_token("mallory", "theirs")
        for route in (route for route in secrets.routes if route.access not in OPEN):
            answer = secrets.ask(route, token=token)
            named_parts = set(re.findall(r"{(\w+)}", route.path)) - COMMON
            if "account" in named_parts or route.access == SERVER_ADMIN:
                check(route, answer, 403)
            elif named_parts:
                check(route, answer, 404)
            else:
                assert MARK not in answer.text, named(route)
                assert answer.status < 500

    def test_naming_the_account_does_not_help(self, secrets: Secrets) -> None:
        token, session = secrets.server.make_token("mallory", "theirs"), secrets.server.make_session("mallory")
        for route in (route for route in secrets.routes if route.access not in (*OPEN, USER)):
            for caller in ({"token": token}, {"session": session}):
                check(route, secrets.ask(route, "account=ours", **caller), 403)

    def test_naming_their_own_account_beside_ours_does_not_help(self, secrets: Secrets) -> None:
        session = secrets.server.make_session("mallory")
        for route in (route for route in secrets.routes if "{account}" in route.path and route.access not in OPEN):
            check(route, secrets.ask(route, "account=theirs", session=session), 403)

    def test_the_session_of_another_account_finds_nothing(self, secrets: Secrets) -> None:
        session = secrets.server.make_session("mallory")
        for route in (route for route in secrets.routes if route.access not in (*OPEN, USER, SERVER_ADMIN)):
            named_parts = set(re.findall(r"{(\w+)}", route.path)) - COMMON
            answer = secrets.ask(route, session=session)
            if named_parts:
                check(route, answer, 403 if "account" in named_parts else 404)
            else:
                assert MARK not in answer.text, named(route)

    def test_a_page_says_it_to_people_as_a_page(self, secrets: Secrets) -> None:
        pages = [route for route in secrets.routes if route.page]
        assert pages
        for route in pages:
            answer = secrets.ask(route, values={"share": "a" * 22}, headers={"Accept": "text/html"})
            assert answer.status == 404
            assert answer.headers["Content-Type"].startswith("text/html")
            assert MARK not in answer.text

    def test_the_web_app_is_the_same_for_everybody(self, secrets: Secrets) -> None:
        """It is sent to whoever asks; what it shows it has to ask the API for."""
        callers = [
            {},
            {"session": secrets.server.make_session("olga")},
            {"session": secrets.server.make_session("mallory")},
        ]
        app = [route for route in secrets.routes if route.access == ANYBODY and route.answers == "text/html"]
        answers = {
            (answer.status, answer.body) for r in app for answer in (secrets.ask(r, **caller) for caller in callers)
        }
        assert [(status, MARK.encode() in body) for status, body in answers] == [(200, False)]
        assert len(app) > 8


class TestTooLittle:
    @pytest.mark.parametrize("cluster", ["", CLUSTER], ids=["any cluster", "one cluster"])
    def test_a_token_for_ingest_reads_and_changes_nothing(self, secrets: Secrets, cluster: str) -> None:
        token = secrets.server.make_token("olga", "ours", "ingest", cluster=cluster)
        for route in (route for route in secrets.routes if route.access not in (*OPEN, USER, "ingest")):
            check(route, secrets.ask(route, token=token), 403)

    def test_a_token_of_one_cluster_makes_no_others_and_sends_to_no_other(self, secrets: Secrets) -> None:
        token = secrets.server.make_token("olga", "ours", "ingest", cluster="another")
        server = secrets.server
        assert server.ask("POST", "/api/v1/ingest-tokens", {"cluster": CLUSTER}, token=token).code == "forbidden"
        assert server.send(sample_frames(CLUSTER, "forged"), token=token).code == "forbidden"
        assert server.send(sample_frames("never heard of"), token=token).code == "forbidden"

    def test_a_viewer_reads_and_changes_nothing_whatever_the_token_says(self, secrets: Secrets) -> None:
        token, session = secrets.server.make_token("vera", "ours"), secrets.server.make_session("vera")
        for route in (route for route in secrets.routes if route.access not in (*OPEN, USER)):
            for caller in ({"token": token}, {"session": session}):
                answer = secrets.ask(route, **caller)
                if route.access == "read":
                    assert answer.status == 200, (named(route), answer.text[:200])
                else:
                    check(route, answer, 403)

    def test_an_owner_of_an_account_does_not_administer_the_server(self, secrets: Secrets) -> None:
        token, session = secrets.server.make_token("olga", "ours"), secrets.server.make_session("olga")
        for route in (route for route in secrets.routes if route.access == SERVER_ADMIN):
            check(route, secrets.ask(route, token=token), 403)
            check(route, secrets.ask(route, session=session), 403)

    def test_what_only_people_may_do_is_refused_to_tokens(self, secrets: Secrets) -> None:
        token = secrets.server.make_token("olga", "ours")
        for route in (route for route in secrets.routes if route.access == USER and route.method != "GET"):
            check(route, secrets.ask(route, token=token), 403)


class TestHeaders:
    def test_no_answer_can_be_taken_for_a_page_or_kept_by_a_cache(self, secrets: Secrets) -> None:
        owner = secrets.server.make_session("olga")
        for route in (route for route in secrets.routes if route.method == "GET"):
            headers = secrets.ask(route, "account=ours", session=owner).headers
            assert headers["X-Content-Type-Options"] == "nosniff" or route.access == SERVER_ADMIN, named(route)
            # The icon, and files of the web app whose names change with them, are everybody's.
            kept = ("public, max-age=86400", "public, max-age=31536000, immutable") if route.access == ANYBODY else ()
            assert headers["Cache-Control"] in ("no-store", "private, no-cache", *kept), named(route)

    def test_bytes_of_users_have_no_power_on_any_route(self, secrets: Secrets) -> None:
        owner, seen = secrets.server.make_session("olga"), 0
        for route in (
            route for route in secrets.routes if route.method == "GET" and route.access not in (USER, SERVER_ADMIN)
        ):
            answer = secrets.ask(route, "account=ours", session=owner)
            kind = answer.headers["Content-Type"].partition(";")[0]
            policy = answer.headers["Content-Security-Policy"] or ""
            if kind == "application/octet-stream" or route.path.endswith("/html"):
                seen += 1
                assert policy.startswith("sandbox"), named(route)
                assert "allow-same-origin" not in policy
                assert "default-src 'none'" in policy
                assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
            elif kind == "text/html":
                # Ours: only scripts that are known by their hash run, and nobody else puts it into a frame.
                assert "default-src 'none'" in policy
                assert "frame-ancestors 'none'" in policy, named(route)
                assert not re.search(r"script-src[^;]*unsafe", policy), named(route)
        assert seen >= 8
