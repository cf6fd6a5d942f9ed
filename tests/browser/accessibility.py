"""Check pages with axe, the appearances in which they are checked, and pictures of them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page
from tests.browser.support import NARROW, WIDE

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
#: Pictures go to this directory, which git ignores, if the environment has DASKSCOPE_TEST_PICTURES=1. No test compares them.
PICTURES = Path(__file__).with_name("pictures")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
#: Each theme and each width once: the theme does not change a width, and the width no colour. All four with pictures.
APPEARANCES: list[tuple[Literal["light", "dark"], tuple[int, int]]] = [("light", WIDE), ("dark", NARROW)]
if os.environ.get("DASKSCOPE_TEST_PICTURES"):
    APPEARANCES += [("light", NARROW), ("dark", WIDE)]


@cache
def axe_source() -> str:
    if not AXE.exists():
        pytest.skip("NO ACCESSIBILITY TESTS: axe-core is not installed; run npm ci in web/")
    return AXE.read_text(encoding="utf-8")


def violations(page: Page) -> list[str]:
    """Return violations of WCAG A and AA, with the elements."""
    if page.evaluate("typeof window.axe") == "undefined":
        page.evaluate(axe_source())
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


def take_picture(page: Page, name: str, *, full_page: bool = True) -> None:
    """Save a picture of a page, if pictures are asked for."""
    if os.environ.get("DASKSCOPE_TEST_PICTURES") == "1":
        PICTURES.mkdir(exist_ok=True)
        page.screenshot(path=PICTURES / f"{name}.png", full_page=full_page)
