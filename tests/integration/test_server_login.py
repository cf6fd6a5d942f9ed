"""Who gets in, how, and how they are kept out: set-up, passwords, sessions, codes, foreign pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.services import Hosting, slow_on_postgresql

from daskscope.server.identity import COOKIE
from daskscope.server.routes.logins import MOST_LOGINS
from daskscope.storage import schema, users
from daskscope.storage.users import MOST_ATTEMPTS
from daskscope.testing.hosted import PASSWORD, Answer, HostedServer, MovingClock
from daskscope.testing.samples import sample_frames

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
    """For tests that change nothing."""
    with hosted_once(tmp_path_factory.mktemp("team"), login=True) as server:
        server.make_account("ours", olga="owner", vera="viewer")
        yield server


@pytest.fixture
def team(server: HostedServer) -> HostedServer:
    server.make_account("ours", olga="owner", mia="member", vera="viewer")
    return server


def log_in(server: HostedServer, user: str = "olga", password: str = PASSWORD, **headers: str) -> Answer:
    return server.ask("POST", "/api/v1/session", {"user": user, "password": password}, headers=headers)


def me(server: HostedServer, session: str) -> Answer:
    return server.ask("GET", "/api/v1/me", session=session)


def test_a_token_made_before_anybody_had_to_log_in_is_worth_nothing_afterwards(hosted: Hosting, tmp_path: Path) -> None:
    with hosted(tmp_path / "same") as server:
        made = server.ask("POST", "/api/v1/tokens", {"scopes": ["ingest", "read", "write", "admin"]}).json()
        database = server.settings.database
    with HostedServer(tmp_path / "same", login=True, database=database) as server:
        assert server.ask("GET", "/api/v1/accounts", token=made["token"]).status == 401


class TestSetUp:
    def set_up(self, server: HostedServer, secret: str, **other: str) -> Answer:
        body = {"secret": secret, "user": "ada", "password": PASSWORD, "team": "lovelace", **other}
        return server.ask("POST", "/api/v1/setup", body)

    def test_the_link_makes_the_first_user_an_owner_and_administrator(self, server: HostedServer) -> None:
        answer = self.set_up(server, server.set_up.partition("#")[2])

        assert answer.status == 200
        assert me(server, answer.cookie).json() == {
            "user": "ada",
            "kind": "session",
            "admin": True,
            "account": "lovelace",
            "scopes": ["admin", "ingest", "read", "write"],
            "accounts": [{"name": "lovelace", "role": "owner"}],
        }

    def test_the_link_works_once(self, server: HostedServer) -> None:
        secret = server.set_up.partition("#")[2]
        assert self.set_up(server, secret).status == 200
        assert self.set_up(server, secret, user="bob", team="bobs").code == "forbidden"

    def test_no_other_secret_works(self, server: HostedServer) -> None:
        for secret in ("", "guess", server.set_up.partition("#")[2][:-1]):
            assert self.set_up(server, secret).status == 403

    def test_what_is_wrong_with_a_name_or_password_is_said_and_the_link_still_works(self, server: HostedServer) -> None:
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

    def test_a_server_that_asked_for_no_login_before_can_be_set_up_and_its_clusters_stay(
        self, hosted: Hosting, tmp_path: Path
    ) -> None:
        with hosted(tmp_path) as server:
            assert server.send(sample_frames("old")).status == 200
        with hosted(tmp_path, login=True) as server:
            session = self.set_up(server, server.set_up.partition("#")[2]).cookie
            clusters = server.ask("GET", "/api/v1/clusters?account=local", session=session).json()["items"]
            assert [cluster["id"] for cluster in clusters] == ["old"]

    def test_nobody_logs_in_as_the_user_without_a_password(self, hosted: Hosting, tmp_path: Path) -> None:
        with hosted(tmp_path) as server:
            assert log_in(server, "local", "").code == "conflict"
        with hosted(tmp_path, login=True) as server:
            assert log_in(server, "local", "").code == "wrong_password"


class TestPassword:
    def test_the_right_one_opens_a_session_in_a_cookie_scripts_cannot_read(self, team: HostedServer) -> None:
        answer = log_in(team)

        assert re.fullmatch(
            rf"{COOKIE}=[\w-]{{43}}; HttpOnly; Max-Age=1209600; Path=/; SameSite=lax", answer.headers["Set-Cookie"]
        )
        assert me(team, answer.cookie).json()["user"] == "olga"

    def test_a_server_people_reach_by_https_marks_its_cookie_secure(self, hosted: Hosting, tmp_path: Path) -> None:
        with hosted(tmp_path, login=True, url="https://scope.example/dask", root_path="/dask") as server:
            server.make_account("ours", olga="owner")
            cookie = log_in(server).headers["Set-Cookie"]
        assert "; Secure" in cookie
        assert "; Path=/dask;" in cookie

    def test_a_wrong_one_and_an_unknown_name_get_the_same_answer(self, team: HostedServer) -> None:
        wrong, unknown = log_in(team, password="wrong password"), log_in(team, "nobody")
        assert (wrong.status, wrong.body) == (unknown.status, unknown.body)
        assert wrong.code == "wrong_password"

    def test_whoever_guesses_is_locked_out_and_told_how_long(self, team: HostedServer, clock: MovingClock) -> None:
        for _ in range(MOST_ATTEMPTS):
            assert log_in(team, password="wrong password").status == 401
        answer = log_in(team)
        assert (answer.status, answer.code) == (429, "too_many")
        assert int(answer.headers["Retry-After"]) == 900

        clock.move(seconds=901)
        assert log_in(team).status == 200

    def test_guesses_that_come_at_once_are_counted_before_they_are_looked_at(self, team: HostedServer) -> None:
        with ThreadPoolExecutor(30) as pool:
            statuses = list(pool.map(lambda _: log_in(team, password="wrong password").status, range(30)))
        assert sorted(statuses) == [401] * MOST_ATTEMPTS + [429] * (30 - MOST_ATTEMPTS)

    def test_a_right_password_does_not_count(self, team: HostedServer) -> None:
        assert {log_in(team).status for _ in range(MOST_ATTEMPTS + 2)} == {200}

    def test_a_password_that_was_changed_while_it_was_compared_opens_nothing(
        self, team: HostedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        compare = users.password_matches

        def changed_meanwhile(password: str, stored: str) -> bool:
            with team.services.database.write() as connection:
                number, _ = users.stored_password(connection, "olga")
                users.set_password(connection, number, users.hash_password("a new password"))
            return compare(password, stored)

        monkeypatch.setattr(users, "password_matches", changed_meanwhile)
        assert log_in(team).code == "wrong_password"

    def test_guessing_the_old_password_in_a_session_is_locked_out_as_well(self, team: HostedServer) -> None:
        session = team.make_session("olga")
        change = {"old": "not the password", "new": "a new password"}
        statuses = [
            team.ask("POST", "/api/v1/me/password", change, session=session).status for _ in range(MOST_ATTEMPTS + 1)
        ]
        assert statuses == [403] * MOST_ATTEMPTS + [429]

    def test_a_new_password_ends_every_session(self, team: HostedServer) -> None:
        here, there = team.make_session("olga"), team.make_session("olga")
        change = {"old": PASSWORD, "new": "a new password"}
        assert team.ask("POST", "/api/v1/me/password", change, session=here).json() == {"changed": True}

        assert me(team, here).status == me(team, there).status == 401
        assert log_in(team).status == 401
        assert log_in(team, password="a new password").status == 200

    def test_only_digests_are_stored(self, team: HostedServer, tmp_path: Path) -> None:
        secrets = [PASSWORD, team.make_token("olga", "ours"), log_in(team).cookie]
        with team.services.database.read() as connection:
            rows = [connection.execute(sa.select(table)).all() for table in schema.metadata.sorted_tables]
        team.services.database.close()
        files = b"".join(path.read_bytes() for path in (tmp_path / "data").glob("catalog.db*"))
        stored = repr(rows).encode() + files
        assert b"$argon2id$" in stored
        assert [secret for secret in secrets if secret.encode() in stored] == []


class TestSession:
    def test_logging_out_ends_it(self, team: HostedServer) -> None:
        session = log_in(team).cookie
        answer = team.ask("DELETE", "/api/v1/session", session=session)
        assert f'{COOKIE}=""' in answer.headers["Set-Cookie"]
        assert me(team, session).status == 401

    def test_it_ends_after_two_weeks(self, team: HostedServer, clock: MovingClock) -> None:
        session = log_in(team).cookie
        clock.move(days=13.9)
        assert me(team, session).status == 200
        clock.move(days=0.2)
        assert me(team, session).status == 401

    def test_somebody_taken_out_of_the_account_sees_nothing_any_more(self, team: HostedServer) -> None:
        session, owner = team.make_session("mia"), team.make_token("olga", "ours")
        assert team.ask("GET", "/api/v1/clusters", session=session).status == 200
        assert team.ask("DELETE", "/api/v1/members/mia", token=owner).status == 200
        assert team.ask("GET", "/api/v1/clusters", session=session).code == "no_account"

    def test_who_has_two_accounts_says_which(self, team: HostedServer) -> None:
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


@slow_on_postgresql
class TestForeignPages:
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
    def test_a_session_changes_nothing_for_them(
        self, team_once: HostedServer, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> None:
        session = team_once.make_session("olga")
        answer = team_once.ask(method, path, body, session=session, headers=headers)
        assert answer.code == "forbidden"
        assert me(team_once, session).status == 200

    @pytest.mark.parametrize("headers", [{"Origin": ELSEWHERE}, {"Sec-Fetch-Site": "cross-site"}], ids=str)
    def test_they_log_nobody_in(self, team_once: HostedServer, headers: dict[str, str]) -> None:
        assert log_in(team_once, **headers).code == "forbidden"

    @pytest.mark.parametrize("headers", [{"Origin": ELSEWHERE}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}])
    def test_without_login_they_change_nothing_either(self, local: HostedServer, headers: dict[str, str]) -> None:
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
    def test_a_name_that_was_made_to_resolve_to_loopback_is_not_answered(self, local: HostedServer, host: str) -> None:
        for method in ("GET", "POST", "DELETE"):
            answer = local.ask(method, "/api/v1/session", {} if method == "POST" else None, headers={"Host": host})
            assert answer.status in (400, 403, 405), answer
        for path in ("/api/v1/clusters", "/healthz", "/readyz", "/metrics", "/"):
            assert local.ask("GET", path, headers={"Host": host}).status in (400, 403)

    @pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8780"])
    def test_loopback_is_answered_by_any_of_its_names(self, local: HostedServer, host: str) -> None:
        assert local.ask("GET", "/api/v1/clusters", headers={"Host": host}).status == 200


class TestCode:
    def begin(self, server: HostedServer) -> dict[str, Any]:
        answer = server.ask("POST", "/api/v1/device", {"label": "olga@laptop"})
        assert answer.status == 201
        begun: dict[str, Any] = answer.json()
        return begun

    def decide(self, server: HostedServer, code: str, user: str = "olga", account: str = "ours", **more: Any) -> Answer:
        body = {"user_code": code, "account": account, **more}
        return server.ask("POST", "/api/v1/device/decision", body, session=server.make_session(user))

    def collect(self, server: HostedServer, begun: dict[str, Any]) -> Answer:
        return server.ask("POST", "/api/v1/device/token", {"device_code": begun["device_code"]})

    def test_a_confirmed_one_gives_a_token_once(self, team: HostedServer) -> None:
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

    def test_its_token_allows_what_the_role_does(self, team: HostedServer) -> None:
        begun = self.begin(team)
        self.decide(team, begun["user_code"], "vera")
        token = self.collect(team, begun).json()["token"]
        assert team.ask("GET", "/api/v1/me", token=token).json()["scopes"] == ["read"]

    def test_a_denied_one_gives_none(self, team: HostedServer) -> None:
        begun = self.begin(team)
        assert self.decide(team, begun["user_code"], approve=False).json()["state"] == "denied"
        assert self.collect(team, begun).code == "forbidden"
        assert self.decide(team, begun["user_code"]).status == 404

    def test_an_old_one_cannot_be_confirmed_or_collected(self, team: HostedServer, clock: MovingClock) -> None:
        confirmed, waiting = self.begin(team), self.begin(team)
        self.decide(team, confirmed["user_code"])
        clock.move(seconds=601)
        assert self.collect(team, confirmed).code == self.collect(team, waiting).code == "expired"
        assert self.decide(team, waiting["user_code"]).status == 404

    def test_nobody_confirms_for_an_account_that_is_not_theirs(self, team: HostedServer) -> None:
        team.make_account("theirs", mallory="owner")
        assert self.decide(team, self.begin(team)["user_code"], "mallory", "ours").status == 404

    def test_what_it_was_made_for_can_be_looked_up(self, team: HostedServer) -> None:
        begun, session = self.begin(team), team.make_session("olga")
        found = team.ask("GET", f"/api/v1/device?user_code={begun['user_code']}", session=session).json()
        assert found == {"user_code": begun["user_code"], "label": "olga@laptop", "state": "waiting"}

    def test_there_is_an_end_to_how_many_wait(self, team: HostedServer, monkeypatch: pytest.MonkeyPatch) -> None:
        assert MOST_LOGINS == 1_000
        monkeypatch.setattr("daskscope.server.routes.logins.MOST_LOGINS", 2)
        assert [team.ask("POST", "/api/v1/device", {}).status for _ in range(3)] == [201, 201, 429]

    def test_a_server_without_login_needs_none(self, local: HostedServer) -> None:
        assert local.ask("POST", "/api/v1/device", {}).code == "conflict"
