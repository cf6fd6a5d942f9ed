"""API tokens: who can create and revoke them, how long they live, and what ends with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.hosted import PASSWORD, HostedServer, MovingClock
from tests.helpers.samples import sample_frames
from tests.helpers.services import Hosting

CHANGE = {"old": PASSWORD, "new": "a new password"}
DEFAULT_SCOPES = ("ingest", "read", "write")


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def server(hosted: Hosting, tmp_path: Path, clock: MovingClock) -> Iterator[HostedServer]:
    with hosted(tmp_path / "data", login=True, clock=clock) as server:
        server.make_account("ours", olga="owner", mia="member", vera="viewer")
        yield server


def create(server: HostedServer, body: dict[str, Any], **caller: Any) -> dict[str, Any]:
    answer = server.ask("POST", "/api/v1/tokens", body, **caller)
    assert answer.status == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def is_valid(server: HostedServer, token: str) -> bool:
    return server.ask("GET", "/api/v1/me", token=token).status == 200


@pytest.mark.parametrize("scopes", [DEFAULT_SCOPES, (*DEFAULT_SCOPES, "admin")])
def test_a_token_without_the_scope_tokens_cannot_create_tokens(server: HostedServer, scopes: tuple[str, ...]) -> None:
    answer = server.ask("POST", "/api/v1/tokens", {}, token=server.make_token("olga", "ours", *scopes))
    assert answer.code == "forbidden"
    assert "daskscope login --create-tokens" in answer.text


def test_a_browser_session_creates_tokens_without_the_scope_tokens(server: HostedServer) -> None:
    made = create(server, {}, session=server.make_session("mia"))
    assert made["scopes"] == list(DEFAULT_SCOPES)


def test_revoking_a_token_ends_all_tokens_created_with_it(server: HostedServer) -> None:
    first = create(server, {"scopes": ["read", "ingest", "tokens"]}, session=server.make_session("mia"))
    second = create(server, {"scopes": ["read", "ingest", "tokens"]}, token=first["token"])
    third = create(server, {"scopes": ["read", "ingest"]}, token=second["token"])
    recorder = server.ask("POST", "/api/v1/ingest-tokens", {"cluster": "c"}, token=third["token"]).json()["token"]
    beside = create(server, {}, session=server.make_session("mia"))
    assert server.send(sample_frames("c"), token=recorder).status == 200
    assert is_valid(server, third["token"])

    answer = server.ask("DELETE", f"/api/v1/tokens/{first['id']}", token=beside["token"]).json()

    assert answer == {"revoked": first["id"], "recorders": 1, "tokens": 2}
    assert [is_valid(server, made["token"]) for made in (first, second, third, beside)] == [False, False, False, True]
    assert server.send(sample_frames("c"), token=recorder).status == 401


@pytest.mark.parametrize(("body", "days"), [({}, 90), ({"days_to_expire": 7}, 7), ({"days_to_expire": None}, 90)])
def test_a_token_expires_after_90_days_unless_another_time_is_chosen(
    server: HostedServer, clock: MovingClock, body: dict[str, Any], days: int
) -> None:
    token = create(server, body, session=server.make_session("mia"))["token"]
    clock.move(days=days - 0.1)
    assert is_valid(server, token)
    clock.move(days=0.2)
    assert not is_valid(server, token)


def test_a_token_never_expires_if_that_is_chosen(server: HostedServer, clock: MovingClock) -> None:
    made = create(server, {"days_to_expire": 0}, session=server.make_session("mia"))
    assert made["expires"] is None
    clock.move(days=4000)
    assert is_valid(server, made["token"])


def test_lists_mark_tokens_that_expire_within_two_weeks(server: HostedServer) -> None:
    session = server.make_session("mia")
    for days in (0, 13, 15):
        create(server, {"label": str(days), "days_to_expire": days}, session=session)
    items = server.ask("GET", "/api/v1/tokens", session=session).json()["items"]
    assert {item["label"]: item["expires_soon"] for item in items} == {"0": False, "13": True, "15": False}


def test_a_viewer_revokes_their_own_token_and_no_other(server: HostedServer) -> None:
    mine = server.make_token("vera", "ours", "read")
    server.make_token("mia", "ours")
    everyone = server.ask("GET", "/api/v1/tokens?everyone=true", session=server.make_session("olga")).json()["items"]
    numbers = {item["user"]: item["id"] for item in everyone}
    assert server.ask("DELETE", f"/api/v1/tokens/{numbers['mia']}", token=mine).code == "forbidden"
    assert server.ask("DELETE", f"/api/v1/tokens/{numbers['vera']}", token=mine).status == 200
    assert not is_valid(server, mine)


def test_a_token_that_only_reads_revokes_no_other_token_of_its_user(server: HostedServer) -> None:
    session = server.make_session("mia")
    made = create(server, {}, session=session)
    for scopes in (["read"], ["read", "ingest"]):
        reader = create(server, {"scopes": scopes}, session=session)
        refused = server.ask("DELETE", f"/api/v1/tokens/{made['id']}", token=reader["token"])
        assert refused.code == "forbidden"
        assert "revoke itself" in refused.text
        assert server.ask("DELETE", f"/api/v1/tokens/{reader['id']}", token=reader["token"]).status == 200
    assert is_valid(server, made["token"])


def test_a_viewer_revokes_their_own_token_in_the_browser(server: HostedServer) -> None:
    token, session = server.make_token("vera", "ours", "read"), server.make_session("vera")
    [listed] = server.ask("GET", "/api/v1/tokens", session=session).json()["items"]
    assert server.ask("DELETE", f"/api/v1/tokens/{listed['id']}", session=session).status == 200
    assert not is_valid(server, token)


class TestPasswordChange:
    def test_it_lists_the_tokens_that_stay_valid(self, server: HostedServer) -> None:
        session = server.make_session("mia")
        made = create(server, {"label": "nightly", "days_to_expire": 0}, session=session)
        answer = server.ask("POST", "/api/v1/me/password", CHANGE, session=session).json()
        left = {"account": "ours", "hint": made["token"][:11], "label": "nightly", "expires": None}
        assert answer == {"changed": True, "revoked_tokens": 0, "tokens": [left]}
        assert is_valid(server, made["token"])

    def test_it_revokes_all_tokens_of_the_user_on_request(self, server: HostedServer) -> None:
        server.make_account("other", mia="owner")
        tokens = [server.make_token("mia", account) for account in ("ours", "other")]
        beside = server.make_token("olga", "ours")
        assert [is_valid(server, token) for token in (*tokens, beside)] == [True, True, True]
        change = {**CHANGE, "revoke_tokens": True}
        answer = server.ask("POST", "/api/v1/me/password", change, session=server.make_session("mia")).json()
        assert answer == {"changed": True, "revoked_tokens": 2, "tokens": []}
        assert [is_valid(server, token) for token in (*tokens, beside)] == [False, False, True]
