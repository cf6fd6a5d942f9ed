"""A part of the time bar chosen: what is below speaks of that activity alone, until it is taken back."""

from __future__ import annotations

from typing import cast

import pytest
from playwright.sync_api import Page, expect
from tests.browser.support import ReportFile, Visit, eventually, go, hash_of, rows, select_time, settled

from daskscope import units


def part(page: Page, category: str) -> None:
    page.locator(f".timebar [data-part={category}]").click()


def prefixes_with(report: ReportFile, category: str) -> set[str]:
    """Functions that have any time in it."""
    cube = report.report["time_by_prefix"]
    names = [name for name in cube["keys"]["prefix"] if name]
    return {name for name in names if report.total(cube, "us", category=category, prefix=name) > 0}


def shown(page: Page) -> set[str]:
    return {row[0] for row in rows(page, "prefix-row")}


def pixels(page: Page) -> str:
    return cast(str, page.get_by_test_id("stream-canvas").evaluate("canvas => canvas.toDataURL()"))


def test_a_click_on_the_time_bar_filters_the_page_and_back_undoes_it(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    settled(page, "overview")
    everything, bars = shown(page), pixels(page)
    want = prefixes_with(real, "failed")
    assert want and want < everything

    part(page, "failed")

    expect(page.get_by_test_id("activity-chip")).to_contain_text("activity: lost or failed")
    eventually(page, lambda: shown(page), want)
    expect(page.get_by_role("columnheader", name="Lost or failed")).to_be_visible()
    expect(page.get_by_test_id("activity-panels")).to_contain_text("Lost or failed by function")
    functions = page.get_by_role("region", name="Lost or failed by function").locator("li .n")
    # The eight that took most: on a slow machine more is lost with the worker that is killed.
    eventually(page, functions.count, min(len(want), 8))
    assert set(functions.all_inner_texts()) <= want
    assert "activity=failed" in hash_of(page)
    eventually(page, lambda: pixels(page) != bars, True)

    page.go_back()

    expect(page.get_by_test_id("activity-chip")).to_have_count(0)
    eventually(page, lambda: shown(page), everything)
    eventually(page, lambda: pixels(page), bars)


def test_the_sum_by_worker_is_that_of_the_bar(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#overview?activity=cpu")
    total = next(share["us"] for share in real.report["split"] if share["category"] == "cpu")
    cube = real.report["time_by_worker"]
    workers = [w for w in cube["keys"]["worker"] if real.total(cube, "us", category="cpu", worker=w)]
    panel = page.get_by_role("region", name="CPU by worker")

    expect(panel.locator(".pfoot .push")).to_have_text(f"{units.duration(total)} in all")
    expect(panel.locator("li")).to_have_count(len(workers))
    widths = panel.locator("li .b i").evaluate_all("bars => bars.map(bar => bar.offsetWidth)")
    assert max(widths) > 30 and min(widths) > 0


def test_keys_choose_and_take_back(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    button = page.locator(".legend button").filter(has_text="CPU")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("activity-chip")).to_contain_text("CPU")
    expect(button).to_have_attribute("aria-pressed", "true")

    page.get_by_test_id("activity-chip").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("activity-chip")).to_have_count(0)

    button.focus()
    page.keyboard.press("Space")
    expect(page.get_by_test_id("activity-chip")).to_be_visible()
    select_time(page, 0.2, 0.6)
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("activity-chip")).to_have_count(0)
    expect(page.get_by_test_id("selection-text")).not_to_contain_text("Whole run")


def test_fine_metrics_follow(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    part(page, "cpu")
    expect(page.get_by_test_id("activity-chip")).to_be_visible()

    view = go(page, "fine")

    expect(page.get_by_test_id("fine-activity")).to_have_value("cpu")
    table = view.locator("section[aria-label='All sums'] tbody tr")
    expect(table.first).to_be_visible()
    activities = set(table.locator("td:nth-child(3)").all_inner_texts())
    assert activities == {"thread-cpu"}
    page.get_by_test_id("activity-chip").click()
    expect(table.filter(has_text="thread-noncpu").first).to_be_visible()


@pytest.mark.parametrize("view", ["memory", "workers"])
def test_views_that_do_not_follow_do_not_pretend(visit: Visit, real: ReportFile, view: str) -> None:
    page = visit(real, "#overview?activity=transfer")
    expect(page.get_by_test_id("activity-chip")).to_be_visible()

    go(page, view)
    expect(page.get_by_test_id("activity-chip")).to_have_count(0)
    go(page, "overview")

    expect(page.get_by_test_id("activity-chip")).to_contain_text("transfer")


@pytest.mark.parametrize("by", ["Function", "Span"])
def test_however_it_is_split_the_whole_is_the_same(visit: Visit, real: ReportFile, by: str) -> None:
    page = visit(real)
    page.get_by_test_id("split-switch").get_by_role("button", name=by).click()
    idle = page.locator(".timebar .a-idle")
    expect(idle).to_be_visible()
    share = idle.evaluate("part => part.offsetWidth / part.parentElement.offsetWidth")

    parts = {share["category"]: share["us"] for share in real.report["split"]}
    assert share == pytest.approx(parts["idle"] / sum(parts.values()), abs=0.03)
