"""The live view with a real cluster: it follows, pauses, survives outages and ends with the cluster."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
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
        page.get_by_test_id("nav-runs").click()
        page.get_by_role("link", name="a notebook").click()
        page.evaluate("window.theSame = true")
        yield page
        assert page.evaluate("window.theSame"), "the page was reloaded"


def expect_tasks(page: Page, count: int) -> None:
    expect(page.get_by_test_id("selection-text")).to_contain_text(f"{count} of {count} task runs", timeout=60_000)


def expect_live(page: Page) -> None:
    expect(page.get_by_test_id("live-status")).to_contain_text("Following now.", timeout=60_000)


def test_new_bars_appear_on_the_cluster_page(page: Page, cluster: LiveCluster) -> None:
    expect(page.get_by_test_id("live")).to_contain_text("No task has finished")
    cluster.tell("run", 40)
    expect_tasks(page, 40)
    cluster.tell("run", 5)
    expect_tasks(page, 45)
    expect(page.get_by_role("img", name=re.compile("^Tasks on 4 threads"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Memory of"))).to_have_count(2)


def test_bars_are_drawn_at_their_place(page: Page) -> None:
    """The newest bars are near the right edge, and there are none before the first task."""
    columns: list[int] = page.get_by_test_id("stream-canvas").evaluate(
        """canvas => {
          const { width, height } = canvas;
          const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
          const coloured = new Set();
          for (let i = 3; i < data.length; i += 4) if (data[i] > 0) coloured.add(Math.floor((((i >> 2) % width) / width) * 100));
          return [...coloured].sort((a, b) => a - b);
        }"""
    )
    assert columns and columns[0] > 5, columns


#: What the ruler and the lanes say they show, and the age of the run in the strip and in the ruler.
MOMENT = """() => {
  const label = (id) => document.querySelector(`[data-testid=${id}]`).getAttribute("aria-label");
  return {
    ruler: label("ruler").match(/selected (\\S+) to (\\S+)\\./).slice(1).join(),
    lanes: label("stream-canvas").match(/, (\\S+) to (\\S+)\\. /).slice(1).join(),
    strip: document.querySelector("[data-testid=metric-duration]").innerText,
    axis: document.querySelector("[data-testid=selection-text]").children[1].innerText,
  };
}"""


def test_the_page_has_one_now(page: Page) -> None:
    moments = []
    for _ in range(30):
        moments.append(page.evaluate(MOMENT))
        page.wait_for_timeout(97)
    assert all(now["ruler"] == now["lanes"] for now in moments), moments
    # The strip is drawn again a moment after the ruler, once a second.
    assert sum(now["strip"] == now["axis"] for now in moments) >= 25, moments
    ruler, lanes = (page.get_by_test_id(name).bounding_box() for name in ("ruler", "stream-canvas"))
    assert ruler is not None and lanes is not None
    assert (ruler["x"], ruler["width"]) == (lanes["x"], lanes["width"])


def test_a_task_is_found_and_opens_below_the_lanes(page: Page) -> None:
    page.get_by_test_id("find-task").fill("rest")
    expect(page.get_by_test_id("find-count")).to_have_text("45")
    page.get_by_test_id("find-task").press("Enter")
    drawer = page.get_by_test_id("task-detail")
    expect(page.get_by_test_id("find-count")).to_have_text("1 of 45")
    expect(drawer).to_contain_text(re.compile("compute"))
    key = drawer.get_by_role("heading").first.inner_text()
    assert "Inputs" not in drawer.inner_text(), "they are not known yet"
    page.get_by_test_id("find-task").fill("")
    drawer.get_by_role("button", name="Close").click()
    expect(drawer).to_have_count(0)
    assert key.startswith("rest-")


def test_prefixes_and_errors_follow(page: Page, cluster: LiveCluster) -> None:
    expect(page.get_by_test_id("prefix-row").filter(has_text="rest")).to_contain_text("45")
    cluster.tell("fail", 2)
    expect(page.get_by_test_id("live-errors")).to_contain_text("ZeroDivisionError")
    expect(page.get_by_test_id("live-errors").get_by_role("row").last).to_contain_text("2")
    expect(page.get_by_test_id("prefix-row")).to_have_count(2)
    expect_tasks(page, 47)


def colours(legend: Locator) -> dict[str, str]:
    """Return the colour of each prefix in a legend."""
    items = [item for item in legend.locator("li").all() if item.locator(".sw").count()]
    return {item.inner_text().strip(): item.locator(".sw").get_attribute("style") or "" for item in items}


def test_a_prefix_keeps_its_colour_while_the_cluster_runs_and_in_every_view(page: Page) -> None:
    live = colours(page.get_by_test_id("live").locator(".keylist").first)
    assert len(live) == len(set(live.values())) == 2, live
    # In another window it does not depend on the order in which the tasks arrive.
    with page.context.expect_page() as opened:
        page.evaluate("window.open(location.href)")
    expect_tasks(opened.value, 47)
    assert colours(opened.value.get_by_test_id("live").locator(".keylist").first) == live
    # And the document has the same.
    opened.value.get_by_test_id("nav-stream").click()
    expect(opened.value.get_by_test_id("stream-canvas")).to_be_visible(timeout=60_000)
    assert colours(opened.value.locator(".streampanel .keylist")) == live
    opened.value.close()


def test_a_row_leads_to_its_view_and_back(page: Page) -> None:
    page.get_by_test_id("prefix-row").filter(has_text="rest").click()
    expect(page.get_by_test_id("view-profile")).to_be_visible(timeout=60_000)
    expect(page).to_have_url(re.compile("#profile.prefix=rest$"))
    page.get_by_test_id("nav-overview").click()
    expect_tasks(page, 47)
    expect_live(page)


def test_selecting_a_time_pauses(page: Page, cluster: LiveCluster) -> None:
    # The page has grown since it opened: nothing else may move the lanes below the pointer.
    lanes = page.get_by_test_id("stream-canvas")
    lanes.scroll_into_view_if_needed()
    box = lanes.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.2, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=4)
    page.mouse.up()
    status = page.get_by_test_id("live-status")
    expect(status).to_contain_text("Paused at")
    shown = lanes.get_attribute("aria-label") or ""
    times = re.search(r", (\S+) to (\S+)\. ", shown)
    assert times is not None
    cluster.tell("run", 10)
    expect(status).to_contain_text("10 tasks finished since")
    # New tasks arrive, but the shown time stays.
    expect(page.get_by_test_id("selection-text")).to_contain_text("of 57 task runs")
    expect(lanes).to_have_attribute("aria-label", re.compile(f", {times[1]} to {times[2]}\\. "))
    page.get_by_test_id("back-to-live").click()
    expect_live(page)


def test_another_window_shows_the_same(page: Page) -> None:
    with page.context.expect_page() as opened:
        page.evaluate("window.open(location.href)")
    expect_tasks(opened.value, 57)
    opened.value.close()


def test_nothing_is_said_before_the_first_answer(page: Page) -> None:
    """A page that is still loading shows shapes: no zeros, and not that there are no workers."""
    with page.context.expect_page() as opened:
        page.evaluate("window.open('about:blank')")
    waiting = opened.value
    waiting.route("**/increments*", lambda route: None)
    waiting.goto(page.url)
    expect(waiting.get_by_test_id("live-loading")).to_be_visible(timeout=60_000)
    expect(waiting.get_by_test_id("live-status")).to_contain_text("Loading.")
    text = waiting.get_by_test_id("live").inner_text()
    assert not re.search(r"No |\d", text.replace("30 s", "").replace("2 min", "").replace("10 min", "")), text
    waiting.close()


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
    expect(page.get_by_test_id("live-status")).to_contain_text("Showing data from")
    expect(page.locator(".live.stale")).to_be_visible()
    expect(page.get_by_test_id("prefix-row").filter(has_text="rest")).to_contain_text("55")
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
