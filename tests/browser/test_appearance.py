"""Every view in both themes, wide and narrow: accessible, within the window, with screenshots.

Screenshots go to tests/browser/pictures/, which git ignores.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.browser.support import NARROW, VIEWS, WIDE, ReportFile, Visit, settled

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
PICTURES = Path(__file__).with_name("pictures")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
APPEARANCES = [(theme, size) for theme in ("light", "dark") for size in (WIDE, NARROW)]


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.exists():
        pytest.skip("NO ACCESSIBILITY TESTS: axe-core is not installed; run npm ci in web/")
    return AXE.read_text(encoding="utf-8")


def violations(page: Page, axe: str) -> list[str]:
    """Return violations of WCAG A and AA, with the elements."""
    if page.evaluate("typeof window.axe") == "undefined":
        page.evaluate(axe)
    found: list[dict[str, Any]] = page.evaluate(
        """async tags => (await axe.run(document, {
            runOnly: {type: 'tag', values: tags}, resultTypes: ['violations'],
        })).violations""",
        RULES,
    )
    return [
        f"{rule['id']} ({rule['help']}): {node['target']} {node['html'][:160]} {node['failureSummary'][:300]}"
        for rule in found
        for node in rule["nodes"][:4]
    ]


def set_appearance(page: Page, context: BrowserContext, theme: Any, size: tuple[int, int]) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.set_viewport_size({"width": size[0], "height": size[1]})


@pytest.mark.parametrize(("theme", "size"), APPEARANCES, ids=[f"{theme}-{size[0]}" for theme, size in APPEARANCES])
def test_every_view_is_accessible_and_fits_the_window(
    visit: Visit, context: BrowserContext, real: ReportFile, axe: str, theme: str, size: tuple[int, int]
) -> None:
    page = visit(real)
    set_appearance(page, context, theme, size)
    PICTURES.mkdir(exist_ok=True)
    broken: dict[str, list[str]] = {}
    for view in VIEWS:
        page.get_by_test_id(f"nav-{view}").click()
        settled(page, view)
        page.mouse.move(0, 0)
        page.screenshot(path=PICTURES / f"{view}-{theme}-{size[0]}.png", full_page=True)
        problems = violations(page, axe)
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if over > 0:
            problems.append(f"the page is {over} px wider than the window")
        if problems:
            broken[view] = problems
    assert broken == {}, "\n".join(f"{view}: {problem}" for view, found in broken.items() for problem in found)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_dialogs_and_details_are_accessible(
    visit: Visit, context: BrowserContext, real: ReportFile, empty: ReportFile, axe: str, theme: str
) -> None:
    page = visit(real, "#stream?item=3")
    set_appearance(page, context, theme, WIDE)
    PICTURES.mkdir(exist_ok=True)
    broken: list[str] = []

    def look(page: Page, name: str) -> None:
        page.screenshot(path=PICTURES / f"{name}-{theme}-1280.png")
        broken.extend(f"{name}: {problem}" for problem in violations(page, axe))

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
