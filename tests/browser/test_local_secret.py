"""A server without sign-in in a browser: the printed URL opens it, and the plain URL explains what to do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.helpers.hosted import HostedServer
from tests.helpers.samples import sample_frames


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("local")) as server:
        assert server.send(sample_frames("one")).status == 200
        yield server


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context() as context:
        yield context.new_page()


def test_the_printed_url_opens_the_server_and_the_secret_leaves_the_address(page: Page, server: HostedServer) -> None:
    requests: list[str] = []
    page.goto(server.entry)
    page.on("request", lambda request: requests.append(str(request.headers)))
    expect(page.get_by_test_id("page-home")).to_be_visible()
    expect(page).to_have_url(f"{server.url}/local")
    (cookie,) = page.context.cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (server.cookie_name, True, "Strict")

    # The browser stays open to the plain URL, as links in a notebook are, and never sends the secret again.
    page.goto(f"{server.url}/local/clusters/one")
    expect(page.get_by_test_id("details")).to_be_visible()
    stored = page.evaluate("JSON.stringify({...localStorage})")
    assert server.secret not in str(requests) + stored + str(cookie)
    page.go_back()
    page.go_back()
    assert server.secret not in page.url


def test_a_link_to_a_page_keeps_its_place(page: Page, server: HostedServer) -> None:
    page.goto(f"{server.url}/local/runs?since=all&secret={server.secret}")
    expect(page.locator("a.name")).to_have_count(1)
    expect(page).to_have_url(f"{server.url}/local/runs?since=all")


@pytest.mark.parametrize("address", ["/", "/local/clusters/one", "/?secret=wrong"])
def test_without_the_secret_the_page_says_what_to_open(page: Page, server: HostedServer, address: str) -> None:
    page.goto(server.url + address)
    shown = page.get_by_test_id("secret-needed")
    expect(shown.get_by_role("heading", name="Open the URL that daskscope serve printed")).to_be_visible()
    expect(shown).to_contain_text("local.secret")
    assert "secret=" not in page.url


def test_uploaded_html_is_shown_in_its_frame(page: Page, server: HostedServer) -> None:
    number = server.ask("POST", "/api/v1/reports?title=mine", b"<!doctype html><p>mine").json()["id"]
    page.goto(server.entry)
    expect(page.get_by_test_id("page-home")).to_be_visible()
    page.goto(f"{server.url}/local/reports/{number}")
    expect(page.frame_locator("iframe").get_by_text("mine")).to_be_visible()
