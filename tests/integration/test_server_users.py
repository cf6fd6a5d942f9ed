"""Users who cannot sign in, who must no longer sign in, and what they can do to the clusters of others."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.hosted import PASSWORD, HostedServer, HttpResponse, MovingClock
from tests.helpers.samples import sample_frames
from tests.helpers.services import Hosting

from daskscope.server.http.passwords import MAX_ATTEMPTS, network_of


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def server(hosted: Hosting, tmp_path: Path, clock: MovingClock) -> Iterator[HostedServer]:
    with hosted(tmp_path / "data", login=True, clock=clock) as server:
        server.make_user("ada", admin=True)
        server.make_account("ours", olga="owner", mia="member", max="member", vera="viewer")
        yield server


def sign_in(server: HostedServer, user: str, password: str = PASSWORD) -> HttpResponse:
    return server.ask("POST", "/api/v1/session", {"user": user, "password": password})


def use(server: HostedServer, url: str, **more: Any) -> HttpResponse:
    """Use a link as the sign-in page does."""
    return server.ask("POST", "/api/v1/session/link", {"secret": url.rpartition(":")[2], **more})


def change(server: HostedServer, user: str, **values: bool) -> HttpResponse:
    return server.ask("PATCH", f"/api/v1/users/{user}", values, session=server.make_session("ada"))


class TestSignInLink:
    def link(self, server: HostedServer, by: str = "olga", user: str = "mia", who: str = "members") -> HttpResponse:
        return server.ask("POST", f"/api/v1/{who}/{user}/sign-in-link", session=server.make_session(by))

    def test_it_signs_a_locked_out_user_in_once(self, server: HostedServer) -> None:
        for _ in range(MAX_ATTEMPTS):
            sign_in(server, "mia", "wrong password")
        assert sign_in(server, "mia").status == 429
        url = self.link(server).json()["url"]
        assert url.startswith(f"{server.url}/login#sign-in:")
        answer = use(server, url)
        assert server.ask("GET", "/api/v1/me", session=answer.cookie).json()["user"] == "mia"
        assert use(server, url).code == "expired"

    def test_it_expires_after_an_hour(self, server: HostedServer, clock: MovingClock) -> None:
        url = self.link(server).json()["url"]
        clock.move(seconds=3601)
        assert use(server, url).code == "expired"

    def test_a_new_link_replaces_the_previous_one(self, server: HostedServer) -> None:
        first, second = (self.link(server).json()["url"] for _ in range(2))
        assert use(server, first).code == "expired"
        assert use(server, second).status == 200

    def test_a_new_password_ends_it(self, server: HostedServer) -> None:
        url = self.link(server).json()["url"]
        passwords = {"old": PASSWORD, "new": "a new password"}
        assert server.ask("POST", "/api/v1/me/password", passwords, session=server.make_session("mia")).status == 200
        assert use(server, url).code == "expired"

    def test_an_administrator_creates_one_for_any_user(self, server: HostedServer) -> None:
        assert use(server, self.link(server, "ada", "olga", "users").json()["url"]).status == 200

    def test_an_owner_creates_none_for_users_with_rights_elsewhere(self, server: HostedServer) -> None:
        server.make_account("theirs", mia="member", mallory="owner")
        server.make_account("ours", ada="member")
        assert self.link(server, "olga", "mia").code == "forbidden"
        assert self.link(server, "olga", "ada").code == "forbidden"
        assert self.link(server, "olga", "mallory").code == "not_found"
        assert self.link(server, "max", "vera").code == "forbidden"

    def test_its_session_ends_when_the_user_gets_rights_elsewhere(self, server: HostedServer) -> None:
        """The owner who created the link may have used it."""
        by_link = use(server, self.link(server).json()["url"]).cookie
        unused, by_password = self.link(server).json()["url"], sign_in(server, "mia").cookie
        server.make_account("theirs", mallory="owner")
        answer = server.ask("PUT", "/api/v1/members/mia", {"role": "member"}, session=server.make_session("mallory"))
        assert answer.status == 200
        assert server.ask("GET", "/api/v1/me", session=by_link).status == 401
        assert server.ask("GET", "/api/v1/me", session=by_password).status == 200
        assert use(server, unused).code == "expired"

    def test_its_session_ends_when_the_user_becomes_an_administrator(self, server: HostedServer) -> None:
        by_link = use(server, self.link(server).json()["url"]).cookie
        assert change(server, "mia", admin=True).status == 200
        assert server.ask("GET", "/api/v1/me", session=by_link).status == 401

    def test_a_token_creates_none_for_its_own_user(self, server: HostedServer) -> None:
        token = server.make_token("olga", "ours")
        assert server.ask("POST", "/api/v1/members/olga/sign-in-link", token=token).code == "forbidden"
        assert server.ask("POST", "/api/v1/members/mia/sign-in-link", token=token).status == 201

    def test_a_page_of_another_site_cannot_use_one(self, server: HostedServer) -> None:
        secret = self.link(server).json()["url"].rpartition(":")[2]
        headers = {"Origin": "https://elsewhere.example"}
        assert server.ask("POST", "/api/v1/session/link", {"secret": secret}, headers=headers).code == "forbidden"


class TestPasswordReset:
    def reset(self, server: HostedServer, user: str = "mia") -> str:
        session = server.make_session("ada")
        answer = server.ask("POST", f"/api/v1/users/{user}/password-reset", session=session)
        assert answer.status == 201
        return str(answer.json()["url"])

    def test_it_ends_the_password_and_the_sessions_at_once(self, server: HostedServer) -> None:
        session = server.make_session("mia")
        self.reset(server)
        assert sign_in(server, "mia").code == "wrong_password"
        assert server.ask("GET", "/api/v1/me", session=session).status == 401

    def test_its_link_sets_a_new_password_and_works_once(self, server: HostedServer) -> None:
        url = self.reset(server)
        assert "at least 10" in use(server, url, password="short").text
        assert "at least 10" in use(server, url).text
        answer = use(server, url, password="a new password")
        assert server.ask("GET", "/api/v1/me", session=answer.cookie).json()["user"] == "mia"
        assert sign_in(server, "mia", "a new password").status == 200
        assert use(server, url, password="another password").code == "expired"

    def test_without_sign_in_there_is_no_password_to_reset(self, hosted: Hosting, tmp_path: Path) -> None:
        with hosted(tmp_path / "local") as local:
            for what in ("password-reset", "sign-in-link"):
                assert local.ask("POST", f"/api/v1/users/local/{what}").code == "conflict"
        with hosted(tmp_path / "local", login=True) as server:
            assert "/setup#" in server.set_up


class TestDisabledUser:
    def test_sessions_and_tokens_end_at_once_and_nothing_opens_new_ones(self, server: HostedServer) -> None:
        session, token = server.make_session("mia"), server.make_token("mia", "ours")
        recorder = server.ask("POST", "/api/v1/ingest-tokens", {"cluster": "c"}, token=token).json()["token"]
        assert server.send(sample_frames("c"), token=recorder).status == 200
        assert server.ask("GET", "/api/v1/me", token=token).status == 200
        url = server.ask("POST", "/api/v1/users/mia/sign-in-link", session=server.make_session("ada")).json()["url"]

        assert change(server, "mia", disabled=True).status == 200

        assert server.ask("GET", "/api/v1/me", session=session).status == 401
        assert server.ask("GET", "/api/v1/me", token=token).status == 401
        assert server.send(sample_frames("c"), token=recorder).status == 401
        assert sign_in(server, "mia").code == "wrong_password"
        assert use(server, url).code == "expired"

    def test_an_enabled_user_signs_in_again_and_has_no_tokens(self, server: HostedServer) -> None:
        token = server.make_token("mia", "ours")
        change(server, "mia", disabled=True)
        assert change(server, "mia", disabled=False).status == 200
        assert sign_in(server, "mia").status == 200
        assert server.ask("GET", "/api/v1/me", token=token).status == 401

    def test_the_list_of_users_says_who_is_disabled(self, server: HostedServer) -> None:
        change(server, "mia", disabled=True)
        items = server.ask("GET", "/api/v1/users", session=server.make_session("ada")).json()["items"]
        assert {item["name"]: bool(item["disabled"]) for item in items} == {
            "ada": False, "max": False, "mia": True, "olga": False, "vera": False,
        }  # fmt: skip


class TestAdministrator:
    def test_rights_are_granted_and_removed(self, server: HostedServer) -> None:
        session = server.make_session("olga")
        assert server.ask("GET", "/api/v1/users", session=session).status == 403
        assert change(server, "olga", admin=True).status == 200
        assert server.ask("GET", "/api/v1/users", session=session).status == 200
        assert change(server, "olga", admin=False).status == 200
        assert server.ask("GET", "/api/v1/users", session=session).status == 403

    @pytest.mark.parametrize("values", [{"admin": False}, {"disabled": True}])
    def test_the_last_one_stays(self, server: HostedServer, values: dict[str, bool]) -> None:
        answer = change(server, "ada", **values)
        assert answer.status == 400
        assert "only administrator" in answer.text
        change(server, "olga", admin=True)
        assert change(server, "ada", **values).status == 200


class TestSessions:
    def test_a_user_lists_and_ends_their_own(self, server: HostedServer) -> None:
        here = server.make_session("mia")
        there = sign_in(server, "mia").cookie
        server.make_session("olga")
        items = server.ask("GET", "/api/v1/me/sessions", session=here).json()["items"]
        assert sorted((item["current"], item["address"]) for item in items) == [(False, "127.0.0.1"), (True, "")]
        other = next(item["id"] for item in items if not item["current"])
        assert server.ask("DELETE", f"/api/v1/me/sessions/{other}", session=here).json() == {"ended": other}
        assert server.ask("GET", "/api/v1/me", session=there).status == 401
        assert server.ask("GET", "/api/v1/me", session=here).status == 200

    def test_nobody_ends_those_of_others(self, server: HostedServer) -> None:
        theirs = server.make_session("olga")
        number = server.ask("GET", "/api/v1/me/sessions", session=theirs).json()["items"][0]["id"]
        for name in (number, "%25", "_" * 16, ""):
            answer = server.ask("DELETE", f"/api/v1/me/sessions/{name}", session=server.make_session("mia"))
            assert answer.status == 404
        assert server.ask("GET", "/api/v1/me", session=theirs).status == 200


class TestLiveStream:
    def follow(self, server: HostedServer, session: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        cookie = {"Cookie": f"{server.cookie_name}={session}", "Daskscope-Page": server.page_secrets[session]}
        connection.request("GET", "/api/v1/live?account=ours", headers=cookie)
        stream = connection.getresponse()
        assert stream.readline() == b": connected\n"
        return stream

    @pytest.mark.parametrize("how", ["removed", "disabled"])
    def test_it_ends_when_its_user_loses_access(self, server: HostedServer, how: str) -> None:
        stream, other = (self.follow(server, server.make_session(user)) for user in ("mia", "max"))
        if how == "removed":
            assert server.ask("DELETE", "/api/v1/members/mia", session=server.make_session("olga")).status == 200
        else:
            assert change(server, "mia", disabled=True).status == 200
        # Reading to its end needs no heartbeat, which comes after 15 seconds.
        assert stream.read() == b"\n"
        assert server.services.live.listening == 1
        other.close()


class TestClusterOfAnotherMember:
    @pytest.fixture(autouse=True)
    def recorded(self, server: HostedServer) -> None:
        assert server.send(sample_frames("c"), token=server.make_token("mia", "ours")).status == 200

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [("PATCH", "", {"name": "mine now"}), ("DELETE", "", None), ("POST", "/close", None)],
        ids=["rename", "delete", "close"],
    )
    def test_only_who_recorded_it_and_owners_change_it(
        self, server: HostedServer, method: str, path: str, body: dict[str, str] | None
    ) -> None:
        def ask(user: str) -> HttpResponse:
            return server.ask(method, f"/api/v1/clusters/c{path}", body, session=server.make_session(user))

        assert ask("max").code == "forbidden"
        assert "belongs to mia" in ask("max").text
        assert ask("mia").status in (200, 409)
        assert ask("olga").status in (200, 404, 409)

    def test_nobody_else_sends_data_for_it(self, server: HostedServer) -> None:
        token = server.make_token("max", "ours")
        recorder = server.ask("POST", "/api/v1/ingest-tokens", {"cluster": "c"}, token=token).json()["token"]
        for secret in (token, recorder):
            assert server.send(sample_frames("c", "forged"), token=secret).code == "forbidden"
        for _ in range(2):
            assert server.send(sample_frames("c"), token=server.make_token("mia", "ours")).status == 200


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::4", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_attempts_are_counted_by_ipv4_address_and_by_ipv6_network(address: str, network: str) -> None:
    assert network_of(address) == network
