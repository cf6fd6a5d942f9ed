"""Every view of every report opens from a file without network access."""

from __future__ import annotations

import re
from importlib.metadata import version

import pytest
from playwright.sync_api import expect
from tests.browser.support import VIEWS, ReportFile, Visit, data_images, go, hash_of, number, rows

#: Required content of each view: a test ID or selector, and the minimum count.
SHOWN = {
    "overview": ("prefix-row", 10),
    "stream": ("stream-canvas", 1),
    "profile": ("flame-canvas", 1),
    "fine": (".brow, .barrow, table.data tbody tr", 10),
    "memory": ("canvas", 2),
    "bandwidth": ("table.data tbody tr", 2),
    "workers": ("worker-row", 3),
    "errors": ("error-row", 2),
    "groups": ("group-row", 10),
}


def test_every_view_of_a_real_run_shows_data(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    short = {}
    for view in VIEWS:
        shown = go(page, view)
        what, least = SHOWN[view]
        found = shown.get_by_test_id(what) if "-" in what and " " not in what else shown.locator(what)
        expect(found.first).to_be_visible()
        if found.count() < least:
            short[view] = found.count()
        assert page.get_by_test_id(f"nav-{view}").get_attribute("aria-current") == "page"
        assert hash_of(page).startswith(f"#{view}")
    assert short == {}


def test_a_link_opens_a_view(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#workers")

    expect(page.get_by_test_id("view-workers")).to_be_visible()
    assert "Workers" in page.title() and "workload.py" in page.title()


@pytest.mark.parametrize("view", VIEWS)
def test_hostile_names_are_not_executed(visit: Visit, hostile: ReportFile, view: str) -> None:
    page = visit(hostile, f"#{view}")
    shown = page.get_by_test_id(f"view-{view}")
    expect(shown).to_be_visible()
    expect(shown.locator("[aria-busy=true]")).to_have_count(0)

    assert data_images(page) == 0
    # Opening rows and searching shows text only, too.
    for row in shown.locator("tbody tr.click").all()[:3]:
        if not row.is_visible():
            break
        row.click(position={"x": 5, "y": 5})
        if not shown.is_visible():
            page.go_back()
    assert data_images(page) == 0
    page.keyboard.press("/")
    page.get_by_test_id("palette-search").fill("alert")
    expect(page.get_by_test_id("palette").get_by_role("option").first).to_be_visible()
    assert data_images(page) == 0


def test_hostile_texts_are_shown_verbatim(visit: Visit, hostile: ReportFile) -> None:
    page = visit(hostile)

    expect(page.get_by_role("heading", level=1)).to_have_text(hostile.report["title"])
    shown = {row[0] for row in rows(page, "prefix-row")}
    assert '"><svg onload=alert(1)>' in shown and hostile.report["title"] in shown


def test_parts_of_views_show_data(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    for view, what, least in (("stream", "path-row", 1), ("profile", "pre.src", 2), ("workers", "event-row", 4)):
        shown = go(page, view)
        found = shown.locator(what) if "." in what else shown.get_by_test_id(what)
        expect(found.nth(least - 1)).to_be_visible()


def test_empty_reports_say_what_is_missing(visit: Visit, empty: ReportFile) -> None:
    page = visit(empty)
    for view in VIEWS:
        # No endless loading, no broken numbers.
        shown = go(page, view)
        text = shown.inner_text()
        assert not any(word in text for word in ("NaN", "undefined", "null", "Infinity", "[object")), (view, text)
        expect(shown.locator(".empty, .callout, .answer").first).to_be_visible()
        assert any(word in text.lower() for word in ("no ", "not ", "nothing")), (view, text)


def test_events_are_sentences_with_their_detail_behind_a_disclosure(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#workers?kind=update-graph")
    cell = page.get_by_test_id("event-row").first.locator("details")
    expect(cell.locator("summary")).to_have_text(re.compile(r"^[\d,]+ tasks? (was|were) submitted$"))
    expect(cell.locator("pre")).to_be_hidden()
    cell.locator("summary").click()
    expect(cell.locator("pre")).to_contain_text('"status": "OK"')


def test_the_environment_lists_versions_and_configuration(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    panel = page.get_by_test_id("environment")
    panel.locator("summary").click()
    versions = panel.get_by_role("region", name="Package versions")
    expect(versions.locator("tbody tr").filter(has_text="distributed")).to_contain_text(version("distributed"))
    settings = panel.get_by_role("region", name="Configuration of the scheduler")
    expect(settings.locator("tbody tr").filter(has_text="distributed.worker.memory.target")).to_have_count(1)


def test_the_workers_view_shows_the_load_of_the_scheduler(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#workers")
    plots = page.get_by_test_id("scheduler")
    expect(plots.get_by_role("img", name="Scheduler CPU over time")).to_be_visible()
    loop = plots.get_by_role("img", name="Scheduler event loop over time")
    loop.focus()
    loop.press("End")
    expect(plots.get_by_test_id("readout").last).to_contain_text("Delay")


def test_empty_reports_show_how_to_record(visit: Visit, empty: ReportFile) -> None:
    page = visit(empty)
    expect(page.locator(".snippet")).to_contain_text("with daskscope.performance_report(")
    page.locator(".snippet").get_by_role("button", name="Copy").click()
    assert "performance_report" in page.evaluate("navigator.clipboard.readText()")


def test_a_report_of_20_000_tasks(visit: Visit, many: ReportFile) -> None:
    page = visit(many)

    assert number(page.get_by_test_id("metric-tasks").inner_text()) == 20_000
    expect(page.get_by_test_id("selection-text")).to_contain_text("20,000 of 20,000 task runs")
    for view in VIEWS:
        go(page, view)
    go(page, "stream")
    page.get_by_test_id("stream-as-table").click()
    expect(page.get_by_test_id("stream-row").first).to_be_visible()
    # Only visible rows are rendered.
    assert page.get_by_test_id("stream-row").count() < 200
