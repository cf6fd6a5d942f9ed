"""The page of a large run says how long building its report takes, and then shows the report."""

from __future__ import annotations

import re

import sqlalchemy as sa
from playwright.sync_api import Page, Route, expect
from tests.browser.accessibility import violations
from tests.helpers.hosted import HostedServer

from daskscope.storage import schema


def test_a_large_report_has_a_progress_bar_until_it_is_there(
    eight_task_page: Page, eight_task_server: HostedServer
) -> None:
    page = eight_task_page
    with eight_task_server.services.archive.write() as tx:
        tx.execute(sa.update(schema.runs).values(tasks=5_000_000))
    held: list[Route] = []
    page.route(re.compile("/document/report.json"), lambda route: held.append(route))
    page.goto("/ours/clusters/eight#profile")

    building = page.get_by_test_id("building")
    expect(building).to_contain_text("A report of 5,000,000 tasks takes about 15 seconds to build")
    bar = building.get_by_role("progressbar")
    before = int(bar.get_attribute("aria-valuenow") or 0)
    expect(bar).not_to_have_attribute("aria-valuenow", str(before))
    assert int(bar.get_attribute("aria-valuenow") or 0) > before
    filled, whole = (box["width"] for box in (bar.locator("i").bounding_box(), bar.bounding_box()) if box)
    assert abs(100 * filled / whole - int(bar.get_attribute("aria-valuenow") or 0)) < 5
    assert violations(page) == []

    held[0].continue_()
    expect(page.get_by_test_id("building")).to_have_count(0, timeout=30_000)
    expect(page.locator(".inline-err")).to_have_count(0)
