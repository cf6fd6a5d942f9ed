"""The names under which a server answers, and the headers of every response."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest
from tests.helpers.hosted import HostedServer
from tests.helpers.samples import sample_frames

URL = "https://scope.example"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("names"), login=True, url=URL, hosts="inner.svc") as server:
        server.make_account("ours", olga="owner")
        yield server


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("scope.example", 200),
        ("scope.example:443", 200),
        ("SCOPE.example", 200),
        ("inner.svc:8780", 200),
        ("127.0.0.1", 403),
        ("scope.example.evil.test", 403),
        ("evil.test", 403),
        ("", 403),
    ],
)
def test_only_the_public_name_and_further_names_are_answered(server: HostedServer, host: str, status: int) -> None:
    token = server.make_token("olga", "ours")
    for path in ("/api/v1/me", "/", "/api/v1/openapi.json"):
        answer = server.ask("GET", path, token=token, headers={"Host": host})
        assert answer.status == status, path
    if status == 403:
        assert URL in server.ask("GET", "/api/v1/me", token=token, headers={"Host": host}).text


def test_probes_may_use_the_address_of_a_container(server: HostedServer) -> None:
    for path in ("/healthz", "/readyz"):
        assert server.ask("GET", path, headers={"Host": "10.1.2.3:8780"}).status == 200


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("scope.example", URL, 200),
        ("scope.example", "http://scope.example", 403),
        ("scope.example", "https://scope.example:8787", 403),
        ("scope.example", "https://evil.test", 403),
        ("inner.svc", "http://inner.svc", 200),
        ("inner.svc", "http://inner.svc:8787", 403),
    ],
)
def test_only_pages_of_the_server_change_something(server: HostedServer, host: str, origin: str, status: int) -> None:
    body = {"user": "olga", "password": "wrong password"}
    answer = server.ask("POST", "/api/v1/session", body=body, headers={"Host": host, "Origin": origin})
    # A page of the server gets as far as the wrong password.
    assert (answer.status == 403 and "page of another site" in answer.text) == (status == 403)


def test_every_response_has_the_protective_headers(server: HostedServer) -> None:
    token = server.make_token("olga", "ours")
    host = {"Host": "scope.example"}
    assert server.ask("POST", "/api/v1/ingest", body=sample_frames("c"), token=token, headers=host).status == 200
    script = next(
        part.partition('"')[0]
        for part in server.ask("GET", "/", headers=host).text.split('src="')[1:]
        if "assets" in part
    )
    for path in (
        "/",
        script,
        "/favicon.ico",
        "/healthz",
        "/api/v1/me",
        "/api/v1/clusters",
        "/nothing/at/all/here/it/is",
    ):
        found = server.ask("GET", path, token=token, headers=host).headers
        assert found["X-Content-Type-Options"] == "nosniff", path
        assert "default-src 'none'" in found["Content-Security-Policy"], path
        assert found["Cross-Origin-Resource-Policy"] == "same-origin", path
        assert "microphone=()" in found["Permissions-Policy"], path
        assert found["Strict-Transport-Security"] == "max-age=31536000", path


def test_a_live_stream_has_them_too(server: HostedServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    token = server.make_token("olga", "ours")
    connection.request("GET", "/api/v1/live", headers={"Host": "scope.example", "Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    assert answer.status == 200
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Strict-Transport-Security"]
    connection.close()


def test_without_https_browsers_are_not_told_to_insist_on_it(tmp_path: Path) -> None:
    with HostedServer(tmp_path) as server:
        assert "Strict-Transport-Security" not in server.ask("GET", "/healthz").headers


def test_administrators_see_the_warning_about_plain_text(tmp_path: Path) -> None:
    with HostedServer(tmp_path, login=True, host="0.0.0.0") as server:
        server.make_user("olga", admin=True)
        server.make_account("ours", olga="owner", bob="member")
        shown = {
            user: server.ask("GET", "/api/v1/me", token=server.make_token(user, "ours")).json()["warnings"]
            for user in ("olga", "bob")
        }
    assert "without TLS" in shown["olga"][0]
    assert shown["bob"] == []


def test_the_security_contact_is_published(tmp_path: Path) -> None:
    with HostedServer(tmp_path / "none") as server:
        answer = server.ask("GET", "/.well-known/security.txt")
        assert answer.status == 404
        assert "--security-contact" in answer.text
    with HostedServer(tmp_path / "some", security_contact="security@example.org") as server:
        lines = server.ask("GET", "/.well-known/security.txt").text.splitlines()
    assert lines[0] == "Contact: mailto:security@example.org"
    expires = datetime.strptime(lines[1], "Expires: %Y-%m-%dT%H:%M:%S%z")
    assert 0 < (expires - datetime.now(timezone.utc)).days < 365
