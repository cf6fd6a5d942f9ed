"""The pages on which people say who they are: they work, look well, and say what went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.support import NARROW, WIDE
from tests.browser.test_looks import violations
from tests.browser.test_team import AXE, LOOKS, PICTURES, log_in

from daskscope.testing.hosted import PASSWORD, HostedServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("entrance"), login=True) as server:
        server.make_account("ours", olga="owner")
        yield server


def begun(server: HostedServer, label: str = "laptop of olga") -> dict[str, Any]:
    body = f'{{"label": "{label}"}}'.encode()
    answer: dict[str, Any] = server.ask("POST", "/api/v1/device", body).json()
    return answer


def collected(server: HostedServer, login: dict[str, Any]) -> int:
    return server.ask("POST", "/api/v1/device/token", f'{{"device_code": "{login["device_code"]}"}}'.encode()).status


@pytest.mark.parametrize(("button", "status"), [("Confirm", 200), ("Deny", 403)])
def test_a_command_line_is_confirmed_or_denied(
    browser: Browser, server: HostedServer, button: str, status: int
) -> None:
    login = begun(server)
    with browser.new_context() as context:
        page = context.new_page()
        # Not logged in yet: that comes first, and leads back.
        page.goto(login["verification_url"])
        page.locator("[name=user]").fill("olga")
        page.locator("[name=password]").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_test_id("page-entrance")).to_contain_text("laptop of olga asks for a token")
        expect(page.locator("[name=user_code]")).to_have_value(login["user_code"])
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("status")).to_contain_text("Go back to your terminal")
    assert collected(server, login) == status


def test_a_code_that_nobody_waits_for_is_refused_and_can_be_typed_again(browser: Browser, server: HostedServer) -> None:
    with browser.new_context() as context:
        log_in(context, server, "olga")
        page = context.new_page()
        page.goto(f"{server.url}/device?code=AAAA-AAAA")
        page.get_by_role("button", name="Confirm").click()
        expect(page.get_by_role("alert")).to_contain_text("codes last ten minutes")
        login = begun(server)
        page.locator("[name=user_code]").fill(login["user_code"].lower())
        page.get_by_role("button", name="Confirm").click()
        expect(page.get_by_role("status")).to_contain_text("Confirmed")


def test_a_wrong_password_is_said_and_keeps_what_was_typed(browser: Browser, server: HostedServer) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{server.url}/login")
        expect(page.locator("[name=user]")).to_be_focused()
        page.locator("[name=user]").fill("olga")
        page.locator("[name=password]").fill("not the password")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("is not right")
        expect(page.locator("[name=user]")).to_have_value("olga")


def test_set_up_without_its_secret_says_where_the_link_is(browser: Browser, server: HostedServer) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{server.url}/setup")
        expect(page.get_by_text("Open the whole link")).to_be_visible()


@pytest.mark.parametrize(("theme", "size"), LOOKS, ids=[f"{theme}-{size[0]}" for theme, size in LOOKS])
def test_how_they_look(browser: Browser, server: HostedServer, theme: Any, size: tuple[int, int]) -> None:
    assert size in (WIDE, NARROW)
    if not AXE.exists():
        pytest.skip("NO ACCESSIBILITY TESTS: axe-core is not installed; run npm ci in web/")
    axe = AXE.read_text(encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    broken: dict[str, list[str]] = {}
    viewport: Any = {"width": size[0], "height": size[1]}
    with browser.new_context(viewport=viewport, color_scheme=theme, reduced_motion="reduce") as context:
        log_in(context, server, "olga")
        for name, path in {"login": "/login", "setup": "/setup#secret", "device": "/device?code=AAAA-BBBB"}.items():
            page: Page = context.new_page()
            page.goto(server.url + path)
            expect(page.get_by_role("button").first).to_be_visible()
            page.screenshot(path=PICTURES / f"entrance-{name}-{theme}-{size[0]}.png", full_page=True)
            if problems := violations(page, axe):
                broken[name] = problems
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert broken == {}
