"""Signing in: set-up, passwords, sessions, device codes and requests from other sites."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.hosted import PASSWORD, HostedServer, HttpResponse, MovingClock
from tests.helpers.samples import sample_frames
from tests.helpers.services import Hosting

from daskscope.server.http.passwords import MAX_ATTEMPTS
from daskscope.server.routes.sign_in import MAX_LOGINS
from daskscope.server.run import set_up_link
from daskscope.storage import schema
from daskscope.storage.people import users

ELSEWHERE = "https://elsewhere.example"


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def server(hosted: Hosting, tmp_path: Path, clock: MovingClock) -> Iterator[HostedServer]:
    with hosted(tmp_path / "data", login=True, clock=clock) as server:
        yield server


@pytest.fixture
def local(hosted: Hosting, tmp_path: Path) -> Iterator[HostedServer]:
    with hosted(tmp_path / "local") as server:
        yield server


@pytest.fixture(scope="module")
def team_once(hosted_once: Hosting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    """A server for tests that change nothing."""
    with hosted_once(tmp_path_factory.mktemp("team"), login=True) as server:
        server.make_account("ours", olga="owner", vera="viewer")
        yield server


@pytest.fixture
def team(server: HostedServer) -> HostedServer:
    server.make_account("ours", olga="owner", mia="member", vera="viewer")
    return server


def sign_in(server: HostedServer, user: str = "olga", password: str = PASSWORD, **headers: str) -> HttpResponse:
    return server.ask("POST", "/api/v1/session", {"user": user, "password": password}, headers=headers)


def me(server: HostedServer, session: str) -> HttpResponse:
    return server.ask("GET", "/api/v1/me", session=session)


def test_a_token_made_without_sign_in_is_invalid_once_sign_in_is_on(hosted: Hosting, tmp_path: Path) -> None:
    with hosted(tmp_path / "same") as server:
        made = server.ask("POST", "/api/v1/tokens", {"scopes": ["ingest", "read", "write", "admin"]}).json()
        database = server.settings.database
    with HostedServer(tmp_path / "same", login=True, database=database) as server:
        assert server.ask("GET", "/api/v1/accounts", token=made["token"]).status == 401


class TestSetUp:
    def set_up(self, server: HostedServer, secret: str, **other: str) -> HttpResponse:
        body = {"secret": secret, "user": "ada", "password": PASSWORD, "team": "lovelace", **other}
        return server.ask("POST", "/api/v1/setup", body)

    def test_the_link_creates_the_first_user_as_owner_and_administrator(self, server: HostedServer) -> None:
        answer = self.set_up(server, server.set_up.partition("#")[2])

        assert answer.status == 200
        assert me(server, answer.cookie).json() == {
            "user": "ada",
            "kind": "session",
            "admin": True,
            "account": "lovelace",
            "scopes": ["accounts", "admin", "ingest", "read", "tokens", "write"],
            "expires": None,
            "warnings": [],
            "accounts": [{"name": "lovelace", "role": "owner"}],
        }

    @pytest.mark.each_database
    def test_the_link_works_once(self, server: HostedServer) -> None:
        secret = server.set_up.partition("#")[2]
        assert self.set_up(server, secret).status == 200
        assert self.set_up(server, secret, user="bob", team="bobs").code == "forbidden"

    def test_another_server_with_the_same_database_does_not_invalidate_the_link(self, server: HostedServer) -> None:
        links = [server.set_up, set_up_link(server.services), set_up_link(server.services)]
        assert len(set(links)) == 3
        assert self.set_up(server, links[0].partition("#")[2]).status == 200
        assert [set_up_link(server.services), self.set_up(server, links[1].partition("#")[2]).code] == ["", "forbidden"]

    def test_no_other_secret_works(self, server: HostedServer) -> None:
        for secret in ("", "guess", server.set_up.partition("#")[2][:-1]):
            assert self.set_up(server, secret).status == 403

    def test_an_invalid_name_or_password_is_reported_and_the_link_still_works(self, server: HostedServer) -> None:
        secret = server.set_up.partition("#")[2]
        assert "at least 10" in self.set_up(server, secret, password="short").text
        assert "lower-case" in self.set_up(server, secret, team="Not A Name").text
        assert "server's own words" in self.set_up(server, secret, team="api").text
        assert self.set_up(server, secret).status == 200

    def test_a_server_with_users_prints_no_link(self, hosted: Hosting, tmp_path: Path) -> None:
        with hosted(tmp_path, login=True) as server:
            assert self.set_up(server, server.set_up.partition("#")[2]).status == 200
        with hosted(tmp_path, login=True) as server:
            assert server.set_up == ""

    def test_a_server_that_ran_without_sign_in_can_be_set_up_and_keeps_its_clusters(
        self, hosted: Hosting, tmp_path: Path
    ) -> None:
        with hosted(tmp_path) as server:
            assert server.send(sample_frames("old")).status == 200
        with hosted(tmp_path, login=True) as server:
            session = self.set_up(server, server.set_up.partition("#")[2]).cookie
            clusters = server.ask("GET", "/api/v1/clusters?account=local", session=session).json()["items"]
            assert [cluster["id"] for cluster in clusters] == ["old"]

    def test_the_user_without_a_password_cannot_sign_in(self, hosted: Hosting, tmp_path: Path) -> None:
        with hosted(tmp_path) as server:
            assert sign_in(server, "local", "").code == "conflict"
        with hosted(tmp_path, login=True) as server:
            assert sign_in(server, "local", "").code == "wrong_password"


class TestPassword:
    def test_the_right_password_opens_a_session_in_an_http_only_cookie(self, team: HostedServer) -> None:
        answer = sign_in(team)

        assert re.fullmatch(
            rf"{team.cookie_name}=[\w-]{{43}}; HttpOnly; Max-Age=1209600; Path=/; SameSite=strict",
            answer.headers["Set-Cookie"],
        )
        assert me(team, answer.cookie).json()["user"] == "olga"

    def test_a_server_behind_https_sets_a_secure_cookie(self, hosted: Hosting, tmp_path: Path) -> None:
        with hosted(tmp_path, login=True, url="https://scope.example/dask", root_path="/dask") as server:
            server.make_account("ours", olga="owner")
            cookie = sign_in(server, Host="scope.example").headers["Set-Cookie"]
        assert "; Secure" in cookie
        assert "; Path=/dask;" in cookie

    @pytest.mark.parametrize(("root", "name"), [("", "__Host-daskscope"), ("/dask", "__Secure-daskscope")])
    def test_the_cookie_has_a_prefix_that_browsers_protect_with_https(
        self, hosted: Hosting, tmp_path: Path, root: str, name: str
    ) -> None:
        with hosted(tmp_path, login=True, url=f"https://scope.example{root}", root_path=root) as server:
            server.make_account("ours", olga="owner")
            cookie = sign_in(server, Host="scope.example").headers["Set-Cookie"]
        assert cookie.startswith(f"{name}=")
        assert f"; Path={root or '/'};" in cookie

    def test_a_wrong_password_and_an_unknown_user_get_the_same_response(self, team: HostedServer) -> None:
        wrong, unknown = sign_in(team, password="wrong password"), sign_in(team, "nobody")
        assert (wrong.status, wrong.body) == (unknown.status, unknown.body)
        assert wrong.code == "wrong_password"

    def test_too_many_wrong_passwords_lock_sign_in_with_a_retry_time(
        self, team: HostedServer, clock: MovingClock
    ) -> None:
        for _ in range(MAX_ATTEMPTS):
            assert sign_in(team, password="wrong password").status == 401
        answer = sign_in(team)
        assert (answer.status, answer.code) == (429, "too_many")
        assert int(answer.headers["Retry-After"]) == 900

        clock.move(seconds=901)
        assert sign_in(team).status == 200

    @pytest.mark.each_database
    def test_concurrent_attempts_are_counted_before_they_are_checked(self, team: HostedServer) -> None:
        with ThreadPoolExecutor(30) as pool:
            statuses = list(pool.map(lambda _: sign_in(team, password="wrong password").status, range(30)))
        assert sorted(statuses) == [401] * MAX_ATTEMPTS + [429] * (30 - MAX_ATTEMPTS)

    def test_a_right_password_does_not_count_as_an_attempt(self, team: HostedServer) -> None:
        assert {sign_in(team).status for _ in range(MAX_ATTEMPTS + 2)} == {200}

    def test_a_password_changed_while_it_is_checked_opens_no_session(
        self, team: HostedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        compare = users.password_matches

        def change_password_and_compare(password: str, stored: str) -> bool:
            with team.services.archive.write() as tx:
                number, _ = users.stored_password(tx, "olga")
                users.set_password(tx, number, users.hash_password("a new password"))
            return compare(password, stored)

        monkeypatch.setattr(users, "password_matches", change_password_and_compare)
        assert sign_in(team).code == "wrong_password"

    def test_guessing_the_old_password_in_a_session_is_limited_too(self, team: HostedServer) -> None:
        session = team.make_session("olga")
        change = {"old": "not the password", "new": "a new password"}
        statuses = [
            team.ask("POST", "/api/v1/me/password", change, session=session).status for _ in range(MAX_ATTEMPTS + 1)
        ]
        assert statuses == [403] * MAX_ATTEMPTS + [429]

    def test_a_new_password_ends_every_session(self, team: HostedServer) -> None:
        here, there = team.make_session("olga"), team.make_session("olga")
        change = {"old": PASSWORD, "new": "a new password"}
        answer = team.ask("POST", "/api/v1/me/password", change, session=here).json()
        assert answer == {"changed": True, "revoked_tokens": 0, "tokens": []}

        assert me(team, here).status == me(team, there).status == 401
        assert sign_in(team).status == 401
        assert sign_in(team, password="a new password").status == 200

    def test_only_digests_are_stored(self, team: HostedServer, tmp_path: Path) -> None:
        secrets = [PASSWORD, team.make_token("olga", "ours"), sign_in(team).cookie]
        with team.services.archive.read() as tx:
            rows = [tx.execute(sa.select(table)).all() for table in schema.metadata.sorted_tables]
        team.services.archive.database.close()
        files = b"".join(path.read_bytes() for path in (tmp_path / "data").glob("catalog.db*"))
        stored = repr(rows).encode() + files
        assert b"$argon2id$" in stored
        assert [secret for secret in secrets if secret.encode() in stored] == []


class TestPageSecret:
    """The cookie of a session reaches every port of a host, so it needs the secret that only our pages have."""

    def test_a_session_is_worth_nothing_without_its_page_secret(self, team: HostedServer) -> None:
        session, other = team.make_session("olga"), team.make_session("olga")
        assert me(team, session).status == 200
        for secret in ("", "guess", session, team.page_secrets[other]):
            for method, path in (("GET", "/api/v1/me"), ("GET", "/api/v1/live"), ("POST", "/api/v1/tokens")):
                body: dict[str, Any] | None = {} if method == "POST" else None
                answer = team.ask(method, path, body, session=session, headers={"Daskscope-Page": secret})
                assert answer.status == 401

    def test_a_stolen_cookie_does_not_end_the_session(self, team: HostedServer) -> None:
        session = team.make_session("olga")
        team.ask("DELETE", "/api/v1/session", session=session, headers={"Daskscope-Page": ""})
        assert me(team, session).status == 200

    def test_a_ticket_opens_one_frame_for_a_minute(self, team: HostedServer, clock: MovingClock) -> None:
        token = team.make_token("olga", "ours")
        first, second = (
            team.ask("POST", "/api/v1/reports", b"<!doctype html><p>hello", token=token).json()["id"] for _ in range(2)
        )
        session = team.make_session("olga")
        ticket = team.ask("GET", f"/api/v1/reports/{first}/html/ticket", session=session).json()["ticket"]

        def frame(path: str, ticket: str, cookie: str = session) -> int:
            headers = {"Daskscope-Page": ""}
            return team.ask("GET", f"/api/v1/{path}ticket={ticket}", session=cookie, headers=headers).status

        assert frame(f"reports/{first}/html?", ticket) == 200
        assert frame(f"reports/{second}/html?", ticket) == 401
        assert frame(f"reports/{first}/html?account=ours&", ticket) == 401
        assert frame(f"reports/{first}/html?", ticket, team.make_session("olga")) == 401
        assert frame(f"reports/{first}/html?", "9" * 15 + ticket[16:]) == 401
        assert frame(f"reports/{first}/html?", "") == frame(f"reports/{first}/html?", "%C3%A9.%C3%A9") == 401
        clock.move(seconds=61)
        assert frame(f"reports/{first}/html?", ticket) == 401


class TestSession:
    def test_signing_out_ends_the_session(self, team: HostedServer) -> None:
        session = sign_in(team).cookie
        answer = team.ask("DELETE", "/api/v1/session", session=session)
        assert f'{team.cookie_name}=""' in answer.headers["Set-Cookie"]
        assert me(team, session).status == 401

    def test_a_session_ends_after_two_weeks(self, team: HostedServer, clock: MovingClock) -> None:
        session = sign_in(team).cookie
        clock.move(days=13.9)
        assert me(team, session).status == 200
        clock.move(days=0.2)
        assert me(team, session).status == 401

    def test_a_removed_member_no_longer_sees_the_account(self, team: HostedServer) -> None:
        session, owner = team.make_session("mia"), team.make_token("olga", "ours")
        assert team.ask("GET", "/api/v1/clusters", session=session).status == 200
        assert team.ask("DELETE", "/api/v1/members/mia", token=owner).status == 200
        assert team.ask("GET", "/api/v1/clusters", session=session).code == "no_account"

    def test_a_member_of_two_accounts_has_to_choose_one(self, team: HostedServer) -> None:
        team.make_account("other", olga="viewer")
        session = team.make_session("olga")
        assert team.ask("GET", "/api/v1/clusters", session=session).code == "no_account"
        assert team.ask("GET", "/api/v1/clusters?account=ours", session=session).status == 200
        assert team.ask("DELETE", "/api/v1/clusters/x?account=other", session=session).code == "forbidden"


UNSAFE = [
    ("POST", "/api/v1/tokens", {"label": "x"}),
    ("PATCH", "/api/v1/preferences", {"visibility": "private"}),
    ("PUT", "/api/v1/members/vera", {"role": "owner"}),
    ("DELETE", "/api/v1/members/vera", None),
    ("DELETE", "/api/v1/session", None),
]


class TestCrossSiteRequests:
    @pytest.mark.parametrize(("method", "path", "body"), UNSAFE)
    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": ELSEWHERE},
            {"Origin": "null"},
            {"Origin": ""},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Sec-Fetch-Site": "cross-site", "Origin": ELSEWHERE},
        ],
        ids=str,
    )
    def test_they_cannot_change_anything_with_a_session(
        self, team_once: HostedServer, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> None:
        session = team_once.make_session("olga")
        answer = team_once.ask(method, path, body, session=session, headers=headers)
        assert answer.code == "forbidden"
        assert me(team_once, session).status == 200

    @pytest.mark.parametrize("headers", [{"Origin": ELSEWHERE}, {"Sec-Fetch-Site": "cross-site"}], ids=str)
    def test_they_cannot_sign_in(self, team_once: HostedServer, headers: dict[str, str]) -> None:
        assert sign_in(team_once, **headers).code == "forbidden"

    @pytest.mark.parametrize("headers", [{"Origin": ELSEWHERE}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}])
    def test_they_cannot_change_anything_without_sign_in(self, local: HostedServer, headers: dict[str, str]) -> None:
        assert local.send(sample_frames("kept")).status == 200
        for method, path, body in (
            ("DELETE", "/api/v1/clusters/kept", None),
            ("POST", "/api/v1/tokens", {}),
            ("POST", "/api/v1/reports", b"<!doctype html>"),
        ):
            assert local.ask(method, path, body, headers=headers).code == "forbidden"

    @pytest.mark.parametrize(
        "host",
        ["attacker.example", "attacker.example:8780", "127.0.0.1.attacker.example", "[", "", "localhost.", "0.0.0.0"],
    )
    def test_a_foreign_host_name_that_resolves_to_loopback_is_refused(self, local: HostedServer, host: str) -> None:
        for method in ("GET", "POST", "DELETE"):
            answer = local.ask(method, "/api/v1/session", {} if method == "POST" else None, headers={"Host": host})
            assert answer.status in (400, 403, 405), answer
        # Not /healthz and /readyz: probes of an orchestrator use the address of the container.
        for path in ("/api/v1/clusters", "/metrics", "/"):
            assert local.ask("GET", path, headers={"Host": host}).status in (400, 403)

    @pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8780"])
    def test_any_name_of_loopback_is_accepted(self, local: HostedServer, host: str) -> None:
        assert local.ask("GET", "/api/v1/clusters", headers={"Host": host}).status == 200


class TestDeviceCode:
    def begin(self, server: HostedServer, **more: Any) -> dict[str, Any]:
        answer = server.ask("POST", "/api/v1/device", {"label": "olga@laptop", "host": "laptop", **more})
        assert answer.status == 201
        begun: dict[str, Any] = answer.json()
        return begun

    def decide(
        self, server: HostedServer, code: str, user: str = "olga", account: str = "ours", **more: Any
    ) -> HttpResponse:
        body = {"user_code": code, "account": account, **more}
        return server.ask("POST", "/api/v1/device/decision", body, session=server.make_session(user))

    def collect(self, server: HostedServer, begun: dict[str, Any]) -> HttpResponse:
        return server.ask("POST", "/api/v1/device/token", {"device_code": begun["device_code"]})

    @pytest.mark.each_database
    def test_a_confirmed_code_yields_a_token_once(self, team: HostedServer) -> None:
        begun = self.begin(team)
        assert self.collect(team, begun).code == "waiting"
        assert self.decide(team, begun["user_code"].lower()).json()["state"] == "approved"
        answer = self.collect(team, begun).json()
        assert (answer["account"], answer["user"]) == ("ours", "olga")
        assert team.ask("GET", "/api/v1/me", token=answer["token"]).json()["scopes"] == [
            "admin", "ingest", "read", "write",
        ]  # fmt: skip
        assert self.collect(team, begun).code == "expired"
        assert self.decide(team, begun["user_code"]).status == 404

    def test_its_token_has_the_scopes_of_the_role(self, team: HostedServer) -> None:
        begun = self.begin(team)
        self.decide(team, begun["user_code"], "vera")
        token = self.collect(team, begun).json()["token"]
        assert team.ask("GET", "/api/v1/me", token=token).json()["scopes"] == ["read"]

    def test_a_denied_code_yields_no_token(self, team: HostedServer) -> None:
        begun = self.begin(team)
        assert self.decide(team, begun["user_code"], approve=False).json()["state"] == "denied"
        assert self.collect(team, begun).code == "forbidden"
        assert self.decide(team, begun["user_code"]).status == 404

    def test_an_expired_code_cannot_be_confirmed_or_collected(self, team: HostedServer, clock: MovingClock) -> None:
        confirmed, waiting = self.begin(team), self.begin(team)
        self.decide(team, confirmed["user_code"])
        clock.move(seconds=601)
        assert self.collect(team, confirmed).code == self.collect(team, waiting).code == "expired"
        assert self.decide(team, waiting["user_code"]).status == 404

    def test_a_user_cannot_confirm_for_a_foreign_account(self, team: HostedServer) -> None:
        team.make_account("theirs", mallory="owner")
        assert self.decide(team, self.begin(team)["user_code"], "mallory", "ours").status == 404

    def test_the_label_of_a_code_can_be_looked_up(self, team: HostedServer) -> None:
        begun, session = self.begin(team), team.make_session("olga")
        found = team.ask("GET", f"/api/v1/device?user_code={begun['user_code']}", session=session).json()
        assert found == {
            "user_code": begun["user_code"],
            "state": "waiting",
            "address": "127.0.0.1",
            "host": "laptop",
            "label": "olga@laptop",
            "scopes": ["ingest", "read", "write", "admin"],
        }

    def test_the_url_of_the_page_does_not_contain_the_code(self, team: HostedServer) -> None:
        begun = self.begin(team)
        assert begun["verification_url"] == f"{team.url}/device"

    def test_its_token_expires_after_90_days(self, team: HostedServer, clock: MovingClock) -> None:
        begun = self.begin(team)
        self.decide(team, begun["user_code"])
        answer = self.collect(team, begun).json()
        assert team.ask("GET", "/api/v1/me", token=answer["token"]).json()["expires"] == answer["expires"]
        clock.move(days=89.9)
        assert team.ask("GET", "/api/v1/me", token=answer["token"]).status == 200
        clock.move(days=0.2)
        assert team.ask("GET", "/api/v1/me", token=answer["token"]).status == 401

    def test_its_token_has_no_more_than_the_requested_scopes(self, team: HostedServer) -> None:
        begun = self.begin(team, scopes=["read", "tokens"])
        self.decide(team, begun["user_code"])
        token = self.collect(team, begun).json()["token"]
        assert team.ask("GET", "/api/v1/me", token=token).json()["scopes"] == ["read", "tokens"]

    def test_a_role_that_allows_none_of_the_requested_scopes_gets_no_token(self, team: HostedServer) -> None:
        begun = self.begin(team, scopes=["ingest"])
        self.decide(team, begun["user_code"], "vera")
        assert self.collect(team, begun).code == "forbidden"

    def test_the_number_of_pending_codes_is_limited(self, team: HostedServer, monkeypatch: pytest.MonkeyPatch) -> None:
        assert MAX_LOGINS == 1_000
        monkeypatch.setattr("daskscope.server.routes.sign_in.MAX_LOGINS", 2)
        assert [team.ask("POST", "/api/v1/device", {}).status for _ in range(3)] == [201, 201, 429]

    def test_a_server_without_sign_in_issues_no_codes(self, local: HostedServer) -> None:
        assert local.ask("POST", "/api/v1/device", {}).code == "conflict"
