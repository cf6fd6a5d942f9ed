"""The list of runs: one row per name, its runs, filters, and what it shows without data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect
from tests.browser.accessibility import APPEARANCES, take_picture, violations
from tests.browser.support import sign_in
from tests.helpers.hosted import HostedServer
from tests.helpers.hostile import HOSTILE

from daskscope.server.services import now_us
from daskscope.testing import make_frames

MINUTE = 60_000_000


def send(
    server: HostedServer, token: str, cluster: str, name: str, minutes_ago: int, seconds: float, **more: Any
) -> None:
    """Send a cluster that ended, with the error ``failure`` or a lost worker if asked for."""
    start = now_us() - minutes_ago * MINUTE
    end = start + int(seconds * 1e6)
    row = {"cluster": cluster, "name": name, "start_us": start, "seen_us": end, "end_us": end, "end_reason": "closed"}
    worker = {"worker": "tcp://1", "server_id": f"{cluster}-w", "name": "w-5", "nthreads": 2, "start_us": start}
    worker |= {"seen_us": end, "end_us": end, "verdict": "lost connection" if more.get("lost") else "closed"}
    where = {"worker": "tcp://1", "prefix": "parse", "computation": "comp", "key": "parse-1"}
    failure = str(more.get("failure", ""))
    tables: dict[str, list[dict[str, Any]]] = {
        "clusters": [row],
        "workers": [worker],
        "tasks": [{**where, "id": 0, "start_us": start, "stop_us": end, "status": "error" if failure else "ok"}],
    }
    if failure:
        error = {"time_us": end, "type": "ValueError", "message": failure, "traceback": "Traceback", "fingerprint": "f"}
        tables["exceptions"] = [{**where, **error, "count": 1}]
    assert server.send(*make_frames(tables, cluster=cluster), token=token).status == 200


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("runs"), login=True) as server:
        server.make_account("ours", olga="owner")
        server.make_account("empty", olga="owner")
        token = server.make_token("olga", "ours")
        for number in range(24):
            failed = number in (9, 22, 23)
            send(
                server, token, f"etl-{number}", "etl", 300 - 10 * number, 60 + number % 3, failure="bad amount" * failed
            )
        for number in range(5):
            seconds = 163 if number == 4 else 100
            send(server, token, f"scores-{number}", "scores", 50 - number, seconds, lost=number == 2)
        send(server, token, "alone-1", "", 40, 5)
        send(server, token, "alone-2", "", 39, 5)
        send(server, token, "hostile", HOSTILE, 30, 5, failure=HOSTILE)
        yield server


@pytest.fixture(scope="module")
def context(browser: Browser, server: HostedServer) -> Iterator[BrowserContext]:
    with browser.new_context(viewport={"width": 1440, "height": 900}, base_url=server.url) as context:
        sign_in(context, server, "olga")
        yield context


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    page.goto("/ours/runs")
    expect(page.get_by_test_id("run-row")).to_have_count(5)
    yield page
    page.close()


def test_a_name_has_one_row_with_its_outcome_and_strip(page: Page) -> None:
    row = page.get_by_test_id("run-row").filter(has_text="etl")
    expect(row).to_contain_text("Failed")
    expect(row).to_contain_text("ValueError: bad amount")
    expect(row.locator("td").nth(6)).to_have_text("24")
    strip = row.get_by_role("img")
    expect(strip).to_have_attribute("aria-label", re.compile("last 20 runs, median 1 min 1 s, 3 failed"))
    expect(strip.locator(".failed")).to_have_count(3)
    expect(strip.locator(".last")).to_have_count(1)
    scores = page.get_by_test_id("run-row").filter(has_text="scores")
    expect(scores).to_contain_text("+63 % over the median of 4 runs")
    expect(scores.locator(".strip .lost")).to_have_count(1)
    answer = page.get_by_test_id("answer")
    expect(answer).to_have_text("etl has failed 2 times in a row. scores took 63 % longer than usual.")
    expect(page.get_by_test_id("page-runs")).to_contain_text("5 names, 32 runs")


def test_a_row_opens_to_its_runs_and_leads_to_them(page: Page) -> None:
    button = page.get_by_role("button", name="Show the runs of etl")
    button.click()
    runs = page.get_by_test_id("single-run")
    expect(runs).to_have_count(20)
    expect(runs.first).to_contain_text("ValueError: bad amount")
    expect(runs.nth(2)).to_contain_text("as usual")
    page.get_by_test_id("more-runs").click()
    expect(runs).to_have_count(24)
    runs.nth(2).get_by_role("link").click()
    expect(page).to_have_url(re.compile("/ours/clusters/etl-21$"))
    page.go_back()
    # The link of the name covers the row.
    page.get_by_test_id("run-row").filter(has_text="etl").locator("td.dur").click(force=True)
    expect(page).to_have_url(re.compile("/ours/clusters/etl-23$"))


def test_unnamed_clusters_are_single_rows(page: Page) -> None:
    rows = page.get_by_test_id("run-row").filter(has_text="unnamed")
    expect(rows).to_have_count(2)
    expect(rows.get_by_role("button", name="Show the runs")).to_have_count(0)


def test_chips_count_runs_and_select_them(page: Page) -> None:
    chips = {
        name: page.get_by_test_id(f"state-{name}") for name in ("all", "failed", "worker-lost", "idle", "finished")
    }
    texts = {name: chip.inner_text().split() for name, chip in chips.items()}
    assert {name: words[-1] for name, words in texts.items()} == {
        "all": "32", "failed": "4", "worker-lost": "1", "idle": "0", "finished": "28",
    }  # fmt: skip
    chips["failed"].click()
    rows = page.get_by_test_id("run-row")
    expect(rows).to_have_count(2)
    expect(page).to_have_url(re.compile("state=failed"))
    page.get_by_role("button", name="Show the runs of etl").click()
    expect(page.get_by_test_id("single-run")).to_have_count(3)
    chips["worker-lost"].click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Finished, 1 worker lost")
    expect(rows).to_contain_text("Worker w-5 lost its connection")


def test_nothing_matches_names_the_filters_and_clears_them(page: Page) -> None:
    page.get_by_test_id("state-idle").click()
    page.get_by_test_id("run-search").fill("no such run")
    empty = page.get_by_text("Filters: text “no such run”, state Idle, last 7 days.")
    expect(empty).to_be_visible()
    page.get_by_test_id("clear-filters").click()
    expect(page.get_by_test_id("run-row")).to_have_count(5)


def test_an_account_without_runs_shows_how_to_record_one(context: BrowserContext) -> None:
    page = context.new_page()
    page.goto("/empty/runs")
    expect(page.get_by_text("No runs in the last 7 days")).to_be_visible()
    expect(page.get_by_text("daskscope.analytics.register()")).to_be_visible()
    page.get_by_test_id("clear-filters").click()
    expect(page.get_by_text("No runs recorded yet")).to_be_visible()


def test_without_data_there_is_no_number(context: BrowserContext) -> None:
    page = context.new_page()

    def refuse(route: Route) -> None:
        route.abort()

    page.route("**/api/v1/runs*", refuse)
    page.goto("/ours/runs")
    expect(page.get_by_role("alert")).to_be_visible()
    chips = page.get_by_role("group", name="State")
    assert chips.inner_text().split("\n") == ["All", "Running", "Failed", "Idle", "Finished", "Worker lost", "Reports"]
    expect(page.get_by_test_id("page-runs").locator(".pfoot, .answer")).to_have_count(0)


def test_offline_the_last_data_stay_and_say_their_age(page: Page, context: BrowserContext) -> None:
    context.set_offline(True)
    page.get_by_test_id("state-failed").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(re.compile(r"Showing data from \d\d:\d\d \((now|\d+ s ago)\)"))
    expect(page.get_by_test_id("run-row")).to_have_count(5)
    assert page.locator("table.runs").evaluate("table => Number(getComputedStyle(table).opacity)") < 1
    expect(page.get_by_test_id("state-all")).to_have_text("All32")
    context.set_offline(False)
    alert.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_test_id("run-row")).to_have_count(2)


def test_a_page_that_does_not_exist_shows_ways_on(page: Page, context: BrowserContext) -> None:
    page.goto("/ours/nothing-here")
    expect(page.get_by_test_id("page-none")).to_contain_text("Page not found")
    page.get_by_test_id("page-none").get_by_role("link", name="Runs").click()
    expect(page.get_by_test_id("page-runs")).to_be_visible()


def test_the_account_menu_has_settings_and_closes(page: Page) -> None:
    button = page.get_by_test_id("account-menu")
    button.click()
    expect(page.get_by_role("link", name="Switch to empty")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("nav-settings")).to_have_count(0)
    expect(button).to_be_focused()
    button.click()
    page.get_by_role("heading", name="Runs").click()
    expect(page.get_by_test_id("nav-settings")).to_have_count(0)
    button.click()
    page.get_by_test_id("nav-settings").click()
    expect(page).to_have_url(re.compile("/ours/settings$"))
    expect(page.get_by_test_id("nav-settings")).to_have_count(0)


def test_open_rows_are_accessible(page: Page) -> None:
    page.get_by_role("button", name="Show the runs of scores").click()
    broken: dict[str, list[str]] = {}
    for theme, (width, height) in APPEARANCES:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": height})
        expect(page.get_by_test_id("single-run")).to_have_count(5)
        take_picture(page, f"runs-open-{theme}-{width}")
        page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)
        if problems := violations(page):
            broken[f"{theme} {width}"] = problems
    assert broken == {}
