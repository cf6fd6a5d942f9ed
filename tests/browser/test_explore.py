"""The page Explore: a query in, rows and bars out, and a URL that repeats it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.helpers.hosted import HostedServer
from tests.helpers.samples import sample_tables

from daskscope.testing import make_frames

COUNT = "select prefix, count(*) as n from tasks group by 1 order by 2 desc"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("explore")) as server:
        tasks = [
            {"key": f"{p}-{n}", "prefix": p, "stop_us": 5} for p, many in (("inc", 5), ("<b>", 2)) for n in range(many)
        ]
        tables = {"clusters": sample_tables("one")["clusters"], "tasks": tasks}
        assert server.send(*make_frames(tables, cluster="one")).status == 200
        yield server


@pytest.fixture
def page(browser: Browser, server: HostedServer) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 900}, base_url=server.url) as context:
        page = context.new_page()
        page.goto(server.entry)
        expect(page.get_by_test_id("page-home")).to_be_visible()
        page.get_by_test_id("nav-explore").click()
        expect(page.get_by_test_id("page-explore")).to_be_visible()
        yield page


def run(page: Page, query: str) -> None:
    page.get_by_test_id("sql").fill(query)
    page.get_by_test_id("run-sql").click()


def test_a_query_shows_rows_and_bars(page: Page) -> None:
    run(page, COUNT)
    rows = page.get_by_test_id("sql-row")
    expect(rows).to_have_count(2)
    assert [row.split("\t") for row in rows.all_inner_texts()] == [["inc", "5"], ["<b>", "2"]]
    expect(page.get_by_test_id("sql-chart").locator("li")).to_have_count(2)
    expect(page.get_by_test_id("sql-result")).to_contain_text("from 1 cluster in")


def test_the_url_repeats_the_query(page: Page) -> None:
    run(page, COUNT)
    expect(page.get_by_test_id("sql-row")).to_have_count(2)
    page.goto(page.url)
    expect(page.get_by_test_id("sql")).to_have_value(COUNT)
    expect(page.get_by_test_id("sql-row")).to_have_count(2)


def test_the_keyboard_runs_a_query_and_an_error_is_shown(page: Page) -> None:
    page.get_by_test_id("sql").fill("select nope from tasks")
    page.get_by_test_id("sql").press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("nope")
    run(page, "select * from tasks where prefix = 'none'")
    expect(page.get_by_test_id("sql-result")).to_contain_text("No rows")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_saved_queries_stay_in_the_browser(page: Page) -> None:
    page.get_by_test_id("sql").fill(COUNT)
    page.once("dialog", lambda dialog: dialog.accept("count them"))
    page.get_by_test_id("save-query").click()
    page.reload()
    page.get_by_test_id("saved-queries").select_option(label="count them")
    expect(page.get_by_test_id("sql")).to_have_value(COUNT)
    page.get_by_role("button", name="Delete count them").click()
    expect(page.get_by_test_id("save-query")).to_be_visible()


def test_the_tables_are_listed_with_their_columns(page: Page) -> None:
    tables = page.get_by_test_id("sql-tables")
    tables.locator("summary", has_text="tasks").first.click()
    expect(tables).to_contain_text("end of the compute time")
