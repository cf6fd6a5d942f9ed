"""A click on the time bar filters the page by activity until the filter is cleared."""

from __future__ import annotations

from typing import cast

import pytest
from playwright.sync_api import Page, expect
from tests.browser.support import ReportFile, Visit, eventually, go, hash_of, rows, select_time, settled

from daskscope import units


def part(page: Page, category: str) -> None:
    page.locator(f".timebar [data-part={category}]").click()


def prefixes_with(report: ReportFile, category: str) -> set[str]:
    """Return the prefixes with thread time in a category."""
    cube = report.report["time_by_prefix"]
    names = [name for name in cube["keys"]["prefix"] if name]
    return {name for name in names if report.total(cube, "us", category=category, prefix=name) > 0}


def shown(page: Page) -> set[str]:
    return {row[0] for row in rows(page, "prefix-row")}


def pixels(page: Page) -> str:
    return cast(str, page.get_by_test_id("stream-canvas").evaluate("canvas => canvas.toDataURL()"))


def test_a_click_on_the_time_bar_filters_the_page_and_back_clears_it(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    settled(page, "overview")
    everything, bars = shown(page), pixels(page)
    want = prefixes_with(real, "failed")
    assert want and want < everything

    part(page, "failed")

    expect(page.get_by_test_id("activity-chip")).to_contain_text("Activity: lost or failed")
    eventually(page, lambda: shown(page), want)
    expect(page.get_by_role("columnheader", name="Lost or failed")).to_be_visible()
    expect(page.get_by_test_id("activity-panels")).to_contain_text("Lost or failed by task prefix")
    functions = page.get_by_role("region", name="Lost or failed by task prefix").locator("li .n")
    # At most eight prefixes are shown. On slow machines more tasks are lost with the killed worker.
    eventually(page, functions.count, min(len(want), 8))
    assert set(functions.all_inner_texts()) <= want
    assert "activity=failed" in hash_of(page)
    eventually(page, lambda: pixels(page) != bars, True)

    page.go_back()

    expect(page.get_by_test_id("activity-chip")).to_have_count(0)
    eventually(page, lambda: shown(page), everything)
    eventually(page, lambda: pixels(page), bars)


def test_the_total_by_worker_equals_the_time_bar(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#overview?activity=cpu")
    total = next(share["us"] for share in real.report["split"] if share["category"] == "cpu")
    cube = real.report["time_by_worker"]
    workers = [w for w in cube["keys"]["worker"] if real.total(cube, "us", category="cpu", worker=w)]
    panel = page.get_by_role("region", name="CPU by worker")

    expect(panel.locator(".pfoot .push")).to_have_text(f"{units.duration(total)} in total")
    expect(panel.locator("li")).to_have_count(len(workers))
    widths = panel.locator("li .b i").evaluate_all("bars => bars.map(bar => bar.offsetWidth)")
    assert max(widths) > 30 and min(widths) > 0


def test_the_filter_is_set_and_cleared_with_keys(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    button = page.locator(".legend button").and_(page.get_by_title("Show only CPU", exact=True))
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


def test_fine_metrics_follow_the_filter(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    part(page, "cpu")
    expect(page.get_by_test_id("activity-chip")).to_be_visible()

    view = go(page, "fine")

    expect(page.get_by_test_id("activity-chip")).to_contain_text("CPU")
    table = view.locator("section[aria-label='All metrics'] tbody tr")
    expect(table.first).to_be_visible()
    activities = set(table.locator("td:nth-child(3) span").evaluate_all("cells => cells.map(cell => cell.title)"))
    assert "thread-cpu" in activities and all(activity.endswith("-cpu") for activity in activities)
    assert "CPU" in table.locator("td:nth-child(3)").all_inner_texts()
    page.get_by_test_id("activity-chip").click()
    expect(table.filter(has_text="Waiting in task").first).to_be_visible()


@pytest.mark.parametrize("view", ["memory", "workers"])
def test_views_without_activities_do_not_show_the_filter(visit: Visit, real: ReportFile, view: str) -> None:
    page = visit(real, "#overview?activity=transfer")
    expect(page.get_by_test_id("activity-chip")).to_be_visible()

    go(page, view)
    expect(page.get_by_test_id("activity-chip")).to_have_count(0)
    go(page, "overview")

    expect(page.get_by_test_id("activity-chip")).to_contain_text("transfer")


@pytest.mark.parametrize("by", ["Task prefix", "Span"])
def test_idle_time_has_the_same_share_in_every_split(visit: Visit, real: ReportFile, by: str) -> None:
    page = visit(real)
    page.get_by_test_id("split-switch").get_by_role("button", name=by).click()
    idle = page.locator(".timebar .a-idle")
    expect(idle).to_be_visible()
    share = idle.evaluate("part => part.offsetWidth / part.parentElement.offsetWidth")

    parts = {share["category"]: share["us"] for share in real.report["split"]}
    assert share == pytest.approx(parts["idle"] / sum(parts.values()), abs=0.03)


def test_reasons_of_waiting_and_idle_time_are_listed_and_idle_follows_the_selection(
    visit: Visit, real: ReportFile
) -> None:
    page = visit(real)
    split = {share["category"]: share for share in real.report["split"]}
    for category in ("noncpu", "idle"):
        listed = page.get_by_test_id(f"reasons-{category}")
        want = sorted(split[category]["reasons"], key=lambda reason: -reason["us"])
        assert want
        expect(listed.locator("tbody th")).to_have_text([reason["label"] for reason in want])
        expect(listed.locator("tbody tr").first).to_contain_text(units.duration(want[0]["us"]))
        expect(listed.locator("thead")).to_contain_text(units.duration(split[category]["us"]))

    idle, whole = page.get_by_test_id("reasons-idle").locator("thead"), units.duration(split["idle"]["us"])
    select_time(page, 0, 0.4)
    # Everything above the time ruler is about the whole run.
    expect(idle).to_contain_text(whole)
    go(page, "fine")
    panel = page.get_by_test_id("thread-time")
    total = units.duration(real.report["totals"]["thread_us"])
    expect(panel.locator(".pfoot")).not_to_contain_text(f"{total} in total")
    page.get_by_role("button", name="Whole run (Esc)").click()
    expect(panel.locator(".pfoot")).to_contain_text(f"{total} in total")
    for reason in split["idle"]["reasons"]:
        expect(panel).to_contain_text(f"Idle: {reason['label'].lower()}")
    go(page, "overview")
    page.get_by_test_id("split-switch").get_by_role("button", name="Span").click()
    expect(page.get_by_test_id("reasons")).to_have_count(0)
