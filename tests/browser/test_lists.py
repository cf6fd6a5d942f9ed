"""Lists of more than one page: all items are listed once, and the server does the searching."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, Locator, Page, expect
from tests.helpers.hosted import HostedServer
from tests.helpers.samples import sample_recording, sample_tables

from daskscope.server.services import now_us
from daskscope.testing import make_frames

#: More than one page: pages have 100 items.
MANY = 130


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("many")) as server:
        for number in range(MANY):
            assert server.send(cluster(number)).status == 200
        now = now_us()
        failures = [
            {
                "time_us": now - number,
                "fingerprint": f"kind-{number}",
                "type": "ValueError",
                "message": f"bad number {number}",
                "traceback": f"in step_{number}\nOuterError: it is part {number}",
                "count": 1,
            }
            for number in range(MANY)
        ]
        assert server.send(*make_frames({"exceptions": failures}, cluster="cluster-0", epoch=2)).status == 200
        recording = sample_recording()
        for number in range(MANY):
            assert server.ask("POST", f"/api/v1/reports?title=report-{number}", recording).status == 201
        yield server


def cluster(number: int) -> bytes:
    """Return frames of a cluster that started one second before the next one."""
    (row,) = sample_tables(f"cluster-{number}")["clusters"]
    row |= {"name": f"number {number}", "start_us": row["start_us"] - 1_000_000 * (MANY - number)}
    return b"".join(make_frames({"clusters": [row]}, cluster=f"cluster-{number}"))


@pytest.fixture
def page(browser: Browser, server: HostedServer) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 800}, base_url=server.url) as context:
        page = context.new_page()
        page.goto(server.entry)
        expect(page.get_by_test_id("page-home")).to_be_visible()
        yield page


def names(rows: Locator) -> list[str]:
    return rows.locator("a.name").all_inner_texts()


def test_new_clusters_do_not_push_others_off_the_list(page: Page, server: HostedServer) -> None:
    page.goto("/local/runs")
    rows = page.get_by_test_id("run-row")
    expect(rows).to_have_count(50)
    page.get_by_test_id("load-more").click()
    expect(rows).to_have_count(100)
    page.get_by_test_id("load-more").click()
    expect(rows).to_have_count(MANY)
    expect(page.get_by_test_id("load-more")).to_have_count(0)
    assert server.send(*(cluster(number) for number in range(MANY, MANY + 3))).status == 200
    expect(rows).to_have_count(MANY + 3)
    assert names(rows) == [f"number {number}" for number in reversed(range(MANY + 3))]


def test_errors_are_loaded_page_by_page(page: Page) -> None:
    page.goto("/local/errors")
    rows = page.get_by_test_id("error-row")
    expect(rows).to_have_count(100)
    expect(page.get_by_test_id("answer")).to_contain_text("More than 100 open error groups.")
    page.get_by_test_id("load-more").click()
    expect(rows).to_have_count(MANY)
    expect(page.get_by_test_id("answer")).to_contain_text(f"{MANY} open error groups.")


@pytest.mark.parametrize("words", ["outererror step_129", "bad number 129"])
def test_the_search_finds_errors_of_pages_that_are_not_loaded(page: Page, words: str) -> None:
    page.goto("/local/errors")
    expect(page.get_by_test_id("error-row")).to_have_count(100)
    page.get_by_test_id("error-search").fill(words)
    expect(page.get_by_test_id("error-row")).to_have_count(1)
    expect(page.get_by_test_id("error-row")).to_contain_text("bad number 129")
    assert names(page.get_by_test_id("error-row")) == ["ValueError"]
    page.keyboard.press("Control+k")
    page.get_by_placeholder("Run, error or report").fill(words)
    expect(page.get_by_role("option", name="bad number 129")).to_be_visible()


def test_a_report_of_a_later_page_is_renamed_and_deleted_in_place(page: Page) -> None:
    page.goto("/local/reports")
    rows = page.get_by_test_id("report-row")
    expect(rows).to_have_count(100)
    page.get_by_test_id("load-more").click()
    expect(rows).to_have_count(MANY)
    row = rows.nth(MANY - 2)
    expect(row).to_contain_text("report-1")
    row.get_by_test_id("edit-report").click()
    page.get_by_role("dialog").get_by_label("Title").fill("renamed")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(rows.nth(MANY - 2)).to_contain_text("renamed")
    expect(rows).to_have_count(MANY)

    def yes(dialog: Dialog) -> None:
        dialog.accept()

    page.on("dialog", yes)
    rows.nth(MANY - 2).get_by_role("button", name="Delete").click()
    expect(rows).to_have_count(MANY - 1)
    expect(page.get_by_text("renamed")).to_have_count(0)
