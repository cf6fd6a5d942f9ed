"""A real browser and a server with two names: 127.0.0.1 for the app, localhost for uploaded HTML. They are different origins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Request
from tests.browser.hostile_page import HOSTILE, Site, outcome
from tests.browser.support import sign_in
from tests.helpers.hosted import HostedServer
from tests.helpers.services import free_port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    port = free_port()
    urls: Any = {"url": f"http://127.0.0.1:{port}", "content_url": f"http://localhost:{port}"}
    with HostedServer(tmp_path_factory.mktemp("hosted"), login=True, port=port, **urls) as server:
        server.make_account("ours", olga="owner")
        yield server


@pytest.fixture(scope="module")
def uploaded(server: HostedServer) -> dict[str, Any]:
    """An uploaded hostile page that members and anyone with the link can open."""
    page = HOSTILE.replace("ORIGIN", f"'{server.url}'").encode()
    answer = server.ask("POST", "/api/v1/reports?visibility=public", page, token=server.make_token("olga", "ours"))
    made: dict[str, Any] = answer.json()
    return made


@pytest.fixture
def context(browser: Browser, server: HostedServer) -> Iterator[BrowserContext]:
    """A signed-in browser that also has a cookie for the origin of uploaded HTML."""
    with browser.new_context() as context:
        sign_in(context, server, "olga")
        context.add_cookies([{"name": "canary", "value": "readable", "url": server.settings.content_url}])
        yield context


@pytest.mark.parametrize("shared", [False, True], ids=["for members", "by its link"])
def test_a_report_is_shown_from_the_other_origin_and_has_no_access(
    server: HostedServer, uploaded: dict[str, Any], context: BrowserContext, shared: bool
) -> None:
    requests: list[Request] = []
    page = context.new_page()
    page.on("request", lambda request: requests.append(request))
    url = uploaded["url"] if shared else f"{server.url}/ours/reports/{uploaded['id']}"
    page.goto(url)
    page.wait_for_selector("iframe")
    frame = page.frames[1]

    assert outcome(frame) == {}
    assert (frame.title(), frame.evaluate("origin")) == ("hostile", "null")
    assert frame.url.startswith(f"{server.settings.content_url}/api/v1/content/")
    assert page.url == url
    content = [one.url for one in requests if urlsplit(one.url).hostname == "localhost"]
    assert content == [frame.url]
    assert [one.url for one in requests if one.url.endswith("/html")] == []


def test_opened_on_its_own_it_leads_to_the_page_with_the_frame(
    server: HostedServer, uploaded: dict[str, Any], context: BrowserContext
) -> None:
    token = server.make_token("olga", "ours")
    signed = server.ask("GET", f"/api/v1/reports/{uploaded['id']}/html/ticket", token=token).json()["url"]
    page = context.new_page()
    page.goto(signed)
    page.wait_for_selector("iframe")

    assert page.url == f"{server.url}/ours/reports/{uploaded['id']}"
    assert outcome(page.frames[1]) == {}


def test_other_sites_cannot_show_it(server: HostedServer, uploaded: dict[str, Any], context: BrowserContext) -> None:
    token = server.make_token("olga", "ours")
    signed = server.ask("GET", f"/api/v1/reports/{uploaded['id']}/html/ticket", token=token).json()["url"]
    with Site(f'<!doctype html><iframe src="{signed}"></iframe>') as site:
        page = context.new_page()
        page.goto(site)
        page.wait_for_load_state()

    assert [frame for frame in page.frames[1:] if frame.locator("pre").count()] == []
