"""Uploaded HTML on an origin of its own: what it serves, to whom, and for how long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.helpers.hosted import HostedServer, HttpResponse, MovingClock
from tests.helpers.samples import sample_recording
from tests.helpers.services import Hosting, free_port

from daskscope.server.http.content import MEMBER, SHARED, content_url, find_content
from daskscope.storage.catalog.reports import change_report, find_report

PAGE = b"<!doctype html><title>uploaded</title><p>classified"
FRAME = {"Sec-Fetch-Dest": "iframe"}


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def server(hosted: Hosting, tmp_path: Path, clock: MovingClock) -> Iterator[HostedServer]:
    """A server with two names, 127.0.0.1 for the app and localhost for uploaded HTML."""
    port = free_port()
    urls = {"url": f"http://127.0.0.1:{port}", "content_url": f"http://localhost:{port}"}
    with hosted(tmp_path / "data", login=True, clock=clock, port=port, **urls) as server:
        server.make_account("ours", olga="owner", mia="member")
        server.make_account("theirs", mallory="owner")
        yield server


def upload(server: HostedServer, visibility: str = "public", account: str = "ours", user: str = "olga") -> int:
    token = server.make_token(user, account)
    answer = server.ask("POST", f"/api/v1/reports?visibility={visibility}", PAGE, token=token)
    assert answer.status == 201
    return int(answer.json()["id"])


def link_of(server: HostedServer, report: int) -> str:
    """Return the path of a report's share link."""
    answer = server.ask("GET", f"/api/v1/reports/{report}", token=server.make_token("olga", "ours"))
    return str(urlsplit(answer.json()["url"]).path)


def url_for_member(server: HostedServer, report: int) -> str:
    session = server.make_session("mia")
    answer = server.ask("GET", f"/api/v1/reports/{report}/html/ticket?account=ours", session=session)
    assert answer.json()["ticket"] is None
    return str(answer.json()["url"])


def url_for_link(server: HostedServer, report: int) -> str:
    page = server.ask("GET", link_of(server, report)).text
    found = re.search(r'<iframe[^>]* src="([^"]+)"', page)
    assert found is not None
    return found[1]


def frame(server: HostedServer, url: str, **options: Any) -> HttpResponse:
    """Request a URL as a frame does, at the host that it names."""
    parts = urlsplit(url)
    headers = {"Host": parts.netloc, **FRAME, **options.pop("headers", {})}
    return server.ask("GET", f"{parts.path}?{parts.query}", headers=headers, **options)


def change(server: HostedServer, method: str, path: str, body: dict[str, Any] | None = None) -> None:
    assert server.ask(method, path, body, token=server.make_token("olga", "ours")).status == 200


@pytest.mark.parametrize("find", [url_for_member, url_for_link])
def test_a_frame_gets_the_page_from_the_other_origin_for_a_minute(
    server: HostedServer, clock: MovingClock, find: Any
) -> None:
    report = upload(server)
    url = find(server, report)
    assert url.startswith(f"{server.settings.content_url}/api/v1/content/")
    answer = frame(server, url)
    assert (answer.status, "classified" in answer.text) == (200, True)
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    clock.move(seconds=59)
    assert frame(server, url).status == 200
    clock.move(seconds=2)
    assert (frame(server, url).status, frame(server, url).code) == (404, "not_found")


def test_policies_name_the_other_origin_and_nothing_else(server: HostedServer) -> None:
    report = upload(server)

    def directive(answer: HttpResponse, name: str) -> list[str]:
        policy = [part.split() for part in answer.headers["Content-Security-Policy"].split(";")]
        return [word for words in policy if words[0] == name for word in words[1:]]

    for page in ("/", f"/ours/reports/{report}", link_of(server, report)):
        answer = server.ask("GET", page)
        assert directive(answer, "frame-src") == [server.settings.content_url]
        assert directive(answer, "frame-ancestors") == ["'none'"]
    content = frame(server, url_for_link(server, report))
    assert directive(content, "frame-ancestors") == [server.url]
    assert directive(content, "sandbox") == ["allow-scripts"]


def test_further_names_of_the_app_can_show_it(hosted: Hosting, tmp_path: Path) -> None:
    names = {"url": "https://scope.example:8443", "hosts": "inner.svc", "content_url": "https://content.example"}
    with hosted(tmp_path / "data", login=True, **names) as server:
        assert server.settings.page_origins == ["https://inner.svc:8443", "https://scope.example:8443"]


