"""Every view in both themes, wide and narrow: accessible and within the window."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.browser.accessibility import APPEARANCES, take_picture, violations
from tests.browser.support import NARROW, VIEWS, WIDE, ReportFile, Visit, settled


def set_appearance(page: Page, context: BrowserContext, theme: Any, size: tuple[int, int]) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.set_viewport_size({"width": size[0], "height": size[1]})


@pytest.mark.parametrize(("theme", "size"), APPEARANCES, ids=[f"{theme}-{size[0]}" for theme, size in APPEARANCES])
def test_every_view_is_accessible_and_fits_the_window(
    visit: Visit, context: BrowserContext, real: ReportFile, theme: str, size: tuple[int, int]
) -> None:
    page = visit(real)
    set_appearance(page, context, theme, size)
    broken: dict[str, list[str]] = {}
    for view in VIEWS:
        page.get_by_test_id(f"nav-{view}").click()
        settled(page, view)
        page.mouse.move(0, 0)
        take_picture(page, f"{view}-{theme}-{size[0]}")
        problems = violations(page)
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if over > 0:
            problems.append(f"the page is {over} px wider than the window")
        if problems:
            broken[view] = problems
    assert broken == {}, "\n".join(f"{view}: {problem}" for view, found in broken.items() for problem in found)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_dialogs_and_details_are_accessible(
    visit: Visit, context: BrowserContext, real: ReportFile, empty: ReportFile, theme: str
) -> None:
    page = visit(real, "#stream?item=3")
    set_appearance(page, context, theme, WIDE)
    broken: list[str] = []

    def look(page: Page, name: str) -> None:
        take_picture(page, f"{name}-{theme}-1280", full_page=False)
        broken.extend(f"{name}: {problem}" for problem in violations(page))

    expect(page.get_by_test_id("task-detail").locator("dl")).to_be_visible()
    look(page, "task")
    page.keyboard.press("?")
    expect(page.get_by_test_id("help")).to_be_visible()
    look(page, "help")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("help")).to_be_hidden()
    # The focus leaves a closed dialog a moment later; keys pressed inside a dialog are its own.
    page.wait_for_function("!document.activeElement?.closest('dialog')")
    page.keyboard.press("/")
    expect(page.get_by_test_id("palette-search")).to_be_focused()
    look(page, "palette")
    nothing = visit(empty)
    set_appearance(nothing, context, theme, WIDE)
    look(nothing, "empty")
    assert broken == [], "\n".join(broken)


def test_hostile_names_do_not_break_the_layout(visit: Visit, hostile: ReportFile) -> None:
    page = visit(hostile)
    wide = {}
    for view in VIEWS:
        page.get_by_test_id(f"nav-{view}").click()
        settled(page, view)
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if over > 0:
            wide[view] = over
    assert wide == {}


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_empty_and_large_reports_fit_the_window(
    visit: Visit, context: BrowserContext, empty: ReportFile, many: ReportFile, size: tuple[int, int]
) -> None:
    wide = {}
    for name, report in (("empty", empty), ("many", many)):
        page = visit(report)
        set_appearance(page, context, "light", size)
        for view in VIEWS:
            page.get_by_test_id(f"nav-{view}").click()
            settled(page, view)
            over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if over > 0:
                wide[name, view] = over
    assert wide == {}
