"""Every view in both themes, wide and narrow: accessible, inside the window, and as pictures for people to look at.

Pictures are in tests/browser/pictures/, which git ignores.
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
LOOKS = [(theme, size) for theme in ("light", "dark") for size in (WIDE, NARROW)]


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.exists():
        pytest.skip("NO ACCESSIBILITY TESTS: axe-core is not installed; run npm ci in web/")
    return AXE.read_text(encoding="utf-8")


def violations(page: Page, axe: str) -> list[str]:
    """What breaks a rule of WCAG A or AA, with the elements that do."""
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


def dress(page: Page, context: BrowserContext, theme: Any, size: tuple[int, int]) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.set_viewport_size({"width": size[0], "height": size[1]})


@pytest.mark.parametrize(("theme", "size"), LOOKS, ids=[f"{theme}-{size[0]}" for theme, size in LOOKS])
def test_every_view(
    visit: Visit, context: BrowserContext, real: ReportFile, axe: str, theme: str, size: tuple[int, int]
) -> None:
    page = visit(real)
    dress(page, context, theme, size)
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
def test_what_opens_over_the_page(
    visit: Visit, context: BrowserContext, real: ReportFile, empty: ReportFile, axe: str, theme: str
) -> None:
    page = visit(real, "#stream?item=3")
    dress(page, context, theme, WIDE)
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
    page.keyboard.press("/")
    expect(page.get_by_test_id("palette-search")).to_be_focused()
    look(page, "palette")
    nothing = visit(empty)
    dress(nothing, context, theme, WIDE)
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
def test_a_report_of_nothing_and_one_of_a_lot_stay_inside_the_window(
    visit: Visit, context: BrowserContext, empty: ReportFile, many: ReportFile, size: tuple[int, int]
) -> None:
    wide = {}
    for name, report in (("empty", empty), ("many", many)):
        page = visit(report)
        dress(page, context, "light", size)
        for view in VIEWS:
            page.get_by_test_id(f"nav-{view}").click()
            settled(page, view)
            over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if over > 0:
                wide[name, view] = over
    assert wide == {}
