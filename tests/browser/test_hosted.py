"""A real browser and server: uploaded hostile pages have no access, and our own pages work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.browser.hostile_page import HOSTILE, Site, outcome
from tests.browser.support import settled, sign_in
from tests.helpers.hosted import PASSWORD, HostedServer
from tests.helpers.samples import sample_frames, sample_recording

from daskscope import open_recording
from daskscope.report.document import report_page

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("hosted"), login=True) as server:
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
    """A signed-in browser with cookies and storage to steal."""
    with browser.new_context() as context:
        sign_in(context, server, "olga")
        context.add_cookies([{"name": "canary", "value": "readable", "url": server.url}])
        page = context.new_page()
        page.goto(f"{server.url}/login")
        page.evaluate("localStorage.setItem('canary', 'readable')")
        assert page.evaluate("document.cookie") == "canary=readable"
        page.close()
        yield context


def request_counts(server: HostedServer) -> dict[str, float]:
    """Count the requests that a hostile page would send, as seen by the server."""
    names = ("me", "create_token", "live", "healthz")
    return {
        label: n
        for kind, label, n in server.services.counters.items()
        if kind == "requests" and label.split()[0] in names
    }


def ready(page: Page) -> None:
    # wait_for_function would violate our content security policy.
    page.wait_for_selector("html[data-ready='1']", state="attached")


def ticket_for(server: HostedServer, context: BrowserContext, uploaded: dict[str, Any]) -> str:
    """Return the query with which our page opens the uploaded HTML."""
    cookie = next(c["value"] for c in context.cookies(server.url) if c["name"] == server.cookie_name)
    answer = server.ask("GET", f"/api/v1/reports/{uploaded['id']}/html/ticket", session=cookie)
    return f"?ticket={answer.json()['ticket']}"


class TestHostilePage:
    @pytest.mark.parametrize(
        "place",
        [
            "/api/v1/reports/{id}/html",
            "/api/v1/shared/{share}/html",
        ],
    )
    def test_opened_directly_it_is_shown_in_its_frame(
        self, server: HostedServer, uploaded: dict[str, Any], context: BrowserContext, place: str
    ) -> None:
        page = context.new_page()
        address = place.format(id=uploaded["id"], share=uploaded["url"].rpartition("/")[2])
        page.goto(server.url + address + ticket_for(server, context, uploaded))
        page.wait_for_selector("iframe")

        assert "/html" not in page.url
        assert outcome(page.frames[1]) == {}
        assert page.frames[1].evaluate("origin") == "null"

    @pytest.mark.parametrize("shared", [False, True], ids=["for members", "by its link"])
    def test_embedded_in_our_page_it_has_no_access(
        self, server: HostedServer, uploaded: dict[str, Any], context: BrowserContext, shared: bool
    ) -> None:
        before = request_counts(server)
        page = context.new_page()
        url = uploaded["url"] if shared else f"{server.url}/ours/reports/{uploaded['id']}"
        page.goto(url)
        page.wait_for_selector("iframe")
        frame = page.frames[1]

        assert outcome(frame) == {}
        assert frame.evaluate("origin") == "null"
        assert page.url == url
        # The app requests the user and live changes; a shared page requests nothing.
        own = {} if shared else {"me 2xx": 1, "live 2xx": 1}
        more = {
            label: n - before.get(label, 0) for label, n in request_counts(server).items() if n != before.get(label, 0)
        }
        assert {label: n for label, n in more.items() if n > own.get(label, 0)} == {}

    def test_opened_from_our_page_it_cannot_access_its_opener(
        self, server: HostedServer, uploaded: dict[str, Any], context: BrowserContext
    ) -> None:
        page = context.new_page()
        page.goto(f"{server.url}/login")
        with context.expect_page() as opened:
            address = f"{server.url}/api/v1/reports/{uploaded['id']}/html{ticket_for(server, context, uploaded)}"
            page.evaluate("url => { window.open(url); }", address)

        opened.value.wait_for_selector("iframe")
        assert outcome(opened.value.frames[1]) == {}

    def test_a_browser_that_does_not_say_what_it_wants_gets_the_sandbox_as_well(
        self, server: HostedServer, uploaded: dict[str, Any]
    ) -> None:
        token = server.make_token("olga", "ours")
        answer = server.ask("GET", f"/api/v1/reports/{uploaded['id']}/html", token=token)
        assert answer.status == 200
        assert answer.headers["Content-Security-Policy"].startswith("sandbox allow-scripts;")
        assert "allow-popups" not in answer.headers["Content-Security-Policy"]

    def test_other_sites_cannot_embed_our_pages(
        self, server: HostedServer, uploaded: dict[str, Any], context: BrowserContext
    ) -> None:
        places = ("/login", "/device", f"/ours/reports/{uploaded['id']}", f"/api/v1/reports/{uploaded['id']}/html")
        frames = "".join(f'<iframe src="{server.url}{place}"></iframe>' for place in places)
        with Site(f"<!doctype html>{frames}") as site:
            page = context.new_page()
            page.goto(site)
            page.wait_for_load_state()

        shown = [frame for frame in page.frames[1:] if frame.locator("form, iframe, pre").count()]
        assert shown == []


def stolen(server: HostedServer) -> list[Any]:
    items = server.ask("GET", "/api/v1/tokens", session=server.make_session("olga")).json()["items"]
    return [item for item in items if item["label"] != "made by a test"]


class TestCrossSite:
    def test_another_site_cannot_use_the_cookies_of_its_visitor(
        self, server: HostedServer, context: BrowserContext
    ) -> None:
        script = f"""<!doctype html><script>
        const ask = (path, how) => fetch("{server.url}" + path, {{credentials: "include", mode: "no-cors", ...how}});
        Promise.allSettled([
          ask("/api/v1/tokens", {{method: "POST", body: '{{"label": "stolen"}}'}}),
          ask("/api/v1/session", {{method: "POST", body: '{{"user": "olga", "password": "{PASSWORD}"}}'}}),
          fetch("{server.url}/api/v1/session", {{credentials: "include", method: "DELETE"}}),
          fetch("{server.url}/api/v1/me", {{credentials: "include"}}),
        ]).then((all) => {{ document.documentElement.dataset.done = all.map((one) => one.status).join(); }});
        </script>"""
        with Site(script) as site:
            page = context.new_page()
            page.goto(site)
            page.wait_for_selector("html[data-done]", state="attached")
            # Browsers hide the responses to no-cors requests; the server refused them.
            assert (
                page.evaluate("document.documentElement.dataset.done.split(',').slice(2).join()") == "rejected,rejected"
            )

        assert stolen(server) == []
        cookies = {cookie["name"] for cookie in context.cookies(server.url)}
        assert server.cookie_name in cookies


class TestOurPages:
    def watched(self, context: BrowserContext) -> tuple[Page, list[str]]:
        page, problems = context.new_page(), list[str]()
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("response", lambda r: problems.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        return page, problems

    def test_a_hosted_recording_is_shown(self, server: HostedServer, context: BrowserContext) -> None:
        token = server.make_token("olga", "ours")
        report = server.ask("POST", "/api/v1/reports?visibility=public", sample_recording(), token=token).json()
        page, problems = self.watched(context)
        for url in (report["url"], f"{server.url}/ours/reports/{report['id']}"):
            page.goto(url)
            ready(page)
            page.get_by_test_id("nav-stream").click()
            expect(settled(page, "stream").locator("canvas").first).to_be_visible()
        assert problems == []

    def test_our_uploaded_report_is_shown_in_the_sandbox(
        self, server: HostedServer, context: BrowserContext, tmp_path: Path
    ) -> None:
        (tmp_path / "run.daskscope").write_bytes(sample_recording())
        made = report_page(open_recording(tmp_path / "run.daskscope"), title="ours")
        report = server.ask("POST", "/api/v1/reports", made, token=server.make_token("olga", "ours")).json()
        page, problems = self.watched(context)
        page.goto(f"{report['url']}")
        frame = page.frames[1]
        frame.wait_for_selector("html[data-ready='1']", state="attached")
        frame.get_by_test_id("nav-stream").click()
        expect(frame.get_by_test_id("view-stream").locator("canvas").first).to_be_visible()
        # Frames must not autofocus a field.
        assert [problem for problem in problems if "autofocus" not in problem] == []

    def test_an_uploaded_dask_report_is_shown_in_the_sandbox(
        self, server: HostedServer, context: BrowserContext
    ) -> None:
        dasks = (ROOT / "tests" / "data" / "dask-reports" / "bokeh3.html").read_bytes()
        report = server.ask("POST", "/api/v1/reports", dasks, token=server.make_token("olga", "ours")).json()
        page = context.new_page()
        page.goto(report["url"])
        assert page.frames[1].evaluate("origin") == "null"
        assert page.frames[1].locator("body").count() == 1

    def test_a_cluster_and_its_computation_are_shown(self, server: HostedServer, context: BrowserContext) -> None:
        assert server.send(sample_frames("shown"), token=server.make_token("olga", "ours")).status == 200
        page, problems = self.watched(context)
        for place in ("/ours/clusters/shown#profile", "/ours/clusters/shown/computations/sample-comp"):
            page.goto(server.url + place)
            ready(page)
        assert problems == []

    def test_sign_in_leads_back_to_the_requested_page(self, server: HostedServer, browser: Browser) -> None:
        assert server.send(sample_frames("wanted"), token=server.make_token("olga", "ours")).status == 200
        with browser.new_context() as context:
            page, problems = self.watched(context)
            page.goto(f"{server.url}/ours/clusters/wanted")
            self.sign_in(page)
            page.wait_for_url(f"{server.url}/ours/clusters/wanted*")
            expect(page.get_by_test_id("page-cluster")).to_be_visible()
            # The request for the current user returns 401 before sign-in.
            assert [problem for problem in problems if "401" not in problem] == []

    @pytest.mark.parametrize(
        "following",
        ["//127.0.0.1:9", "/\\127.0.0.1:9", "/%09/127.0.0.1:9", "http:127.0.0.1:9", "javascript:alert(1)", "%0A//x"],
    )
    def test_sign_in_never_redirects_to_another_site(
        self, server: HostedServer, browser: Browser, following: str
    ) -> None:
        with browser.new_context() as context:
            page = context.new_page()
            page.goto(f"{server.url}/login?next={following}")
            self.sign_in(page)
            page.wait_for_url(lambda url: "/login" not in url)
            assert page.evaluate("location.origin") == server.url

    def test_the_setup_link_creates_the_first_user(self, browser: Browser, tmp_path: Any) -> None:
        with HostedServer(tmp_path, login=True) as fresh, browser.new_context() as context:
            page, problems = self.watched(context)
            page.goto(fresh.set_up)
            for name, value in (("user", "ada"), ("password", PASSWORD), ("team", "lovelace")):
                page.locator(f"[name={name}]").fill(value)
            page.get_by_role("button").click()
            page.wait_for_url(f"{fresh.url}/lovelace")
            expect(page.get_by_text("No clusters recorded yet")).to_be_visible()
            cookie = next(c for c in context.cookies() if c["name"] == fresh.cookie_name)
            assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
            assert problems == []

    def sign_in(self, page: Page) -> None:
        page.locator("[name=user]").fill("olga")
        page.locator("[name=password]").fill(PASSWORD)
        page.get_by_role("button").click()

    def test_a_command_line_sign_in_is_approved(self, server: HostedServer, context: BrowserContext) -> None:
        begun = server.ask("POST", "/api/v1/device", {"label": "olga@<b>laptop</b>"}).json()
        page, problems = self.watched(context)
        page.goto(begun["verification_url"])
        page.locator("[name=user_code]").fill(begun["user_code"])
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_test_id("device-request")).to_contain_text("olga@<b>laptop</b>")
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("status")).to_contain_text("Go back to your terminal")
        collected = server.ask("POST", "/api/v1/device/token", {"device_code": begun["device_code"]}).json()
        assert collected["account"] == "ours"
        assert problems == []
