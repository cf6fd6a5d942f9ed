"""Sign-in, setup and device approval: they work, show errors and are accessible."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.accessibility import APPEARANCES, take_picture, violations
from tests.browser.support import NARROW, WIDE, sign_in
from tests.helpers.hosted import PASSWORD, HostedServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("sign-in"), login=True) as server:
        server.make_account("ours", olga="owner")
        yield server


def start_device_sign_in(server: HostedServer, label: str = "laptop of olga") -> dict[str, Any]:
    answer: dict[str, Any] = server.ask("POST", "/api/v1/device", {"label": label, "host": "box.example"}).json()
    return answer


def enter_code(page: Page, code: str) -> None:
    page.locator("[name=user_code]").fill(code)
    page.get_by_role("button", name="Continue").click()


def collect_token(server: HostedServer, login: dict[str, Any]) -> int:
    return server.ask("POST", "/api/v1/device/token", f'{{"device_code": "{login["device_code"]}"}}'.encode()).status


@pytest.mark.parametrize(("button", "status"), [("Approve", 200), ("Deny", 403)])
def test_a_command_line_sign_in_is_approved_or_denied(
    browser: Browser, server: HostedServer, button: str, status: int
) -> None:
    login = start_device_sign_in(server)
    with browser.new_context() as context:
        page = context.new_page()
        # Without a session the page redirects to sign-in and back.
        page.goto(login["verification_url"])
        page.locator("[name=user]").fill("olga")
        page.locator("[name=password]").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        enter_code(page, login["user_code"])
        shown = page.get_by_test_id("device-request")
        expect(shown).to_contain_text("IP address127.0.0.1")
        expect(shown).to_contain_text("Host name (not verified)box.example")
        expect(shown).to_contain_text("Label (not verified)laptop of olga")
        expect(shown).to_contain_text("Scopesingest, read, write, admin")
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("status")).to_contain_text("Go back to your terminal")
    assert collect_token(server, login) == status


def test_an_unknown_code_is_refused_and_can_be_corrected(browser: Browser, server: HostedServer) -> None:
    with browser.new_context() as context:
        sign_in(context, server, "olga")
        page = context.new_page()
        page.goto(f"{server.url}/device")
        enter_code(page, "AAAA-AAAA")
        expect(page.get_by_role("alert")).to_contain_text("Codes expire after ten minutes")
        login = start_device_sign_in(server)
        enter_code(page, login["user_code"].lower())
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("status")).to_contain_text("Approved")


def test_a_link_with_a_code_fills_in_nothing(browser: Browser, server: HostedServer) -> None:
    login = start_device_sign_in(server)
    with browser.new_context() as context:
        sign_in(context, server, "olga")
        page = context.new_page()
        page.goto(f"{server.url}/device?code={login['user_code']}")
        expect(page.locator("[name=user_code]")).to_have_value("")
        expect(page.get_by_role("button", name="Approve")).to_have_count(0)


class OtherPort:
    """A server on another port of the same host, which keeps the cookies it receives."""

    def __init__(self, target: str) -> None:
        cookies: list[str] = []
        script = f"""<!doctype html><script>
        fetch("{target}/api/v1/me", {{credentials: "include"}}).then((r) => r.status, () => "refused").then((answer) => {{
          document.documentElement.dataset.seen = [answer, Object.keys(localStorage).length].join();
        }});</script>"""

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                cookies.append(self.headers.get("Cookie", ""))
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(script.encode())

            def log_message(self, *args: Any) -> None:
                pass

        self.cookies = cookies
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"

    def __enter__(self) -> OtherPort:
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def test_another_port_of_the_same_host_gets_the_cookie_but_cannot_use_it(
    browser: Browser, server: HostedServer
) -> None:
    with browser.new_context() as context, OtherPort(server.url) as other:
        page = context.new_page()
        page.goto(f"{server.url}/login")
        page.locator("[name=user]").fill("olga")
        page.locator("[name=password]").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_test_id("page-home")).to_be_visible()

        page.goto(other.url)
        page.wait_for_selector("html[data-seen]", state="attached")

        # Browsers do send it: this is what the page secret is for.
        stolen = next(cookie for cookie in other.cookies if server.cookie_name in cookie)
        for path in ("me", "clusters", "tokens", "live"):
            assert server.ask("GET", f"/api/v1/{path}", headers={"Cookie": stolen}).status == 401
        headers = {"Cookie": stolen, "Origin": server.origin}
        assert server.ask("POST", "/api/v1/tokens", {}, headers=headers).status == 401
        # Its page can neither call the server nor read the secret.
        assert page.evaluate("document.documentElement.dataset.seen") == "refused,0"


def test_a_wrong_password_shows_an_error_and_keeps_the_user_name(browser: Browser, server: HostedServer) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{server.url}/login")
        expect(page.locator("[name=user]")).to_be_focused()
        page.locator("[name=user]").fill("olga")
        page.locator("[name=password]").fill("not the password")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("Wrong name or password")
        expect(page.locator("[name=user]")).to_have_value("olga")


def test_setup_without_the_secret_says_which_link_to_open(browser: Browser, server: HostedServer) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{server.url}/setup")
        expect(page.get_by_text("Open the complete link")).to_be_visible()


@pytest.mark.parametrize(("theme", "size"), APPEARANCES, ids=[f"{theme}-{size[0]}" for theme, size in APPEARANCES])
def test_the_pages_are_accessible_and_fit_the_window(
    browser: Browser, server: HostedServer, theme: Any, size: tuple[int, int]
) -> None:
    assert size in (WIDE, NARROW)
    broken: dict[str, list[str]] = {}
    viewport: Any = {"width": size[0], "height": size[1]}
    with browser.new_context(viewport=viewport, color_scheme=theme, reduced_motion="reduce") as context:
        sign_in(context, server, "olga")
        for name, path in {"login": "/login", "setup": "/setup#secret", "device": "/device"}.items():
            page: Page = context.new_page()
            page.goto(server.url + path)
            expect(page.get_by_role("button").first).to_be_visible()
            take_picture(page, f"sign-in-{name}-{theme}-{size[0]}")
            if problems := violations(page):
                broken[name] = problems
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert broken == {}


def test_the_account_that_a_command_line_asks_for_is_preselected(browser: Browser, server: HostedServer) -> None:
    server.make_account("second", olga="member")
    login = server.ask("POST", "/api/v1/device", {"account": "second"}).json()
    with browser.new_context() as context:
        sign_in(context, server, "olga")
        page = context.new_page()
        page.goto(login["verification_url"])
        enter_code(page, login["user_code"])
        expect(page.locator("[name=account]")).to_have_value("second")
