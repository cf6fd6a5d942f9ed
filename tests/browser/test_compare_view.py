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
    # One dot per run, and the change of score is the largest of those that add up.
    expect(page.get_by_test_id("dots-before").locator(".dot")).to_have_count(5)
    expect(page.get_by_test_id("dots-after").locator(".dot")).to_have_count(1)
    expect(page.get_by_test_id("thread-change").first).to_contain_text("score")
    expect(page.get_by_test_id("thread-change").last).to_contain_text("Together")
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


def test_a_dot_of_the_history_compares_with_that_run(page: Page) -> None:
    page.goto("/ours/clusters/job-5/computations/c-1")
    duration = page.get_by_test_id("metric-duration").locator("..")
    expect(duration).to_contain_text(re.compile(r"\+7 %, median \d+ ms of 5 other runs"), timeout=60_000)
    dots = duration.get_by_role("link")
    expect(dots).to_have_count(5)
    dots.last.click()
    expect(page.get_by_test_id("dots-before").locator(".dot")).to_have_count(1)
    expect(page.get_by_test_id("headline")).to_contain_text("One run each")
    assert "before=job-4%2Fc-1" in page.url or "before=job-4/c-1" in page.url
    # A cluster is compared with the other clusters of its name.
    page.goto("/ours/clusters/job-5")
    expect(page.get_by_test_id("metric-duration").locator("..").get_by_role("link")).to_have_count(5)


def test_one_earlier_run_is_compared_and_links_back(page: Page) -> None:
    page.goto("/ours/clusters/job-5/computations/c-1")
    # The charts above move the list until they are drawn.
    expect(page.locator("html[data-ready]")).to_be_attached()
    page.get_by_test_id("earlier-run").first.get_by_role("checkbox").check()
    expect(page.get_by_label("Choose all earlier runs")).to_have_js_property("indeterminate", value=True)
    page.get_by_role("button", name="Compare with this run").click()
    expect(page.get_by_test_id("headline")).to_contain_text("One run each")
    page.get_by_test_id("compared-runs").locator("summary").click()
    page.get_by_test_id("compared-runs").get_by_role("link").first.click()
    expect(page.get_by_test_id("page-computation")).to_be_visible()


def test_the_page_fits_a_phone(page: Page) -> None:
    page.goto("/ours/compare?before=job-0/c-1&after=job-5/c-1")
    expect(page.get_by_test_id("headline")).to_be_visible()
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=NARROW[0])
    page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})


def test_the_last_runs_of_a_name_are_compared_with_those_before(page: Page) -> None:
    page.goto("/ours/runs?since=all")
    page.get_by_test_id("compare-link").click()
    name, runs = page.get_by_test_id("compare-name"), page.get_by_test_id("compare-count")
    expect(name).to_have_value("job")
    # Six finished runs: three against three, as five on each side are not there.
    expect(page.get_by_test_id("dots-before").locator(".dot")).to_have_count(3)
    expect(page.get_by_test_id("dots-after").locator(".dot")).to_have_count(3)
    runs.select_option("1")
    expect(page.get_by_test_id("dots-after").locator(".dot")).to_have_count(1)
    expect(page.get_by_test_id("headline")).to_contain_text("One run each")
    expect(page).to_have_url(re.compile("runs=1"))
    page.get_by_test_id("compared-runs").locator("summary").click()
    links = page.get_by_test_id("compared-runs").get_by_role("link")
    expect(links).to_have_text([re.compile("^job, 2025-"), re.compile("^job, 2025-")])
    assert violations(page) == []


def test_the_picker_fits_a_phone_and_the_palette_opens_it(page: Page) -> None:
    page.goto("/ours")
    page.get_by_test_id("open-palette").click()
    page.keyboard.type("compare")
    expect(page.get_by_test_id("palette").get_by_role("option")).to_have_text(["Compare"])
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("compare-name")).to_be_visible()
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
