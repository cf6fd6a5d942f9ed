"""Errors: their impact, when they occurred, and samples of an error group."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.accessibility import APPEARANCES, take_picture, violations
from tests.helpers.hosted import HostedServer
from tests.helpers.hostile import HOSTILE
from tests.helpers.samples import sample_tables

from daskscope.server.services import now_us
from daskscope.testing import make_frames

HOUR = 3_600_000_000
TRACEBACK = """Traceback (most recent call last):
  File "/home/mia/etl.py", line 4, in main
    clean(df)
  File "/home/mia/clean.py", line 88, in {function}
    return float(text)
  File "/usr/lib/python3.12/site-packages/pandas/series.py", line 4700, in map
    return f(x)
"""


def failure(number: int, fingerprint: str, **values: Any) -> dict[str, Any]:
    text = TRACEBACK.replace("{function}", fingerprint)
    return {
        "time_us": now_us() - number * HOUR, "fingerprint": fingerprint, "type": "ValueError", "message": f"bad number {number}",
        "traceback": text, "count": 1, "computation": f"comp-{number}", "key": f"task-{number}", "worker": "tcp://1", **values,
    }  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("errors")) as server:
        (row,) = sample_tables("one")["clusters"]
        failures = [
            *(failure(number, "parse", will_retry=number == 2, count=1 + number) for number in range(1, 4)),
            *(failure(number, "flaky_write", will_retry=True, count=10) for number in range(3)),
            failure(5, "hostile", type=HOSTILE, message=HOSTILE, traceback=TRACEBACK.replace("{function}", HOSTILE)),
            failure(24 * 30, "old"),
        ]
        assert server.send(*make_frames({"clusters": [row], "exceptions": failures}, cluster="one")).status == 200
        yield server


@pytest.fixture
def page(browser: Browser, server: HostedServer) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1440, "height": 900}, base_url=server.url) as context:
        page = context.new_page()
        page.goto(server.entry)
        expect(page.get_by_test_id("page-home")).to_be_visible()
        yield page


def test_the_list_says_where_an_error_is_raised_and_what_it_did(page: Page) -> None:
    page.goto("/local/errors")
    rows = page.get_by_test_id("error-row")
    expect(rows).to_have_count(4)
    parse = rows.filter(has_text="ValueError in parse")
    expect(parse).to_contain_text("clean.py, line 88")
    expect(parse).to_contain_text("Ended 2 computations")
    expect(parse).to_contain_text("6 failed, 3 retried")
    expect(parse.locator(".fatal")).to_have_count(2)
    expect(parse.locator(".retried")).to_have_count(1)
    # It occurred last, but failed nothing.
    expect(rows.last).to_contain_text("ValueError in flaky_write")
    expect(rows.last).to_contain_text("All 30 retried")
    expect(rows.last.get_by_role("img")).to_have_attribute("aria-label", "30 occurrences in the last 48 hours, by hour")
    expect(page.get_by_test_id("answer")).to_contain_text("ValueError in parse ended 2 computations")


def test_a_group_has_one_sample_with_previous_and_next(page: Page) -> None:
    page.goto("/local/errors/parse")
    expect(page.get_by_test_id("answer")).to_contain_text("It ended 2 computations (1 run). 6 failed, 3 retried.")
    expect(page.get_by_test_id("error-timeline")).to_contain_text("9 occurrences in 7 days, per 2 hours")
    place, sample = page.get_by_test_id("sample-place"), page.get_by_test_id("sample")
    expect(place).to_have_text("1 of 3")
    expect(page.get_by_test_id("traceback")).to_contain_text("ValueError: bad number 1")
    expect(sample).to_contain_text("failed for good")
    expect(page.get_by_role("button", name="Previous sample")).to_be_disabled()
    page.get_by_role("button", name="Next sample").click()
    expect(page).to_have_url(re.compile("sample=2"))
    expect(sample).to_contain_text("retried")
    expect(sample).to_contain_text("3 equal occurrences")
    page.keyboard.press("]")
    expect(place).to_have_text("3 of 3")
    expect(page.get_by_role("button", name="Next sample")).to_be_disabled()
    page.keyboard.press("[")
    expect(place).to_have_text("2 of 3")
    page.reload()
    expect(page.get_by_test_id("traceback")).to_contain_text("ValueError: bad number 2")


def test_an_error_that_was_always_retried_says_so(page: Page) -> None:
    page.goto("/local/errors/flaky_write")
    expect(page.get_by_test_id("answer")).to_contain_text("All 30 occurrences were retried (1 run).")


def test_an_old_error_shows_the_week_of_its_last_occurrence(page: Page) -> None:
    page.goto("/local/errors/old")
    expect(page.get_by_test_id("error-timeline")).to_contain_text("1 occurrence in 7 days")
    expect(page.get_by_test_id("error-timeline").locator(".fatal")).to_have_count(1)


@pytest.mark.parametrize("path", ["errors", "errors/parse", "errors/hostile"])
def test_the_pages_are_accessible_and_fit(page: Page, path: str) -> None:
    page.goto(f"/local/{path}")
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    broken: dict[str, list[str]] = {}
    for theme, (width, height) in APPEARANCES:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": height})
        take_picture(page, f"{path.replace('/', '-')}-{theme}-{width}")
        page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)
        if problems := violations(page):
            broken[f"{theme} {width}"] = problems
    assert broken == {}
