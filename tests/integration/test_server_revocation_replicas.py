"""Two servers on one PostgreSQL: who loses access at one also loses it at the other, without waiting for its cache."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from tests.helpers.samples import sample_frames
from tests.helpers.server_process import ServerProcess, archive_of
from tests.helpers.services import Postgres
from tests.helpers.waiting import until

from daskscope.model.states import SCOPES, Role
from daskscope.server.relay import CHANNEL, LISTENER
from daskscope.storage.base.archive import Archive
from daskscope.storage.people.accounts import create_account, set_member
from daskscope.storage.people.sessions import NewSession, open_session
from daskscope.storage.people.tokens import create_token
from daskscope.storage.people.users import create_user

#: A server whose cache never forgets by itself, so that only a notification can end a cached token.
NEVER_FORGETS = {"daskscope.server.caches.CACHE_US": 10**15}


@dataclass(frozen=True)
class Team:
    """Two servers, and the credentials of an administrator, who owns an account, and of its member."""

    one: ServerProcess
    two: ServerProcess
    database: str
    account: str
    mia: str
    admin: str
    member: str
    member_token: int
    recorder: str
    session: NewSession


@dataclass(frozen=True)
class Pair:
    """Two servers of one database, and their storage."""

    one: ServerProcess
    two: ServerProcess
    database: str
    archive: Archive


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Pair]:
    tmp_path = tmp_path_factory.mktemp("pair")
    url, store, key = postgres.prepared(), str(tmp_path / "blobs"), tmp_path / "master.key"
    flags = ("--database", url, "--store", store, "--key-file", str(key), "--login")
    one, two = (ServerProcess(tmp_path / name, *flags, constants=NEVER_FORGETS) for name in ("one", "two"))
    one.start()
    two.start()
    archive = archive_of(tmp_path, database=url, store=store)
    try:
        yield Pair(one, two, url, archive)
    finally:
        archive.database.close()
        ended = one.stop(), two.stop()
        postgres.drop(url)
    assert ended == (0, 0)


@pytest.fixture
def team(pair: Pair) -> Team:
    """An account of its own for each test."""
    name = uuid.uuid4().hex[:8]
    mia_name = f"mia-{name}"
    with pair.archive.write() as tx:
        account = create_account(tx, name).id
        olga, mia = create_user(tx, f"olga-{name}", "", admin=True).id, create_user(tx, mia_name, "").id
        roles: dict[int, Role] = {olga: "owner", mia: "member"}
        for user, role in roles.items():
            set_member(tx, account, user, role)
        everything = frozenset(SCOPES)
        _, admin = create_token(tx, account=account, user=olga, scopes=everything, label="admin")
        number, member = create_token(tx, account=account, user=mia, scopes=everything, label="member")
        only = frozenset({"ingest"})
        _, recorder = create_token(tx, account=account, user=mia, scopes=only, label="", cluster="c", parent=number)
        session = open_session(tx, mia, "a test")
    return Team(pair.one, pair.two, pair.database, name, mia_name, admin, member, number, recorder, session)


def ask(server: ServerProcess, method: str, path: str, body: Any = None, **headers: str) -> int:
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"{server.url}/api/v1/{path}", data, sent, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def read(team: Team, server: ServerProcess) -> int:
    return ask(server, "GET", "clusters", **bearer(team.member))


def write(team: Team, server: ServerProcess) -> int:
    return ask(server, "POST", "ingest", sample_frames("c"), **bearer(team.recorder))


def read_with_session(team: Team, server: ServerProcess) -> int:
    cookie = f"daskscope_{server.port}={team.session.cookie}"
    return ask(server, "GET", f"clusters?account={team.account}", Cookie=cookie, Daskscope_Page=team.session.page)


def listeners(team: Team) -> list[int]:
    """Return the processes of PostgreSQL that wait for notifications of servers.

    The last statement of a connection is LISTEN, or after half a minute the check whether it still works.
    """
    with psycopg.connect(team.database) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = %s AND query IN (%s, 'SELECT 1')",
            (LISTENER, f"LISTEN {CHANNEL}"),
        )
        return [int(row[0]) for row in rows]


REVOCATIONS: dict[str, tuple[str, str, Any]] = {
    "the token is revoked": ("DELETE", "tokens/{token}", None),
    "the member is removed": ("DELETE", "members/{mia}", None),
    "the user is disabled": ("PATCH", "users/{mia}", {"disabled": True}),
}


@pytest.mark.parametrize("what", REVOCATIONS)
def test_reads_and_ingest_end_at_the_other_server(team: Team, what: str) -> None:
    until(lambda: len(listeners(team)) == 2, "the relays")
    assert (read(team, team.two), write(team, team.two)) == (200, 200)
    method, path, body = REVOCATIONS[what]

    assert ask(team.one, method, path.format(token=team.member_token, mia=team.mia), body, **bearer(team.admin)) == 200

    until(lambda: (read(team, team.two), write(team, team.two)) == (401, 401), "the revocation")


def test_a_new_role_counts_at_the_other_server(team: Team) -> None:
    until(lambda: len(listeners(team)) == 2, "the relays")
    assert write(team, team.two) == 200

    assert ask(team.one, "PUT", f"members/{team.mia}", {"role": "viewer"}, **bearer(team.admin)) == 200

    until(lambda: (read(team, team.two), write(team, team.two)) == (200, 403), "the new role")


def test_administrator_rights_end_at_the_other_server(team: Team) -> None:
    until(lambda: len(listeners(team)) == 2, "the relays")
    assert ask(team.one, "PUT", f"members/{team.mia}", {"role": "owner"}, **bearer(team.admin)) == 200
    assert ask(team.one, "PATCH", f"users/{team.mia}", {"admin": True}, **bearer(team.admin)) == 200
    until(lambda: ask(team.two, "GET", "users", **bearer(team.member)) == 200, "the rights")

    assert ask(team.one, "PATCH", f"users/{team.mia}", {"admin": False}, **bearer(team.admin)) == 200

    until(lambda: ask(team.two, "GET", "users", **bearer(team.member)) == 403, "the end of the rights")


def test_a_session_is_never_cached(team: Team) -> None:
    assert read_with_session(team, team.two) == 200
    cookie = f"daskscope_{team.one.port}={team.session.cookie}"
    page = {"Cookie": cookie, "Daskscope_Page": team.session.page, "Origin": team.one.url}
    assert ask(team.one, "DELETE", "session", **page) == 200
    assert read_with_session(team, team.two) == 401


def test_a_server_that_missed_a_revocation_forgets_its_tokens_once_it_listens_again(team: Team) -> None:
    until(lambda: len(listeners(team)) == 2, "the relays")
    assert read(team, team.two) == 200
    with psycopg.connect(team.database, autocommit=True) as connection:
        # They try again after five seconds.
        for process in listeners(team):
            connection.execute("SELECT pg_terminate_backend(%s)", (process,))
    until(lambda: listeners(team) == [], "the end of the connections")
    assert ask(team.one, "DELETE", f"tokens/{team.member_token}", **bearer(team.admin)) == 200

    until(lambda: len(listeners(team)) == 2, "the relays")

    until(lambda: read(team, team.two) == 401, "the revocation")
