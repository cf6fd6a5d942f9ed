"""``daskscope open``: one page on loopback, for whoever has its address."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from daskscope.cli.main import main
from daskscope.cli.open import Page, Server, load

GOLDEN = Path(__file__).parents[1] / "data" / "recordings" / "v1.daskscope"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(Page(b"<p>page</p>", "page", is_foreign=False), 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def response(server: Server, path: str) -> tuple[str, bytes]:
    """Return the policy and the body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    found = answer.headers["Content-Security-Policy"], answer.read()
    connection.close()
    return found


def get(server: Server, path: str, host: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_the_page_is_served_under_its_address(server: Server) -> None:
    assert get(server, server.secret) == (200, b"<p>page</p>")
    assert server.url == f"http://127.0.0.1:{server.server_port}{server.secret}"


@pytest.mark.parametrize("path", ["/", "/wrong/", "/../", "/%00", "/%C3%BC"])
def test_other_addresses_are_not_found(server: Server, path: str) -> None:
    assert get(server, path)[0] == 404


def test_a_foreign_host_gets_nothing(server: Server) -> None:
    assert get(server, server.secret, host="evil.example")[0] == 404


def test_a_recording_becomes_a_page_and_a_report_stays_one(tmp_path: Path) -> None:
    page = load(GOLDEN)
    assert b"daskscope-report" in page.data
    assert not page.is_foreign
    report = tmp_path / "report.html"
    report.write_bytes(page.data)
    assert load(report) == Page(page.data, "report", is_foreign=True)


def test_a_page_of_others_is_shown_in_a_sandbox() -> None:
    with Server(Page(b"<!doctype html><script>theirs</script>", "<b>", is_foreign=True), 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        frame, page = response(server, server.secret), response(server, f"{server.secret}page")
        elsewhere = get(server, "/page")[0]
        server.shutdown()
        thread.join()
    assert b'<iframe sandbox="allow-scripts"' in frame[1]
    assert b"<b>" not in frame[1]
    assert b"theirs" not in frame[1]
    assert "frame-src 'self'" in frame[0]
    assert page[0].startswith("sandbox allow-scripts;")
    assert page[1].startswith(b"<!doctype html><script>(() =>")
    assert page[1].endswith(b"<script>theirs</script>")
    assert elsewhere == 404


def test_what_is_no_recording_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["open", str(tmp_path / "no.daskscope")]) == 1
    assert "no.daskscope" in capsys.readouterr().err