def test_behind_a_path_the_other_origin_has_none(hosted: Hosting, tmp_path: Path) -> None:
    names = {"url": "http://scope.example/dask", "root_path": "/dask", "content_url": "http://content.example"}
    with hosted(tmp_path / "data", login=True, **names) as server:
        account = server.make_account("ours", olga="owner")
        own, token = {"Host": "scope.example"}, server.make_token("olga", "ours")
        made = server.ask("POST", "/api/v1/reports?visibility=public", PAGE, token=token, headers=own).json()
        with server.services.archive.read() as tx:
            row = find_report(tx, account, made["id"])
            assert row is not None
            url = content_url(tx, server.settings, row, way=SHARED)
        assert url.startswith("http://content.example/api/v1/content/")
        assert "classified" in frame(server, url).text
        # Opened on its own it leads to the page with the frame.
        answer = frame(server, url, headers={"Sec-Fetch-Dest": "document"})
        assert (answer.status, answer.headers["Location"]) == (303, made["url"])
        assert made["url"].startswith("http://scope.example/dask/ours/reports/1/")


class TestAddress:
    @pytest.mark.parametrize("find", [url_for_member, url_for_link])
    def test_each_changed_part_makes_it_invalid(self, server: HostedServer, find: Any) -> None:
        first, second = upload(server), upload(server)
        url = find(server, first)
        base, _, address = url.rpartition("/")
        number, way, expires, signature = address.split(".")
        other = find(server, second).rpartition("/")[2].split(".")
        assert number != other[0]
        wrong = [
            (other[0], way, expires, signature),
            (number, way, expires, other[3]),
            (number, MEMBER if way == SHARED else SHARED, expires, signature),
            (number, "", expires, signature),
            (number, way, str(int(expires) - 1), signature),
            (number, way, str(int(expires) + 1), signature),
            (number, way, "9" * 16, signature),
            (number, way, expires, signature[:-1] + ("0" if signature[-1] != "0" else "1")),
            (number, way, expires, signature.upper()),
            (number, way, expires, ""),
            (number, way, expires, "%C3%A9"),
            (number, way, expires, signature, ""),
            (number, way, expires),
            ("9" * 30, way, expires, signature),
            ("x", "", "", ""),
        ]
        assert [frame(server, f"{base}/{'.'.join(parts)}").status for parts in wrong] == [404] * len(wrong)
        assert frame(server, url).status == 200

    def test_the_key_of_another_account_does_not_sign_it(self, server: HostedServer) -> None:
        report = upload(server, "private")
        upload(server, "private", "theirs", "mallory")
        answer = server.ask(
            "GET", "/api/v1/reports/1/html/ticket", token=server.make_token("mallory", "theirs")
        )  # fmt: skip
        theirs, ours = answer.json()["url"], url_for_member(server, report)
        assert theirs.rpartition("/")[2].split(".")[0] != ours.rpartition("/")[2].split(".")[0]
        forged = ".".join([*ours.split(".")[:-1], theirs.split(".")[-1]])
        assert (frame(server, forged).status, frame(server, ours).status) == (404, 200)

    def test_a_new_link_ends_it(self, server: HostedServer) -> None:
        report = upload(server)
        url = url_for_link(server, report)
        change(server, "PATCH", f"/api/v1/reports/{report}", {"new_link": True})
        assert frame(server, url).status == 404
        assert frame(server, url_for_link(server, report)).status == 200

    def test_the_end_of_sharing_ends_it_for_the_link_and_not_for_members(self, server: HostedServer) -> None:
        report = upload(server)
        by_link, by_member = url_for_link(server, report), url_for_member(server, report)
        change(server, "PATCH", f"/api/v1/reports/{report}", {"visibility": "private"})
        assert (frame(server, by_link).status, frame(server, by_member).status) == (404, 200)

    def test_the_link_of_a_private_report_does_not_count(self, server: HostedServer) -> None:
        report = upload(server)
        url = url_for_link(server, report)
        with server.services.archive.write() as tx:
            row = find_content(tx, url.rpartition("/")[2])
            assert row is not None
            change_report(tx, row[0].id, {"visibility": "private"})
        assert frame(server, url).status == 404

    def test_a_deleted_or_expired_report_ends_it(self, server: HostedServer, clock: MovingClock) -> None:
        deleted, expired = upload(server), upload(server)
        change(server, "PATCH", f"/api/v1/reports/{expired}", {"days_to_expire": 1})
        clock.move(seconds=86_400 - 30)
        urls = [find(server, report) for report in (deleted, expired) for find in (url_for_member, url_for_link)]
        assert [frame(server, url).status for url in urls] == [200] * 4
        change(server, "DELETE", f"/api/v1/reports/{deleted}")
        clock.move(seconds=31)
        assert [frame(server, url).status for url in urls] == [404] * 4

    def test_only_readers_of_the_account_get_one(self, server: HostedServer) -> None:
        report = upload(server, "private")
        path = f"/api/v1/reports/{report}/html/ticket"
        assert server.ask("GET", path).status == 401
        assert server.ask("GET", path, token=server.make_token("mallory", "theirs")).status == 404
        assert server.ask("GET", path, token=server.make_token("olga", "ours", "ingest")).status == 403

    def test_a_recording_has_none(self, server: HostedServer) -> None:
        token = server.make_token("olga", "ours")
        made = server.ask("POST", "/api/v1/reports", sample_recording(), token=token).json()
        assert server.ask("GET", f"/api/v1/reports/{made['id']}/html/ticket", token=token).status == 404


