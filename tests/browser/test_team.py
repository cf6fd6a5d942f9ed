"""The web app on a real server: key questions within two clicks, live pages, roles, hostile names, appearance."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, TimeoutError, expect
from tests.browser.accessibility import APPEARANCES, take_picture, violations
from tests.browser.support import NARROW, WIDE, sign_in
from tests.helpers.hosted import PASSWORD, HostedServer
from tests.helpers.hostile import HOSTILE
from tests.helpers.samples import sample_frames, sample_recording, sample_tables

from daskscope.testing import make_frames

PAGES = {
    "home": "/ours",
    "runs": "/ours/runs",
    "cluster": "/ours/clusters/one",
    "cluster-profile": "/ours/clusters/one#profile",
    "computation": "/ours/clusters/one/computations/sample-comp",
    "what-if": "/ours/clusters/one/computations/sample-comp/what-if",
    "errors": "/ours/errors",
    "reports": "/ours/reports",
    "usage": "/ours/usage",
    "settings": "/ours/settings",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("team"), login=True) as server:
        server.make_account("ours", olga="owner", mia="member", vera="viewer")
        server.make_account("empty", olga="owner")
        token = server.make_token("olga", "ours")
        assert server.send(sample_frames("one"), token=token).status == 200
        assert (
            server.send(
                b"".join(make_frames(sample_tables("done", "other", ended=True), cluster="done")), token=token
            ).status
            == 200
        )
        assert server.ask("POST", "/api/v1/reports?title=hosted", sample_recording(), token=token).status == 201
        yield server


@pytest.fixture(scope="module")
def context(browser: Browser, server: HostedServer) -> Iterator[BrowserContext]:
    """A browser in which olga is signed in. Tests share it: a new one loads and compiles the app again."""
    with browser.new_context(viewport={"width": WIDE[0], "height": WIDE[1]}, reduced_motion="reduce") as context:
        sign_in(context, server, "olga")
        yield context


@pytest.fixture
def page(context: BrowserContext, server: HostedServer) -> Iterator[Page]:
    """A page. The test fails if the page contacts another host or logs an error."""
    page, problems = context.new_page(), list[str]()
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on(
        "request", lambda r: problems.append(r.url) if not r.url.startswith((server.url, "blob:", "data:")) else None
    )
    yield page
    page.close()
    assert problems == []


def settled(page: Page) -> None:
    expect(page.locator("header.topbar")).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def fits(page: Page, width: int) -> bool:
    """Return whether the page fits the window width, after its charts have adapted."""
    try:
        page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)
    except TimeoutError:
        return False
    return True


class TestKeyQuestions:
    """Each is answered within two clicks from Home."""

    @pytest.fixture(autouse=True)
    def home(self, page: Page, server: HostedServer) -> None:
        page.goto(f"{server.url}/ours")
        settled(page)

    def test_did_it_finish(self, page: Page) -> None:
        row = page.get_by_test_id("home-runs").get_by_test_id("run-row").filter(has_text="other cluster")
        # It was closed in order, but one of its tasks failed.
        expect(row).to_contain_text("Failed")

    def test_what_failed(self, page: Page) -> None:
        page.get_by_test_id("nav-errors").click()
        page.get_by_test_id("error-row").first.get_by_role("link").click()
        expect(page.get_by_test_id("page-error")).to_contain_text("It ended 1 computation")
        expect(page.get_by_test_id("traceback")).to_be_visible()

    def test_what_did_it_cost(self, page: Page) -> None:
        expect(page.get_by_test_id("total-cost")).to_have_text(re.compile(r"\$"))
        page.get_by_test_id("nav-usage").click()
        expect(page.get_by_test_id("page-usage")).to_contain_text("Est. cost")

    def test_where_did_the_time_go(self, page: Page) -> None:
        page.get_by_test_id("home-runs").get_by_role("link", name="sample cluster").click()
        expect(page.get_by_role("heading", name="By task prefix")).to_be_visible()
        page.get_by_test_id("nav-fine").click()
        expect(page.get_by_role("heading", name="Time", exact=True)).to_be_visible()

    def test_why_is_it_still_running(self, page: Page) -> None:
        page.get_by_test_id("home-runs").get_by_role("link", name="sample cluster").click()
        expect(page.get_by_test_id("answer")).to_contain_text(re.compile("idle|working|cannot run"))
        expect(page.get_by_test_id("answer")).to_contain_text("idle-timeout")


@pytest.mark.parametrize("by", ["day", "user", "cluster", "prefix"])
def test_usage_is_a_chart_above_the_table(page: Page, server: HostedServer, by: str) -> None:
    page.goto(f"{server.url}/ours/usage?by={by}")
    chart = page.get_by_test_id("usage-chart")
    expect(chart.get_by_role("heading")).to_have_text(re.compile(f"(Est. cost|Thread time) by (task )?{by}"))
    expect(chart).to_contain_text("busy")
    if by == "day":
        expect(chart.locator("svg title")).to_have_count(14)
        # The last two weeks. Days on which nothing happened are only in the chart.
        expect(page.locator(".tablebox tbody tr").first).to_be_visible()
        assert page.locator(".tablebox tbody tr").count() <= 2
    else:
        expect(chart.locator(".barrows li").first).to_be_visible()
    top, table = chart.bounding_box(), page.locator(".tablebox").bounding_box()
    assert top and table and top["y"] < table["y"]


def test_the_window_title_names_the_page(page: Page, server: HostedServer) -> None:
    page.goto(f"{server.url}/ours/runs")
    expect(page).to_have_title("Runs · ours · daskscope")
    page.get_by_role("link", name="other cluster").click()
    expect(page).to_have_title("other cluster · ours · daskscope")
    page.go_back()
    expect(page).to_have_title("Runs · ours · daskscope")


def test_a_view_of_a_running_cluster_shows_when_it_was_made(page: Page, server: HostedServer) -> None:
    page.goto(f"{server.url}/ours/clusters/one#memory")
    expect(page.get_by_test_id("as-of")).to_contain_text(
        re.compile(r"Still running. This view was made (just now|\d+ s ago)")
    )
    page.get_by_role("button", name="Refresh", exact=True).click()
    expect(page.get_by_test_id("view-memory")).to_be_visible()
    page.get_by_test_id("nav-overview").click()
    expect(page.get_by_test_id("live")).to_be_visible()
    page.go_back()
    expect(page.get_by_test_id("view-memory")).to_be_visible()
    page.goto(f"{server.url}/ours/clusters/done")
    expect(page.get_by_role("heading", name="Thread time")).to_be_visible()
    expect(page.get_by_test_id("as-of")).to_have_count(0)


def test_filters_are_in_the_url_and_back_works(page: Page, server: HostedServer) -> None:
    page.goto(f"{server.url}/ours/runs")
    settled(page)
    page.get_by_test_id("state-failed").click()
    expect(page.get_by_test_id("run-row")).to_have_count(1)
    page.get_by_test_id("run-search").fill("other")
    expect(page).to_have_url(re.compile(r"state=failed.*q=other|q=other.*state=failed"))
    page.reload()
    expect(page.get_by_test_id("run-row")).to_have_count(1)
    page.get_by_role("link", name="other cluster").click()
    expect(page.get_by_test_id("page-cluster")).to_be_visible()
    page.go_back()
    expect(page.get_by_test_id("run-search")).to_have_value("other")


def test_an_error_is_resolved_and_reopened(page: Page, server: HostedServer) -> None:
    page.goto(f"{server.url}/ours/errors")
    page.get_by_test_id("error-row").first.get_by_role("link").click()
    page.get_by_test_id("resolve").click()
    expect(page.get_by_text("Resolved")).to_be_visible()
    page.get_by_test_id("reopen").click()
    expect(page.get_by_test_id("resolve")).to_be_visible()


def test_a_computation_is_shared_as_a_report(page: Page, server: HostedServer, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{server.url}/ours/clusters/one/computations/sample-comp")
    page.get_by_test_id("share").click()
    dialog = page.get_by_role("dialog")
    # The account's preference is selected.
    expect(dialog.get_by_label("Anyone with the link")).to_be_checked()
    dialog.get_by_label("Members of ours").check()
    page.get_by_test_id("share-save").click()
    expect(page.get_by_text("Report added to Reports")).to_be_visible()
    newest = server.ask("GET", "/api/v1/reports", token=server.make_token("olga", "ours")).json()["items"][0]
    assert newest["private"], "the choice in the dialog decides"
    page.get_by_test_id("nav-runs").click()
    page.get_by_test_id("nav-reports").click()
    expect(page.get_by_test_id("report-row")).to_have_count(2)


def test_reports_and_clusters_can_be_renamed_and_tagged(page: Page, server: HostedServer) -> None:
    token = server.make_token("olga", "ours")
    made = server.ask("POST", "/api/v1/reports?title=before&visibility=public", sample_recording(), token=token).json()
    page.goto(f"{server.url}/ours/reports")
    page.get_by_test_id("report-row").filter(has_text="before").get_by_test_id("edit-report").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("[name=title]").fill("after")
    dialog.locator("[name=tags]").fill("nightly, big , nightly")
    dialog.locator("[name=lasts]").select_option("30")
    dialog.locator("[name=link]").check()
    dialog.get_by_test_id("edit-report-save").click()
    row = page.get_by_test_id("report-row").filter(has_text="after")
    expect(row).to_contain_text("nightly")
    expect(page.get_by_role("dialog")).to_have_count(0)
    changed = server.ask("GET", f"/api/v1/reports/{made['id']}", token=token).json()
    assert changed["tags"] == ["nightly", "big"]
    assert changed["expires"] is not None
    assert changed["url"] != made["url"], "the old link stops working"
    server.ask("DELETE", f"/api/v1/reports/{made['id']}", token=token)

    assert server.send(sample_frames("renamed"), token=token).status == 200
    page.goto(f"{server.url}/ours/clusters/renamed")
    page.get_by_test_id("edit-cluster").click()
    page.get_by_role("dialog").locator("[name=name]").fill("a better name")
    page.get_by_role("dialog").locator("[name=tags]").fill("gpu")
    page.get_by_test_id("edit-cluster-save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("a better name")
    expect(page.locator(".title .tag")).to_have_text("gpu")
    server.ask("DELETE", "/api/v1/clusters/renamed", token=token)


def test_a_failed_save_shows_the_error_and_keeps_the_input(context: BrowserContext, server: HostedServer) -> None:
    page = context.new_page()
    page.goto(f"{server.url}/ours/clusters/one")
    page.get_by_test_id("edit-cluster").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("[name=tags]").fill("x" * 100)
    page.get_by_test_id("edit-cluster-save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("60")
    expect(dialog.locator("[name=tags]")).to_have_value("x" * 100)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.close()


def test_viewers_see_no_buttons_that_change_data(browser: Browser, server: HostedServer) -> None:
    with browser.new_context() as context:
        sign_in(context, server, "vera")
        page = context.new_page()
        page.goto(f"{server.url}/ours/settings")
        expect(page.get_by_test_id("member-row")).to_have_count(3)
        for testid in ("add-member", "make-token", "save-preferences", "new-user"):
            expect(page.get_by_test_id(testid)).to_have_count(0)
        page.goto(f"{server.url}/ours/clusters/one")
        expect(page.get_by_test_id("answer")).to_be_visible()
        expect(page.get_by_test_id("close-cluster")).to_have_count(0)
        expect(page.get_by_test_id("edit-cluster")).to_have_count(0)
        page.goto(f"{server.url}/ours/errors")
        page.get_by_test_id("error-row").first.get_by_role("link").click()
        expect(page.get_by_test_id("traceback")).to_be_visible()
        expect(page.get_by_test_id("resolve")).to_have_count(0)


def test_a_token_has_the_chosen_scopes_and_expiry(page: Page, server: HostedServer) -> None:
    page.goto(f"{server.url}/ours/settings")
    page.get_by_test_id("token-label").fill("a dashboard")
    page.get_by_test_id("token-scopes").select_option(label="read only")
    page.get_by_test_id("token-days").select_option(label="in 30 days")
    page.get_by_test_id("make-token").click()
    secret = page.get_by_test_id("token-secret").inner_text()
    row = page.get_by_test_id("token-row").filter(has_text="a dashboard")
    expect(row.locator("td").nth(2)).to_have_text("read")
    expect(row.locator("td").nth(4)).to_have_text(re.compile(r"^\d{4}-\d\d-\d\d$"))
    assert server.ask("GET", "/api/v1/clusters", token=secret).status == 200
    assert server.send(sample_frames("not-taken"), token=secret).status == 403


def test_the_audit_log_lists_what_was_done_and_is_filtered_by_action(page: Page, server: HostedServer) -> None:
    page.goto(f"{server.url}/ours/settings")
    page.get_by_test_id("audit-action").select_option("token-created")
    page.get_by_test_id("token-label").fill("for the audit log")
    page.get_by_test_id("make-token").click()
    expect(page.get_by_test_id("token-secret")).to_be_visible()
    # The list follows what the page does.
    row = page.get_by_test_id("audit-row").filter(has_text="for the audit log")
    expect(row).to_contain_text("olga")
    expect(row).to_contain_text("127.0.0.1")
    page.get_by_test_id("audit-action").select_option("cluster-closed")
    expect(page.get_by_test_id("audit").get_by_text("No events.")).to_be_visible()


def test_a_member_signs_in_with_the_link_that_an_owner_created(
    browser: Browser, page: Page, server: HostedServer
) -> None:
    server.make_account("ours", lena="viewer")
    page.goto(f"{server.url}/ours/settings")
    page.get_by_test_id("member-row").filter(has_text="lena").get_by_role("button", name="Sign-in link").click()
    url = page.get_by_test_id("sign-in-link").inner_text()
    with browser.new_context() as context:
        theirs = context.new_page()
        theirs.goto(url)
        theirs.get_by_role("button", name="Sign in").click()
        expect(theirs.get_by_test_id("page-home")).to_be_visible()
        theirs.goto(f"{server.url}/ours/settings")
        expect(theirs.get_by_test_id("profile")).to_contain_text("lena")
        expect(theirs.get_by_test_id("session-row")).to_contain_text("this one")
        expect(theirs.get_by_test_id("audit")).to_have_count(0)
        again = context.new_page()
        again.goto(url)
        again.get_by_role("button", name="Sign in").click()
        expect(again.get_by_role("alert")).to_contain_text("already used")


def test_an_administrator_disables_a_user_and_resets_a_password(browser: Browser, server: HostedServer) -> None:
    server.make_user("root", admin=True)
    server.make_account("ours", root="owner", dora="member", nina="member")
    session = server.make_session("dora")
    with browser.new_context() as context:
        sign_in(context, server, "root")
        page = context.new_page()
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(f"{server.url}/ours/settings")
        row = page.get_by_test_id("user-row").filter(has_text="dora")
        row.get_by_role("button", name="Disable").click()
        expect(row).to_contain_text("disabled")
        assert server.ask("GET", "/api/v1/me", session=session).status == 401
        page.get_by_test_id("user-row").filter(has_text="nina").get_by_role("button", name="Reset password").click()
        url = page.get_by_test_id("sign-in-link").inner_text()
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(url)
        page.locator("[name=password]").fill("a new password")
        page.get_by_role("button", name="Save and sign in").click()
        expect(page.get_by_test_id("page-home")).to_be_visible()


def test_a_password_change_lists_the_tokens_that_still_work(browser: Browser, server: HostedServer) -> None:
    server.make_account("ours", tilda="member")
    token = server.make_token("tilda", "ours")
    with browser.new_context() as context:
        sign_in(context, server, "tilda")
        page = context.new_page()
        page.goto(f"{server.url}/ours/settings")
        profile = page.get_by_test_id("profile")
        profile.get_by_label("Current password").fill(PASSWORD)
        profile.get_by_label("New password").fill("another password")
        profile.get_by_role("button", name="Change password").click()
        left = page.get_by_test_id("left-tokens")
        expect(left.locator("li")).to_have_count(1)
        assert left.locator("code").inner_text().strip("….") in token
        left.get_by_role("button", name="Sign in").click()
        page.locator("[name=password]").fill("another password")


def test_a_member_cannot_change_the_cluster_of_another(browser: Browser, server: HostedServer) -> None:
    server.make_account("ours", nils="member")
    with browser.new_context() as context:
        sign_in(context, server, "nils")
        page = context.new_page()
        page.goto(f"{server.url}/ours/clusters/one")
        expect(page.get_by_test_id("answer")).to_be_visible()
        expect(page.get_by_test_id("close-cluster")).to_have_count(0)
        expect(page.get_by_test_id("edit-cluster")).to_have_count(0)


def test_hostile_names_are_shown_as_text(page: Page, server: HostedServer) -> None:
    token = server.make_token("olga", "ours")
    # A computation whose ID contains a slash has no page.
    tables: dict[str, Any] = json.loads(
        json.dumps(sample_tables("hostile", HOSTILE)).replace(json.dumps(f"{HOSTILE}-comp"), '"hostile-comp"')
    )
    frames = b"".join(make_frames(tables, cluster="hostile"))
    assert server.send(frames, token=token).status == 200
    dialogs: list[str] = []

    def refuse(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    change = json.dumps({"tags": [HOSTILE[:60]], "name": HOSTILE[:200]}).encode()
    assert server.ask("PATCH", "/api/v1/clusters/hostile", change, token=token).status == 200
    report = server.ask("POST", "/api/v1/reports", sample_recording(), token=token).json()
    change = json.dumps({"tags": [HOSTILE[:60]], "title": HOSTILE[:200]}).encode()
    assert server.ask("PATCH", f"/api/v1/reports/{report['id']}", change, token=token).status == 200
    errors = server.ask("GET", "/api/v1/errors", token=token).json()["items"]
    page.on("dialog", refuse)
    for path in (
        "/ours",
        "/ours/runs",
        "/ours/clusters/hostile",
        "/ours/clusters/hostile#workers",
        "/ours/clusters/hostile/computations/hostile-comp",
        "/ours/errors",
        *(f"/ours/errors/{error['fingerprint']}" for error in errors),
        "/ours/reports",
        f"/ours/reports/{report['id']}",
        "/ours/usage?by=user",
        "/ours/usage?by=cluster",
        "/ours/usage?by=prefix",
        "/ours/settings",
    ):
        page.goto(server.url + path)
        for width, height in (WIDE, NARROW):
            page.set_viewport_size({"width": width, "height": height})
            settled(page)
            assert dialogs == [], path
            assert fits(page, width), path
    page.keyboard.press("/")
    page.get_by_test_id("palette-search").fill("script")
    expect(page.get_by_test_id("palette").get_by_role("option").first).to_be_visible()
    assert dialogs == []
    server.ask("DELETE", "/api/v1/clusters/hostile", token=token)
    server.ask("DELETE", f"/api/v1/reports/{report['id']}", token=token)


def test_the_palette_finds_and_opens_a_cluster(page: Page, server: HostedServer) -> None:
    page.goto(f"{server.url}/ours")
    settled(page)
    page.keyboard.press("/")
    page.get_by_test_id("palette-search").fill("other clus")
    expect(page.get_by_test_id("palette").get_by_role("option").first).to_contain_text("other cluster")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("page-cluster")).to_contain_text("other cluster")
    page.goto(f"{server.url}/ours")
    settled(page)
    page.keyboard.press("g")
    page.keyboard.press("e")
    expect(page.get_by_test_id("page-errors")).to_be_visible()


def test_one_palette_finds_views_and_tasks_of_the_open_run_and_other_runs(page: Page, server: HostedServer) -> None:
    page.goto(f"{server.url}/ours/clusters/done")
    expect(page.get_by_test_id("stream-canvas")).to_be_visible(timeout=60_000)
    for press in ("/", "Control+k"):
        page.keyboard.press(press)
        expect(page.get_by_test_id("palette")).to_have_count(1)
        expect(page.get_by_test_id("palette-search")).to_be_focused()
        groups = page.get_by_test_id("palette")
        expect(groups).to_contain_text("Profile")
        expect(groups).to_contain_text("Recent runs")
        page.keyboard.press("Escape")
        expect(groups).to_be_hidden()
    page.get_by_test_id("open-palette").click()
    page.get_by_test_id("palette-search").fill("memory")
    page.get_by_test_id("palette").get_by_role("option").first.click()
    expect(page.get_by_test_id("view-memory")).to_be_visible()


def test_an_ended_cluster_shows_its_outcome_then_its_time(page: Page, server: HostedServer) -> None:
    page.goto(f"{server.url}/ours/clusters/done")
    expect(page.get_by_test_id("answer")).to_have_text(re.compile("Failed after .*: ValueError: "))
    failure = page.get_by_test_id("top-failure")
    expect(failure.get_by_test_id("traceback")).to_contain_text("ValueError")
    expect(page.get_by_test_id("ruler")).to_be_visible()
    expect(page.get_by_test_id("stream-canvas")).to_be_visible()
    top, ruler = failure.bounding_box(), page.get_by_test_id("ruler").bounding_box()
    table = page.get_by_test_id("computations").bounding_box()
    assert top and ruler and table
    assert top["y"] < ruler["y"] < table["y"]
    expect(page.get_by_test_id("selection-text")).to_contain_text("Whole run")

    failure.get_by_role("link", name="Show all failures").click()
    expect(page.get_by_test_id("view-errors")).to_be_visible()


def test_usage_includes_idle_clusters(page: Page, server: HostedServer) -> None:
    tables: dict[str, Any] = sample_tables("idler", "idler", ended=True)
    del tables["tasks"]
    token = server.make_token("olga", "ours")
    assert server.send(b"".join(make_frames(tables, cluster="idler")), token=token).status == 200
    page.goto(f"{server.url}/ours/usage?by=cluster")
    settled(page)
    row = page.get_by_test_id("page-usage").locator("tbody tr").filter(has_text="idler")
    expect(row).to_contain_text("$0.01")
    server.ask("DELETE", "/api/v1/clusters/idler", token=token)


def test_the_app_loads_at_most_120_kB(page: Page, server: HostedServer) -> None:
    """Sum the compressed size of all assets."""
    import gzip

    page.goto(f"{server.url}/ours")
    sources: list[str] = page.evaluate(
        "performance.getEntriesByType('resource').map(e => e.name).filter(n => n.includes('/assets/'))"
    )
    sizes = [len(gzip.compress(server.ask("GET", source.removeprefix(server.url)).body)) for source in sources]
    assert len(sizes) >= 2
    assert sum(sizes) <= 120_000


@pytest.mark.parametrize(
    ("path", "labels"),
    [
        ("clusters/one", {"Duration", "Compute", "Mean"}),
        ("errors", {"Impact", "Occurrences"}),
        ("reports", {"Author", "Tasks"}),
        ("usage", {"Est. cost", "Thread time"}),
    ],
)
def test_tables_are_cards_on_phones(page: Page, server: HostedServer, path: str, labels: set[str]) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{server.url}/ours/{path}")
    settled(page)
    cells = page.locator("table.cards tbody td")
    expect(cells.first).to_be_visible()
    assert labels <= set(cells.evaluate_all("cells => cells.map(cell => cell.dataset.label)"))
    wide = page.locator(".tablebox").evaluate_all(
        "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).length"
    )
    assert wide == 0, "no table scrolls sideways"

    page.set_viewport_size({"width": 1280, "height": 800})
    assert cells.first.evaluate("cell => getComputedStyle(cell).display") == "table-cell"


@pytest.mark.parametrize("name", [*PAGES, "error"])
def test_every_page_is_accessible_and_fits_the_window(page: Page, server: HostedServer, name: str) -> None:
    broken: dict[str, list[str]] = {}
    errors = server.ask("GET", "/api/v1/errors", token=server.make_token("olga", "ours")).json()["items"]
    page.goto(server.url + {**PAGES, "error": f"/ours/errors/{errors[0]['fingerprint']}"}[name])
    for theme, (width, height) in APPEARANCES:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": height})
        settled(page)
        problems = [] if fits(page, width) else ["wider than the window"]
        take_picture(page, f"team-{name}-{theme}-{width}")
        problems += violations(page)
        if problems:
            broken[f"{theme} {width}"] = problems
    assert broken == {}
