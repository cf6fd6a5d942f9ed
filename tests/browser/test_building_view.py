"""The page of a large run says how long building its report takes, and then shows the report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from playwright.sync_api import Browser, Page, Route, expect
from tests.browser.support import WIDE, sign_in
from tests.browser.test_appearance import violations
from tests.eight_tasks import eight_task_rows
from tests.hosted import HostedServer

from daskscope.storage import schema
from daskscope.testing.factories import make_frames

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HostedServer]:
    with HostedServer(tmp_path, login=True) as server:
        server.make_account("ours", olga="owner")
        token = server.make_token("olga", "ours")
        assert server.send(b"".join(make_frames(eight_task_rows(), cluster="eight")), token=token).status == 200
        yield server


@pytest.fixture
def page(browser: Browser, server: HostedServer) -> Iterator[Page]:
    with browser.new_context(viewport={"width": WIDE[0], "height": WIDE[1]}, reduced_motion="reduce") as context:
        sign_in(context, server, "olga")
        yield context.new_page()


def test_a_large_report_has_a_progress_bar_until_it_is_there(page: Page, server: HostedServer) -> None:
    with server.services.archive.write() as tx:
        tx.execute(sa.update(schema.runs).values(tasks=5_000_000))
    held: list[Route] = []
    page.route(re.compile("/view/report.json"), lambda route: held.append(route))
    page.goto(f"{server.url}/ours/clusters/eight/report")

    building = page.get_by_test_id("building")
    expect(building).to_contain_text("A report of 5,000,000 tasks takes about 15 seconds to build")
    bar = building.get_by_role("progressbar")
    before = int(bar.get_attribute("aria-valuenow") or 0)
    expect(bar).not_to_have_attribute("aria-valuenow", str(before))
    assert int(bar.get_attribute("aria-valuenow") or 0) > before
    filled, whole = (box["width"] for box in (bar.locator("i").bounding_box(), bar.bounding_box()) if box)
    assert abs(100 * filled / whole - int(bar.get_attribute("aria-valuenow") or 0)) < 5
    assert violations(page, AXE.read_text()) == []

    held[0].continue_()
    expect(page.get_by_test_id("building")).to_have_count(0, timeout=30_000)
    expect(page.locator(".inline-err")).to_have_count(0)


def test_a_small_report_has_none(page: Page, server: HostedServer) -> None:
    held: list[Route] = []
    page.route(re.compile("/view/report.json"), lambda route: held.append(route))
    page.goto(f"{server.url}/ours/clusters/eight/report")
    expect(page.get_by_role("heading", name="Loading")).to_be_visible()
    page.wait_for_timeout(1_500)
    expect(page.get_by_role("heading", name="Loading")).to_be_visible()
    assert page.get_by_test_id("building").count() == 0
