"""The chart of a computation's history: one dot per run, a measure, and when the duration changed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from tests.browser.accessibility import violations
from tests.browser.support import NARROW, WIDE, sign_in
from tests.helpers.hosted import HostedServer
from tests.helpers.repeated_runs import repeated_frames

RUNS, SLOWER_FROM = 24, 16
KEYS = "Use the left and right arrow keys to read runs, and Enter to open one."


def duration(number: int) -> float:
    return (13.0 if number >= SLOWER_FROM else 10.0) + number % 4 / 10


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    """Twenty-four runs of the same code, slower from the seventeenth on."""
    with HostedServer(tmp_path_factory.mktemp("history"), login=True) as server:
        server.make_account("ours", olga="owner")
        token = server.make_token("olga", "ours")
        for number in range(RUNS):
            version = "2.3" if number >= SLOWER_FROM else "2.2"
            assert server.send(*repeated_frames(number, duration(number), version), token=token).status == 200
        yield server


@pytest.fixture(scope="module")
def context(browser: Browser, server: HostedServer) -> Iterator[BrowserContext]:
    width, height = WIDE
    with browser.new_context(viewport={"width": width, "height": height}, base_url=server.url) as context:
        sign_in(context, server, "olga")
        yield context


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    yield page
    page.close()


def opened(page: Page, number: int) -> Locator:
    """Open the history of a run, and return it."""
    page.goto(f"/ours/clusters/c{number}/computations/k{number}")
    history = page.get_by_test_id("history")
    expect(history.locator("canvas")).to_be_visible()
    return history


def test_the_chart_says_how_many_runs_and_when_the_duration_changed(page: Page) -> None:
    history = opened(page, RUNS - 1)
    expect(history.get_by_role("img")).to_have_attribute(
        "aria-label", f"Duration of 24 runs from 2023-11-14 to 2023-11-15. 1 change of the duration. {KEYS}"
    )
    expect(history.get_by_test_id("history-change")).to_contain_text("30 % slower: 13.2 s instead of 10.2 s")
    expect(history.locator(".plotkey")).to_have_text(re.compile("one run.*median.*change of the duration"))
    assert violations(page) == []


def test_the_keys_read_runs_and_open_one(page: Page) -> None:
    history = opened(page, RUNS - 1)
    history.get_by_role("img").focus()
    page.keyboard.press("Home")
    expect(history.get_by_test_id("readout")).to_have_text("2023-11-14 22:13 UTC: 10.0 s")
    page.keyboard.press("ArrowRight")
    expect(history.get_by_test_id("readout")).to_have_text("2023-11-14 23:13 UTC: 10.1 s")
    page.keyboard.press("Enter")
    page.wait_for_url("**/clusters/c1/computations/k1?measure=duration")
    # Two runs.
    expect(page.get_by_test_id("history").get_by_role("img")).to_have_attribute(
        "aria-label", f"Duration of 2 runs on 2023-11-14. Changes appear after 15 finished runs. {KEYS}"
    )
    expect(page.get_by_test_id("history")).to_contain_text("Changes appear after 15 finished runs.")


def test_a_click_on_a_dot_opens_its_run(page: Page) -> None:
    over = opened(page, RUNS - 1).locator(".u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box
    highest = 1.08 * max(map(duration, range(RUNS)))
    x, y = box["width"] * 4.5 / RUNS, box["height"] * (1 - duration(4) / highest)
    # The plot below the dot opens nothing.
    over.click(position={"x": x, "y": box["height"] - 5})
    expect(page.get_by_test_id("history").get_by_test_id("readout")).to_have_text("2023-11-15 02:13 UTC: 10.0 s")
    assert "/clusters/c23/" in page.url
    over.click(position={"x": x, "y": y})
    page.wait_for_url("**/clusters/c4/computations/k4?measure=duration")


MEASURES = [
    ("cost", "Est. cost", "$0.00077"),
    ("compute", "Compute", "26.6 s"),
    ("disk", "Spill", "0 s"),
    ("n_tasks", "Tasks", "2"),
    ("nbytes", "Result size", "1.95 KiB"),
    ("n_errors", "Errors", "0"),
    ("threads", "Threads", "5"),
]


def test_each_measure_is_chosen_and_in_the_url(page: Page) -> None:
    history = opened(page, RUNS - 1)

    def check(name: str, text: str) -> None:
        expect(history.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
        label = f"{name} of 24 runs from 2023-11-14 to 2023-11-15. 1 change of the duration. {KEYS}"
        history.get_by_role("img", name=label).focus()
        page.keyboard.press("End")
        expect(history.get_by_test_id("readout")).to_have_text(f"2023-11-15 21:13 UTC: {text}")

    for measure, name, text in MEASURES:
        history.get_by_role("button", name=name).focus()
        page.keyboard.press("Enter")
        page.wait_for_url(f"**?measure={measure}")
        check(name, text)
    # A page load takes 0.6 s of CPU time.
    page.reload()
    check(*MEASURES[-1][1:])


def test_the_chart_fits_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    opened(page, RUNS - 1)
    page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=NARROW[0])
