"""Whoever was shown the door while a request was under way, or at another server, leaves nothing behind that stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.services import Hosting

from daskscope.storage.accounts import find_account, remove_member
from daskscope.storage.tokens import list_tokens, revoke_token
from daskscope.storage.users import find_user
from daskscope.testing.hosted import HostedServer
from daskscope.testing.samples import sample_frames

#: Requests that would outlast a revocation: what is asked, and with what.
LASTING = {
    "a token": ("POST", "/api/v1/tokens", b'{"scopes": ["read"]}'),
    "a member": ("PUT", "/api/v1/members/eve", b'{"role": "owner"}'),
    "what the account prefers": ("PATCH", "/api/v1/preferences", b'{"visibility": "public"}'),
    "a deleted cluster": ("DELETE", "/api/v1/clusters/c", b""),
}


@pytest.fixture
def server(hosted: Hosting, tmp_path: Path) -> Iterator[HostedServer]:
    with hosted(tmp_path / "data", login=True) as server:
        server.make_account("ours", mia="member", olga="owner", owen="owner")
        server.make_account("theirs", eve="owner")
        assert server.send(sample_frames("c"), token=server.make_token("olga", "ours")).status == 200
        yield server


def revoke_elsewhere(server: HostedServer) -> None:
    """All tokens of olga, by another server: this one is not told."""
    with server.services.database.write() as connection:
        account, user = find_account(connection, "ours"), find_user(connection, "olga")
        assert account is not None
        assert user is not None
        now = server.services.clock()
        for row in list_tokens(connection, account.id, user.id, include_inactive=False, now_us=now):
            assert revoke_token(connection, account.id, user.id, row["id"], now) is not None


def slowly(body: bytes, between: Callable[[], None]) -> Iterator[bytes]:
    yield body[:5]
    between()
    yield body[5:]


@pytest.mark.parametrize("what", LASTING)
def test_a_token_that_is_remembered_changes_nothing_once_it_is_revoked(server: HostedServer, what: str) -> None:
    method, path, body = LASTING[what]
    token = server.make_token("olga", "ours")
    assert server.ask("GET", "/api/v1/clusters/c", token=token).status == 200
    revoke_elsewhere(server)
    # It may still look for half a minute: that is what remembering it means.
    assert server.ask("GET", "/api/v1/clusters/c", token=token).status == 200
    answer = server.ask(method, path, body, token=token, headers={"Content-Type": "application/json"})
    assert (answer.status, answer.code) == (401, "unauthorized")
    assert server.ask("GET", "/api/v1/clusters/c", token=server.make_token("owen", "ours")).status == 200


@pytest.mark.parametrize("what", ["a token", "a member"])
def test_a_body_that_takes_its_time_does_not_outlast_a_revocation(server: HostedServer, what: str) -> None:
    method, path, body = LASTING[what]
    token = server.make_token("olga", "ours")
    slow = slowly(body, lambda: revoke_elsewhere(server))
    answer = server.ask(method, path, slow, token=token, headers={"Content-Type": "application/json"})
    assert (answer.status, answer.code) == (401, "unauthorized")


def test_nor_the_session_of_somebody_who_is_taken_out_meanwhile(server: HostedServer) -> None:
    def take_out() -> None:
        with server.services.database.write() as connection:
            account, user = find_account(connection, "ours"), find_user(connection, "olga")
            assert account is not None
            assert user is not None
            assert remove_member(connection, account.id, user.id)

    method, path, body = LASTING["a member"]
    session = server.make_session("olga")
    slow, headers = slowly(body, take_out), {"Content-Type": "application/json"}
    answer = server.ask(method, f"{path}?account=ours", slow, session=session, headers=headers)
    assert (answer.status, answer.code) == (403, "no_account")


def test_a_recorders_token_that_was_made_of_one_opens_nothing(server: HostedServer) -> None:
    token = server.make_token("olga", "ours")
    assert server.ask("GET", "/api/v1/clusters/c", token=token).status == 200
    revoke_elsewhere(server)
    made = server.ask("POST", "/api/v1/ingest-tokens", {"cluster": "late"}, token=token)
    assert made.status == 201
    assert server.send(sample_frames("late"), token=made.json()["token"]).status == 401
