"""The page that predicts a computation: its inputs change the predictions, and the URL keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.support import WIDE, sign_in
from tests.browser.test_appearance import violations
from tests.eight_tasks import eight_task_rows
from tests.hosted import HostedServer

from daskscope.testing.factories import make_frames

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
CHECK = "The replay of the recorded run takes 8.51 s; the run took 8.50 s."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("what-if"), login=True) as server:
        server.make_account("ours", olga="owner")
        token = server.make_token("olga", "ours")
        assert server.send(b"".join(make_frames(eight_task_rows(), cluster="eight")), token=token).status == 200
        yield server


@pytest.fixture
def page(browser: Browser, server: HostedServer) -> Iterator[Page]:
    with browser.new_context(viewport={"width": WIDE[0], "height": WIDE[1]}, reduced_motion="reduce") as context:
        sign_in(context, server, "olga")
        yield context.new_page()


def times(page: Page) -> list[str]:
    """Return the workers and the wall time of each prediction."""
    expect(page.locator("main[aria-busy=false]")).to_be_visible()
    rows = page.get_by_test_id("what-if-row").all()
    return [" ".join(row.locator("td").nth(column).inner_text() for column in (0, 2)) for row in rows]


def test_the_inputs_change_the_predictions(page: Page, server: HostedServer) -> None:
    page.goto(f"{server.url}/ours/clusters/eight/computations/c")
    page.get_by_role("link", name="What if").click()

    expect(page.get_by_test_id("what-if-curve")).to_contain_text(CHECK)
    expect(page.get_by_test_id("what-if-curve").locator("canvas")).to_have_attribute(
        "aria-label", "From 8.51 s with 1 worker to 1.51 s with 8. Dashed: perfect scaling."
    )
    assert times(page) == ["1 8.51 s", "2 4.51 s", "4 2.51 s", "8 1.51 s"]

    page.get_by_test_id("what-if-workers").fill("3")
    expect(page.get_by_test_id("what-if-row")).to_have_count(3)
    page.get_by_test_id("what-if-prefix").select_option("load")
    expect(page.get_by_test_id("what-if-row").first).to_contain_text("4.51 s")
    assert times(page) == ["1 4.51 s", "2 2.51 s", "3 2.01 s"]

    page.get_by_test_id("what-if-threads").fill("2")
    expect(page.get_by_test_id("what-if-row").first).to_contain_text("2.51 s")
    page.reload()
    expect(page.get_by_test_id("what-if-row").first).to_contain_text("2.51 s")
    assert violations(page, AXE.read_text()) == []


def test_the_page_says_why_there_is_no_prediction(page: Page, server: HostedServer) -> None:
    tables = eight_task_rows()
    tables["clusters"][0]["cluster"] = "short"
    tables["tasks"] = [{**task, "status": "killed"} for task in tables["tasks"]]
    token = server.make_token("olga", "ours")
    assert server.send(b"".join(make_frames(tables, cluster="short")), token=token).status == 200
    page.goto(f"{server.url}/ours/clusters/short/computations/c/what-if")

    expect(page.get_by_test_id("what-if-reason")).to_contain_text("No task of this computation has finished.")
