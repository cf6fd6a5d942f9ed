"""A caller who loses access during a request, or through another server, can no longer change anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.helpers.hosted import HostedServer
from tests.helpers.samples import sample_frames
from tests.helpers.services import Hosting

from daskscope.storage import schema
from daskscope.storage.people.accounts import find_account, remove_member
from daskscope.storage.people.users import find_user

#: Requests with lasting effects: method, path and body.
LASTING = {
    "a token": ("POST", "/api/v1/tokens", b'{"scopes": ["read"]}'),
    "a member": ("PUT", "/api/v1/members/eve", b'{"role": "owner"}'),
    "preferences": ("PATCH", "/api/v1/preferences", b'{"visibility": "public"}'),
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
    """Revoke all tokens of olga as a server whose notification is lost: this one does not know."""
    with server.services.archive.write() as tx:
        user = find_user(tx, "olga")
        assert user is not None
        mine = schema.tokens.c.user_id == user.id
        assert tx.execute(sa.update(schema.tokens).where(mine).values(revoked_us=tx.now_us)).rowcount


def slowly(body: bytes, between: Callable[[], None]) -> Iterator[bytes]:
    yield body[:5]
    between()
    yield body[5:]


@pytest.mark.parametrize("what", LASTING)
def test_a_cached_token_cannot_change_anything_once_it_is_revoked(server: HostedServer, what: str) -> None:
    method, path, body = LASTING[what]
    token = server.make_token("olga", "ours")
    assert server.ask("GET", "/api/v1/clusters/c", token=token).status == 200
    revoke_elsewhere(server)
    # Reading still works for half a minute: tokens are cached that long.
    assert server.ask("GET", "/api/v1/clusters/c", token=token).status == 200
    answer = server.ask(method, path, body, token=token, headers={"Content-Type": "application/json"})
    assert (answer.status, answer.code) == (401, "unauthorized")
    assert server.ask("GET", "/api/v1/clusters/c", token=server.make_token("owen", "ours")).status == 200


@pytest.mark.parametrize("what", ["a token", "a member"])
def test_a_slow_request_fails_if_its_token_is_revoked_meanwhile(server: HostedServer, what: str) -> None:
    method, path, body = LASTING[what]
    token = server.make_token("olga", "ours")
    slow = slowly(body, lambda: revoke_elsewhere(server))
    answer = server.ask(method, path, slow, token=token, headers={"Content-Type": "application/json"})
    assert (answer.status, answer.code) == (401, "unauthorized")


def test_a_slow_request_fails_if_its_user_is_removed_meanwhile(server: HostedServer) -> None:
    def remove_olga() -> None:
        with server.services.archive.write() as tx:
            account, user = find_account(tx, "ours"), find_user(tx, "olga")
            assert account is not None
            assert user is not None
            assert remove_member(tx, account.id, user.id)

    method, path, body = LASTING["a member"]
    session = server.make_session("olga")
    slow, headers = slowly(body, remove_olga), {"Content-Type": "application/json"}
    answer = server.ask(method, f"{path}?account=ours", slow, session=session, headers=headers)
    assert (answer.status, answer.code) == (403, "no_account")


def test_a_recorder_token_made_with_a_revoked_token_is_invalid(server: HostedServer) -> None:
    token = server.make_token("olga", "ours")
    assert server.ask("GET", "/api/v1/clusters/c", token=token).status == 200
    revoke_elsewhere(server)
    made = server.ask("POST", "/api/v1/ingest-tokens", {"cluster": "late"}, token=token)
    assert made.status == 201
    assert server.send(sample_frames("late"), token=made.json()["token"]).status == 401
