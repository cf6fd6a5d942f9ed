"""The state of the page is in the URL: links, Back, themes, help and the palette."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect
from tests.browser.support import ReportFile, Visit, choose, go, hash_of, ready, rows, select_time, selection


def copied(page: Page) -> str:
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("status")).to_contain_text("Link copied")
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def test_a_copied_link_opens_the_same_view_selection_and_filters(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    chosen = select_time(page, 0, 0.25)
    go(page, "profile")
    page.get_by_test_id("flame-prefix").select_option("spin")
    page.get_by_test_id("flame-search").fill("spin")
    page.get_by_role("button", name="Bottom up").click()
    page.wait_for_function("location.hash.includes('dir=up')")
    said = page.locator(".flamestatus").inner_text()
    link = copied(page)

    other = visit(real, "#" + link.partition("#")[2])

    assert hash_of(other) == hash_of(page)
    expect(other.get_by_test_id("view-profile")).to_be_visible()
    assert selection(other) == chosen
    expect(other.get_by_test_id("flame-prefix")).to_have_value("spin")
    expect(other.get_by_test_id("flame-search")).to_have_value("spin")
    expect(other.get_by_role("button", name="Bottom up")).to_have_attribute("aria-pressed", "true")
    expect(other.locator(".flamestatus")).to_have_text(said, use_inner_text=True)


def test_a_link_copied_right_away_has_the_last_change(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#fine")
    # Do not wait for the URL to update.
    choose(page, "fine-prefix", "spin")
    assert copied(page).endswith("#fine?prefix=spin")


def test_a_link_keeps_sort_and_filter_of_a_table(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#workers")
    page.get_by_role("columnheader", name="Task runs").get_by_role("button").click()
    page.get_by_test_id("filter-workers").fill("connected")
    expect(page.get_by_test_id("worker-row")).not_to_have_count(len(real.report["workers"]))
    before = rows(page, "worker-row")

    other = visit(real, "#" + copied(page).partition("#")[2])

    expect(other.get_by_test_id("filter-workers")).to_have_value("connected")
    expect(other.get_by_role("columnheader", name="Task runs")).to_have_attribute("aria-sort", "descending")
    assert rows(other, "worker-row") == before


def test_the_link_includes_the_open_item(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#workers")
    page.get_by_test_id("worker-row").first.click(position={"x": 5, "y": 5})
    expect(page.get_by_test_id("worker-detail")).to_be_visible()
    text = page.get_by_test_id("worker-detail").inner_text()

    other = visit(real, "#" + copied(page).partition("#")[2])

    expect(other.get_by_test_id("worker-detail")).to_have_text(text, use_inner_text=True)


def test_back_and_forward(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    chosen = select_time(page, 0.3, 0.6)
    go(page, "workers")
    go(page, "profile")
    page.get_by_role("button", name="Whole run (Esc)").click()
    expect(page.get_by_test_id("selection-text")).to_contain_text("Whole run")

    page.go_back()
    expect(page.get_by_test_id("view-workers")).to_be_visible()
    assert selection(page) == chosen
    page.go_back()
    expect(page.get_by_test_id("view-overview")).to_be_visible()
    page.go_forward()
    page.go_forward()
    expect(page.get_by_test_id("view-profile")).to_be_visible()
    expect(page.get_by_test_id("selection-text")).to_contain_text("Whole run")


def test_a_broken_link_opens_the_overview(visit: Visit, real: ReportFile) -> None:
    for broken in ("#nowhere?t=5-x", "#?t=9e99-1", "#overview?t=NaN-3", "#%E0%A4%A"):
        page = visit(real, broken)
        expect(page.get_by_test_id("view-overview")).to_be_visible()
        page.close()


def test_links_to_missing_items_cause_no_error(visit: Visit, real: ReportFile) -> None:
    for link in ("#workers?item=99", "#errors?item=99", "#stream?item=999999", "#groups?item=-3"):
        page = visit(real, link)
        view = link[1:].partition("?")[0]
        expect(page.get_by_test_id(f"view-{view}")).to_be_visible()
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        assert "undefined" not in page.get_by_test_id(f"view-{view}").inner_text()
        page.close()


def background(page: Page) -> Any:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_the_theme_follows_the_system_until_one_is_chosen(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    light = background(page)
    page.emulate_media(color_scheme="dark")
    dark = background(page)
    assert light != dark and page.locator("html").get_attribute("data-theme") is None

    page.get_by_test_id("theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert background(page) == light
    page.reload()
    ready(page)
    assert background(page) == light
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.emulate_media(color_scheme="light")
    assert background(page) == dark


def test_help_opens_and_closes(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    help_ = page.get_by_test_id("help")
    page.keyboard.press("?")
    expect(help_).to_be_visible()
    for word in ("Zoom in and out", "Search (also Ctrl K)", "Timeline", "Switch theme"):
        expect(help_).to_contain_text(word)
    page.keyboard.press("Escape")
    expect(help_).to_be_hidden()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(help_).to_be_visible()
    help_.get_by_role("button", name="Close").click()
    expect(help_).to_be_hidden()


def test_escape_closes_the_dialog_before_it_clears_the_selection(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    chosen = select_time(page, 0.1, 0.5)
    page.keyboard.press("?")
    expect(page.get_by_test_id("help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("help")).to_be_hidden()
    assert selection(page) == chosen


def test_g_and_a_letter_open_a_view(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    for letter, view in (("t", "stream"), ("w", "workers"), ("i", "fine"), ("f", "errors"), ("o", "overview")):
        page.keyboard.press("g")
        page.keyboard.press(letter)
        expect(page.get_by_test_id(f"view-{view}")).to_be_visible()


def test_the_palette_finds_views_prefixes_workers_and_tasks(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    palette, search = page.get_by_test_id("palette"), page.get_by_test_id("palette-search")

    page.keyboard.press("/")
    expect(palette).to_be_visible()
    search.fill("network")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("view-bandwidth")).to_be_visible()
    expect(palette).to_be_hidden()

    page.keyboard.press("Control+k")
    search.fill("read_events")
    palette.get_by_role("option").filter(has_text="profile").first.click()
    expect(page.get_by_test_id("flame-prefix")).to_have_value("read_events")

    page.get_by_test_id("open-palette").click()
    search.fill(real.report["workers"][0]["worker"])
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("worker-detail")).to_be_visible()

    key = next(key for key in real.recording["tasks"]["key"].tolist() if key.startswith("divide-"))
    page.keyboard.press("/")
    search.fill(key)
    palette.get_by_role("option").filter(has_text=key).first.click()
    expect(page.get_by_test_id("task-detail")).to_contain_text(key)

    page.keyboard.press("/")
    search.fill("there is nothing like this")
    expect(palette).to_contain_text("No results for")
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()
    expect(page.get_by_test_id("task-detail")).to_be_visible()


def test_help_opens_from_the_palette(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    page.keyboard.press("/")
    page.get_by_test_id("palette-search").fill("keyboard shortcuts")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("help")).to_be_visible()
    expect(page.get_by_test_id("palette")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("help")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.get_by_test_id("palette-search")).to_be_focused()


def test_arrow_keys_select_in_the_palette(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    page.keyboard.press("/")
    expect(page.get_by_test_id("palette-search")).to_be_focused()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    chosen = page.get_by_test_id("palette").locator("[aria-selected=true]")
    expect(chosen).to_contain_text("Profile")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("view-profile")).to_be_visible()
