"""The live view with a real cluster: it follows, pauses, survives outages and ends with the cluster."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.live_cluster import LiveCluster
from tests.helpers.hosted import HostedServer


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("live-view")


@pytest.fixture(scope="module")
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def servers(directory: Path, port: int) -> Iterator[list[HostedServer]]:
    """The running server, which a test stops and starts again."""
    running = [HostedServer(directory, port=port)]
    running[0].__enter__()
    yield running
    running[0].__exit__(None, None, None)


@pytest.fixture(scope="module")
def cluster(servers: list[HostedServer]) -> Iterator[LiveCluster]:
    with LiveCluster(servers[0].url, servers[0].secret, "a notebook") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def page(browser: Browser, servers: list[HostedServer], cluster: LiveCluster) -> Iterator[Page]:
    """One page for all tests. It is never reloaded."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.goto(servers[0].entry)
        page.get_by_test_id("nav-clusters").click()
        page.get_by_role("link", name="a notebook").click()
        page.evaluate("window.theSame = true")
        yield page
        assert page.evaluate("window.theSame"), "the page was reloaded"


def expect_tasks(page: Page, count: int) -> None:
    expect(page.get_by_role("img", name=re.compile(rf"\b{count} tasks\."))).to_be_visible(timeout=60_000)


def expect_live(page: Page) -> None:
    expect(page.get_by_test_id("live-status")).to_contain_text("Live.", timeout=60_000)


def test_new_bars_appear_on_the_cluster_page(page: Page, cluster: LiveCluster) -> None:
    expect(page.get_by_test_id("live")).to_contain_text("No task has finished")
    cluster.tell("run", 40)
    expect_tasks(page, 40)
    cluster.tell("run", 5)
    expect_tasks(page, 45)
    expect(page.get_by_test_id("live-busy")).to_contain_text("threads 4")
    expect(page.get_by_test_id("live-worker-memory").locator("li")).to_have_count(2)


def test_prefixes_and_errors_follow(page: Page, cluster: LiveCluster) -> None:
    prefixes = page.get_by_test_id("live-prefixes")
    expect(prefixes.get_by_role("row").filter(has_text="rest")).to_contain_text("45")
    cluster.tell("fail", 2)
    expect(page.get_by_test_id("live-errors")).to_contain_text("ZeroDivisionError")
    expect(page.get_by_test_id("live-errors").get_by_role("row").last).to_contain_text("2")
    expect_tasks(page, 47)


def test_selecting_a_time_pauses(page: Page, cluster: LiveCluster) -> None:
    box = page.get_by_test_id("live-stream").get_by_role("img").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.2, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=4)
    page.mouse.up()
    status = page.get_by_test_id("live-status")
    expect(status).to_contain_text("Paused at")
    shown = page.get_by_test_id("live-stream").get_by_role("img").get_attribute("aria-label") or ""
    times = re.search(r", (\S+) to (\S+)\. ", shown)
    assert times is not None
    cluster.tell("run", 10)
    expect(status).to_contain_text("10 tasks finished since")
    # New bars arrive, but the shown time stays.
    expect(page.get_by_role("img", name=f"{times[1]} to {times[2]}. 57 tasks")).to_be_visible()
    page.get_by_test_id("back-to-live").click()
    expect_live(page)


def test_another_window_shows_the_same(page: Page) -> None:
    with page.context.expect_page() as opened:
        page.evaluate("window.open(location.href)")
    expect_tasks(opened.value, 57)
    opened.value.close()


def test_windows(page: Page) -> None:
    window = page.get_by_test_id("live-window")
    for name in ("30 s", "10 min", "All"):
        window.get_by_role("button", name=name).click()
        expect(window.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
    expect(page).to_have_url(re.compile("window=all"))
    window.get_by_role("button", name="2 min").click()


def test_a_cut_network_is_reported_and_nothing_is_missing_after_it(page: Page, cluster: LiveCluster) -> None:
    page.context.set_offline(True)
    expect(page.get_by_test_id("live-status")).to_contain_text("did not respond", timeout=60_000)
    cluster.tell("run", 20)
    page.context.set_offline(False)
    expect_tasks(page, 77)
    expect_live(page)


def test_a_restarted_server_is_found_again_and_nothing_is_missing(
    page: Page, cluster: LiveCluster, servers: list[HostedServer], directory: Path, port: int
) -> None:
    servers[0].__exit__(None, None, None)
    expect(page.get_by_test_id("live-status")).to_contain_text("did not respond", timeout=60_000)
    cluster.tell("run", 20)
    servers[0] = HostedServer(directory, port=port)
    servers[0].__enter__()
    expect_tasks(page, 97)
    expect_live(page)


def test_the_end_of_the_cluster(page: Page, cluster: LiveCluster) -> None:
    cluster.__exit__(None, None, None)
    expect(page.get_by_test_id("answer")).to_contain_text("computations failed", timeout=60_000)
    expect(page.get_by_test_id("stream-canvas")).to_be_visible()
    expect(page.get_by_test_id("live")).to_have_count(0)
