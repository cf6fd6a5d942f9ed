"""The audit log: what is in it, who sees it, and what is never in it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.compared_runs import measured_run
from tests.helpers.hosted import PASSWORD, HostedServer, MovingClock
from tests.helpers.samples import sample_frames
from tests.helpers.services import Hosting

from daskscope.server.http.passwords import MAX_ATTEMPTS
from daskscope.storage import schema
from daskscope.storage.runs.retention import Limits, apply_retention

pytestmark = pytest.mark.each_database


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def server(hosted: Hosting, tmp_path: Path, clock: MovingClock) -> Iterator[HostedServer]:
    with hosted(tmp_path / "data", login=True, clock=clock) as server:
        server.make_user("ada", admin=True)
        server.make_account("ours", olga="owner", ada="owner", mia="member")
        server.make_account("theirs", mallory="owner")
        yield server


def events(server: HostedServer, user: str = "ada", query: str = "") -> list[dict[str, Any]]:
    answer = server.ask("GET", f"/api/v1/audit?account=ours{query}", session=server.make_session(user))
    assert answer.status == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def actions(server: HostedServer, user: str = "ada") -> list[str]:
    return [item["action"] for item in reversed(events(server, user))]


def test_changes_of_an_account_are_recorded_with_who_did_them_and_from_where(server: HostedServer) -> None:
    session = server.make_session("olga")
    ask = server.ask
    made = ask("POST", "/api/v1/tokens", {"label": "nightly"}, session=session).json()
    ask("DELETE", f"/api/v1/tokens/{made['id']}", session=session)
    ask("PUT", "/api/v1/members/mallory", {"role": "viewer"}, session=session)
    ask("PUT", "/api/v1/members/mallory", {"role": "member"}, session=session)
    ask("DELETE", "/api/v1/members/mallory", session=session)
    ask("PATCH", "/api/v1/preferences", {"core_hour": 0.5}, session=session)
    report = ask("POST", "/api/v1/reports?visibility=private", b"<!doctype html>", session=session).json()
    ask("PATCH", f"/api/v1/reports/{report['id']}", {"visibility": "public"}, session=session)
    ask("DELETE", f"/api/v1/reports/{report['id']}", session=session)
    ask("PUT", "/api/v1/baselines/main/test-a", {"runs": [measured_run(1).to_dict()]}, session=session)
    ask("DELETE", "/api/v1/baselines/main/test-a", session=session)
    assert server.send(sample_frames("c"), token=server.make_token("olga", "ours")).status == 200
    ask("PATCH", "/api/v1/clusters/c", {"name": "renamed"}, session=session)
    assert ask("POST", "/api/v1/clusters/c/close", session=session).status == 200
    ask("DELETE", "/api/v1/clusters/c", session=session)

    found = list(reversed(events(server, "olga")))
    assert [item["action"] for item in found] == [
        "token-created", "token-revoked", "member-added", "role-changed", "member-removed", "settings-changed",
        "report-created", "report-shared", "report-deleted", "baseline-deleted", "cluster-changed", "cluster-closed",
        "cluster-deleted",
    ]  # fmt: skip
    assert {(item["user"], item["address"], item["server"]) for item in found} == {("olga", "127.0.0.1", False)}
    assert found[3]["subject"] == "mallory"
    assert found[3]["details"] == {"before": "viewer", "role": "member"}
    assert found[5]["details"] == {"core_hour": 0.5}


def test_sign_ins_failures_and_lockouts_are_recorded_for_administrators(server: HostedServer) -> None:
    def sign_in(user: str, password: str) -> str:
        return server.ask("POST", "/api/v1/session", {"user": user, "password": password}).cookie

    session = sign_in("mia", PASSWORD)
    server.ask("DELETE", "/api/v1/session", session=session)
    for _ in range(MAX_ATTEMPTS + 2):
        sign_in("mia", "wrong password")
    found = list(reversed(events(server)))
    expected = ["sign-in", "sign-out", *["sign-in-failed"] * MAX_ATTEMPTS, "locked-out"]
    assert [item["action"] for item in found] == expected
    assert found[-1]["subject"] == "127.0.0.1"
    assert actions(server, "olga") == []


def test_changes_of_users_are_recorded_for_administrators(server: HostedServer) -> None:
    session = server.make_session("ada")
    server.ask("POST", "/api/v1/users", {"name": "eve", "password": PASSWORD}, session=session)
    for change in ({"admin": True}, {"admin": False}, {"disabled": True}, {"disabled": False}):
        server.ask("PATCH", "/api/v1/users/eve", change, session=session)
    server.ask("POST", "/api/v1/users/eve/sign-in-link", session=session)
    link = server.ask("POST", "/api/v1/users/eve/password-reset", session=session).json()["url"]
    secret = link.rpartition(":")[2]
    server.ask("POST", "/api/v1/session/link", {"secret": secret, "password": "a new password"})
    server.ask("POST", "/api/v1/accounts", {"name": "more"}, session=session)
    assert actions(server) == [
        "user-created", "admin-granted", "admin-removed", "user-disabled", "user-enabled", "sign-in-link-created",
        "password-reset", "password-changed", "sign-in", "account-created",
    ]  # fmt: skip


def test_an_approved_command_line_is_recorded_with_where_it_is(server: HostedServer) -> None:
    begun = server.ask("POST", "/api/v1/device", {"label": "mia@laptop", "host": "laptop"}).json()
    decision = {"user_code": begun["user_code"], "account": "ours"}
    server.ask("POST", "/api/v1/device/decision", decision, session=server.make_session("mia"))
    server.ask("POST", "/api/v1/device/token", {"device_code": begun["device_code"]})
    found = list(reversed(events(server, "olga")))
    assert [(item["action"], item["user"], item["subject"]) for item in found] == [
        ("device-approved", "mia", "mia@laptop"),
        ("token-created", "mia", "mia@laptop"),
    ]
    assert found[0]["details"] == {"address": "127.0.0.1", "host": "laptop"}


def test_the_setup_and_ended_sessions_are_recorded(hosted: Hosting, tmp_path: Path) -> None:
    with hosted(tmp_path / "new", login=True) as server:
        secret = server.set_up.partition("#")[2]
        body = {"secret": secret, "user": "ada", "password": PASSWORD, "team": "ours"}
        session = server.ask("POST", "/api/v1/setup", body).cookie
        server.make_session("ada")
        items = server.ask("GET", "/api/v1/me/sessions", session=session).json()["items"]
        other = next(item["id"] for item in items if not item["current"])
        server.ask("DELETE", f"/api/v1/me/sessions/{other}", session=session)
        assert actions(server) == ["setup", "sign-in", "session-ended"]


def test_a_refused_change_is_not_recorded(server: HostedServer) -> None:
    assert server.ask("DELETE", "/api/v1/members/nobody", session=server.make_session("olga")).status == 404
    answer = server.ask("PATCH", "/api/v1/users/ada", {"disabled": True}, session=server.make_session("ada"))
    assert answer.status == 400
    assert actions(server) == []


def test_only_owners_read_it_and_only_their_account(server: HostedServer) -> None:
    server.ask("POST", "/api/v1/tokens", {}, session=server.make_session("mallory"))
    assert server.ask("GET", "/api/v1/audit", session=server.make_session("mia")).status == 403
    assert actions(server, "olga") == []


def test_it_is_paged_and_filtered_by_action(server: HostedServer) -> None:
    session = server.make_session("olga")
    for number in range(5):
        server.ask("POST", "/api/v1/tokens", {"label": str(number)}, session=session)
    server.ask("PATCH", "/api/v1/preferences", {"core_hour": 1}, session=session)
    subjects, cursor = list[str](), ""
    while True:
        path = f"/api/v1/audit?action=token-created&limit=2&cursor={cursor}"
        page = server.ask("GET", path, session=session).json()
        subjects += [item["subject"] for item in page["items"]]
        if page["next"] is None:
            break
        cursor = page["next"]
    assert subjects == ["4", "3", "2", "1", "0"]
    assert server.ask("GET", "/api/v1/audit?action=nothing", session=session).status == 400


def test_no_secret_is_stored_or_logged(server: HostedServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "daskscope.audit")
    ask = server.ask
    # People type their password into the field of the name.
    ask("POST", "/api/v1/session", {"user": "my secret password", "password": "x"})
    signed_in = ask("POST", "/api/v1/session", {"user": "olga", "password": PASSWORD})
    session = signed_in.cookie
    secrets = ["my secret password", PASSWORD, session, signed_in.json()["page_secret"], "a new password"]
    secrets.append(ask("POST", "/api/v1/tokens?account=ours", {}, session=session).json()["token"])
    link = ask("POST", "/api/v1/members/mia/sign-in-link?account=ours", session=session).json()["url"]
    secrets.append(link.rpartition(":")[2])
    ask("POST", "/api/v1/me/password", {"old": PASSWORD, "new": "a new password"}, session=session)
    with server.services.archive.read() as tx:
        rows = tx.execute(sa.select(schema.audit_events)).all()
    lines = [record.getMessage() for record in caplog.records if record.name == "daskscope.audit"]
    assert len(rows) == len(lines) == 5
    assert [secret for secret in secrets if secret in repr(rows) + repr(lines)] == []


def test_each_event_is_one_line_of_json_in_the_log(server: HostedServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "daskscope.audit")
    server.ask("POST", "/api/v1/tokens", {"label": "two\nlines"}, session=server.make_session("olga"))
    (line,) = [record.getMessage() for record in caplog.records if record.name == "daskscope.audit"]
    assert "\n" not in line
    logged = json.loads(line)
    assert (logged["user"], logged["action"], logged["subject"]) == ("olga", "token-created", "two\nlines")


def test_events_are_kept_for_400_days(server: HostedServer, clock: MovingClock) -> None:
    session = server.make_session("olga")
    server.ask("PATCH", "/api/v1/preferences", {"core_hour": 1}, session=session)
    clock.move(days=399)
    apply_retention(server.services.archive, Limits(90, 730), server.services.archive.clock())
    assert actions(server) == ["settings-changed"]
    clock.move(days=2)
    apply_retention(server.services.archive, Limits(90, 730), server.services.archive.clock())
    assert actions(server) == []