class TestHosts:
    def test_the_app_no_longer_serves_uploaded_html(self, server: HostedServer) -> None:
        report = upload(server)
        link = link_of(server, report)
        share = link.rpartition("/")[2]
        token = server.make_token("olga", "ours")
        for headers in ({}, FRAME, {"Sec-Fetch-Dest": "document"}):
            mine = server.ask("GET", f"/api/v1/reports/{report}/html", token=token, headers=headers)
            assert (mine.status, mine.headers["Location"]) == (303, f"/ours/reports/{report}")
            shared = server.ask("GET", f"/api/v1/shared/{share}/html", headers=headers)
            assert (shared.status, shared.headers["Location"]) == (303, link)
            assert b"classified" not in mine.body + shared.body

    def test_a_signed_address_is_valid_on_the_other_origin_only(self, server: HostedServer) -> None:
        url = url_for_member(server, upload(server))
        own = url.replace(server.settings.content_url, server.url)
        assert (frame(server, url).status, frame(server, own).status) == (200, 404)
        assert frame(server, own, session=server.make_session("mia")).status == 404

    def test_cookies_and_tokens_are_neither_needed_nor_accepted_nor_set(self, server: HostedServer) -> None:
        report = upload(server, "private")
        url = url_for_member(server, report)
        expired = url.replace(url.split(".")[-2], "1")
        for caller in ({}, {"session": server.make_session("olga")}, {"token": server.make_token("olga", "ours")}):
            assert (frame(server, url, **caller).status, frame(server, expired, **caller).status) == (200, 404)
        # Not even a wrong one is looked at.
        headers = {"Authorization": "Basic x", "Cookie": f"{server.cookie_name}=x"}
        answer = frame(server, url, headers=headers)
        assert (answer.status, answer.headers["Set-Cookie"]) == (200, None)

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
    def test_no_method_tells_what_exists_on_the_app(self, server: HostedServer, method: str) -> None:
        host = {"Host": urlsplit(server.settings.content_url).netloc}
        for path in ("/api/v1/me", "/api/v1/session", "/api/v1/tokens", "/healthz", "/login", "/nothing"):
            assert server.ask(method, path, headers=host).status == 404, path

    def test_nobody_signs_in_there(self, server: HostedServer) -> None:
        host = {"Host": urlsplit(server.settings.content_url).netloc, "Origin": server.settings.content_url}
        body = {"user": "olga", "password": "correct horse battery"}
        answer = server.ask("POST", "/api/v1/session", body, headers=host)
        assert (answer.status, answer.headers["Set-Cookie"]) == (404, None)

    def test_its_pages_cannot_change_anything_at_the_app(self, server: HostedServer) -> None:
        session = server.make_session("olga")
        origin = {"Origin": server.settings.content_url}
        answer = server.ask("POST", "/api/v1/tokens?account=ours", {"label": "x"}, session=session, headers=origin)
        assert (answer.status, "page of another site" in answer.text) == (403, True)

    def test_without_the_setting_there_is_no_such_route(self, hosted: Hosting, tmp_path: Path) -> None:
        with hosted(tmp_path / "plain", login=True) as server:
            account = server.make_account("ours", olga="owner")
            token = server.make_token("olga", "ours")
            made = server.ask("POST", "/api/v1/reports", PAGE, token=token).json()
            with server.services.archive.read() as tx:
                row = find_report(tx, account, made["id"])
                assert row is not None
                signed = content_url(tx, server.settings, row, way=MEMBER)
            assert server.ask("GET", signed, headers=FRAME).status == 404
            ticket = server.ask("GET", f"/api/v1/reports/{made['id']}/html/ticket", session=server.make_session("olga"))
            assert (ticket.json()["ticket"] is None, ticket.json()["url"]) == (False, None)
            answer = server.ask("GET", f"/api/v1/reports/{made['id']}/html", token=token, headers=FRAME)
            assert (answer.status, "classified" in answer.text) == (200, True)
            assert "frame-ancestors 'self'" in answer.headers["Content-Security-Policy"]
            assert "frame-src 'self'" in server.ask("GET", "/").headers["Content-Security-Policy"]
