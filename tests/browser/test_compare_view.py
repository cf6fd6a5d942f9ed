"""The page that compares a computation with its earlier runs, and the same page as a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.browser.accessibility import violations
from tests.browser.support import NARROW, WIDE, sign_in
from tests.helpers.compared_runs import T, compared_tables, write_runs
from tests.helpers.hosted import HostedServer

import daskscope
from daskscope.report.html import render_comparison
from daskscope.testing import make_frames

HOUR = 3_600_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    """Six runs of the same code; the last one is slower, because its data is."""
    with HostedServer(tmp_path_factory.mktemp("compare"), login=True) as server:
        server.make_account("ours", olga="owner")
        token = server.make_token("olga", "ours")
        for seed in range(6):
            cluster = f"job-{seed}"
            tables = compared_tables(seed, 1.3 if seed == 5 else 1.0, cluster, T + seed * HOUR)
            tables["computations"][0]["code"] = "scored.compute()"
            tables["computations"][0]["code_line"] = 0
            assert server.send(*make_frames(tables, cluster=cluster), token=token).status == 200
        yield server


@pytest.fixture(scope="module")
def page(browser: Browser, server: HostedServer) -> Iterator[Page]:
    width, height = WIDE
    with browser.new_context(viewport={"width": width, "height": height}, base_url=server.url) as context:
        sign_in(context, server, "olga")
        yield context.new_page()


def test_a_computation_is_compared_with_all_its_earlier_runs(page: Page) -> None:
    page.goto("/ours/clusters/job-5/computations/c-1")
    # The charts above move the list until they are drawn.
    expect(page.locator("html[data-ready]")).to_be_attached()
    earlier = page.get_by_test_id("earlier")
    compare = page.get_by_test_id("compare-chosen")
    expect(compare).to_be_disabled()
    earlier.get_by_label("Choose all earlier runs").check()
    expect(compare).to_have_text("Compare with these 5 runs")
    assert violations(page) == []
    compare.click()
    expect(page.get_by_test_id("page-compare")).to_be_visible()
    expect(page.get_by_test_id("headline")).to_contain_text("5 and 1 repeats are too few")
    expect(
        page.get_by_text(re.compile(r"A score task took longer than in all 5 earlier runs \(\d+ % "))
    ).to_be_visible()
    first = page.get_by_test_id("compared-prefix").first
    expect(first).to_contain_text(re.compile(r"score.*→.*\+(29|30|31) %.*cannot tell"))
    assert violations(page) == []


def test_the_flame_graph_says_what_changed(page: Page) -> None:
    panel = page.get_by_test_id("differential")
    canvas = panel.get_by_test_id("flame-canvas")
    canvas.focus()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    # The widest frames are load, then score.
    expect(panel.locator(".flamestatus")).to_contain_text(
        re.compile(r"load.* (79|80)(\.\d)? ms before, (79|80)(\.\d)? ms after \(")
    )
    page.keyboard.press("ArrowRight")
    expect(panel.locator(".flamestatus")).to_contain_text(re.compile(r"score.*\(\+(29|30|31) %\)"))


def test_one_earlier_run_is_compared_and_links_back(page: Page) -> None:
    page.goto("/ours/clusters/job-5/computations/c-1")
    # The charts above move the list until they are drawn.
    expect(page.locator("html[data-ready]")).to_be_attached()
    page.get_by_test_id("earlier-run").first.get_by_role("checkbox").check()
    expect(page.get_by_label("Choose all earlier runs")).to_have_js_property("indeterminate", value=True)
    page.get_by_role("button", name="Compare with this run").click()
    expect(page.get_by_test_id("headline")).to_contain_text("one run each")
    page.get_by_role("link", name="job c-1 of job-4").click()
    expect(page.get_by_test_id("page-computation")).to_be_visible()


def test_the_page_fits_a_phone(page: Page) -> None:
    page.goto("/ours/compare?before=job-0/c-1&after=job-5/c-1")
    expect(page.get_by_test_id("headline")).to_be_visible()
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=NARROW[0])
    page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})


def test_two_sets_of_recent_computations_are_chosen_and_compared(page: Page) -> None:
    page.goto("/ours/clusters")
    page.get_by_test_id("compare-link").click()
    rows, compare = page.get_by_test_id("compare-row"), page.get_by_test_id("compare-runs")
    expect(rows).to_have_count(6)
    expect(rows.first).to_contain_text("scored.compute()")
    expect(compare).to_be_disabled()

    # Newest first: the slow run is the first row.
    rows.nth(0).get_by_label("After: ").check()
    rows.nth(1).get_by_label("Before: ").check()
    rows.nth(2).get_by_label("After: ").check()
    # A run is on one side only.
    rows.nth(2).get_by_label("Before: ").check()
    expect(rows.nth(2).get_by_label("After: ")).not_to_be_checked()
    expect(page.get_by_test_id("compare-sides")).to_have_text("2 runs before, 1 after")
    assert violations(page) == []

    compare.click()
    expect(page.get_by_test_id("headline")).to_contain_text("2 and 1 repeats are too few")
    expect(page.get_by_role("link", name="job c-1 of job-5")).to_be_visible()
    page.get_by_test_id("page-compare").get_by_text("After:").wait_for()
    page.locator(".crumbs").get_by_role("link", name="Compare").click()
    expect(rows).to_have_count(6)


def test_the_picker_fits_a_phone_and_the_palette_opens_it(page: Page) -> None:
    page.goto("/ours")
    page.get_by_test_id("open-palette").click()
    page.keyboard.type("compare")
    expect(page.get_by_test_id("palette").get_by_role("option")).to_have_text(["Compare"])
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("compare-row")).to_have_count(6)
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=NARROW[0])
    page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})


def test_a_comparison_is_also_a_file(context: BrowserContext, tmp_path: Path) -> None:
    comparison = daskscope.compare(write_runs(tmp_path, 5), write_runs(tmp_path, 5, 1.3, first=100))
    file = tmp_path / "comparison.html"
    file.write_text(render_comparison(comparison.to_dict()))
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(file.as_uri())
    expect(page.get_by_test_id("headline")).to_have_text(comparison.headline)
    first = page.get_by_test_id("compared-prefix").first
    expect(first.locator(".pill")).to_have_text("slower")
    expect(page.get_by_test_id("flame-canvas")).to_be_visible()
    assert violations(page) == []
    assert problems == []
