"""Lists that are longer than a page of them: nothing is hidden, nothing is shown twice, and the search is the server's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, Locator, Page, expect

from daskscope.server.services import now_us
from daskscope.testing.factories import make_frames
from daskscope.testing.hosted import HostedServer
from daskscope.testing.samples import sample_recording, sample_tables

#: A page of every list has a hundred.
MANY = 130


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("many")) as server:
        assert server.send(*(cluster(number) for number in range(MANY))).status == 200
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
    """One that began a second before the one after it."""
    (row,) = sample_tables(f"cluster-{number}")["clusters"]
    row |= {"name": f"number {number}", "start_us": row["start_us"] - 1_000_000 * (MANY - number)}
    return b"".join(make_frames({"clusters": [row]}, cluster=f"cluster-{number}"))


@pytest.fixture
def page(browser: Browser, server: HostedServer) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 800}, base_url=server.url) as context:
        yield context.new_page()


def names(rows: Locator) -> list[str]:
    return rows.locator("a.name").all_inner_texts()


def test_clusters_that_come_meanwhile_push_none_off_the_list(page: Page, server: HostedServer) -> None:
    page.goto("/local/clusters")
    rows = page.get_by_test_id("cluster-row")
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
    expect(page.get_by_test_id("answer")).to_contain_text("More than 100 kinds of failure are open.")
    page.get_by_test_id("load-more").click()
    expect(rows).to_have_count(MANY)
    expect(page.get_by_test_id("answer")).to_contain_text(f"{MANY} kinds of failure are open.")


@pytest.mark.parametrize("words", ["outererror step_129", "bad number 129"])
def test_an_error_is_found_though_it_is_on_no_page_that_was_loaded(page: Page, words: str) -> None:
    page.goto("/local/errors")
    expect(page.get_by_test_id("error-row")).to_have_count(100)
    page.get_by_test_id("error-search").fill(words)
    expect(page.get_by_test_id("error-row")).to_have_count(1)
    assert names(page.get_by_test_id("error-row")) == ["ValueError: bad number 129"]
    page.keyboard.press("Control+k")
    page.get_by_placeholder("Cluster, error, report").fill(words)
    expect(page.get_by_role("option", name="bad number 129")).to_be_visible()


def test_a_report_of_a_later_page_is_renamed_and_deleted_where_it_stands(page: Page) -> None:
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
