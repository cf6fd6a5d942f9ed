"""The page of a real cluster while it works: progress that grows, a stuck computation, and the stacks of running tasks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.accessibility import violations
from tests.browser.live_cluster import LiveCluster, wait_until_let_go
from tests.browser.support import NARROW, PATIENCE_MS, WIDE, sign_in
from tests.helpers.hosted import HostedServer

#: So that a page shows progress sooner.
QUICK = {
    "DASK_DASKSCOPE__ANALYTICS__COMPUTATION__INTERVAL": "500ms",
    "DASK_DASKSCOPE__ANALYTICS__EVENTS__INTERVAL": "500ms",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("progress"), login=True, jobs=True) as server:
        server.make_account("ours", olga="owner")
        yield server


@pytest.fixture(scope="module")
def page(browser: Browser, server: HostedServer) -> Iterator[Page]:
    width, height = WIDE
    with browser.new_context(viewport={"width": width, "height": height}, base_url=server.url) as context:
        sign_in(context, server, "olga")
        yield context.new_page()


@pytest.fixture(scope="module")
def cluster(server: HostedServer, page: Page) -> Iterator[LiveCluster]:
    with LiveCluster(server.url, server.make_token("olga", "ours"), "a notebook", **QUICK) as cluster:
        page.goto("/ours/runs")
        page.get_by_role("link", name="a notebook").click()
        expect(page.get_by_test_id("page-cluster")).to_be_visible()
        yield cluster


def test_an_idle_cluster_shows_no_progress(page: Page, cluster: LiveCluster) -> None:
    expect(page.get_by_test_id("metric-workers")).to_contain_text("2 4 threads")
    expect(page.get_by_test_id("progress")).to_have_count(0)
    assert note_of(page, "tasks") == "none running"
    # The words of a finished run.
    assert page.locator(".metric dt").all_inner_texts()[2:4] == ["Task runs", "Errors"]


def note_of(page: Page, metric: str) -> str:
    """Return the note below a number of the strip."""
    return page.locator(".metric", has=page.get_by_test_id(f"metric-{metric}")).locator("dd").last.inner_text()


#: The numbers of one moment: of the strip, of Progress by prefix, and of Running now.
COUNTS = """() => [
  document.querySelector("[data-testid=metric-tasks]").closest(".metric").innerText.match(/\\d+ running, \\d+ waiting/)?.[0],
  document.querySelector("[data-testid=progress-prefix]").innerText.match(/\\d+ running, \\d+ waiting/)?.[0],
  document.querySelector("[data-testid=running-now]").innerText.match(/(\\d+) task/)?.[1] + " running",
]"""


def test_progress_grows_and_ends_without_a_reload(page: Page, cluster: LiveCluster) -> None:
    cluster.tell("begin-resting", 200)
    text = page.get_by_test_id("progress-text")
    expect(text).to_contain_text("of 200 tasks")
    expect(text).to_contain_text(re.compile(r"about \d+( to \d+)? s left|less than \d+ s left"))
    _wait_for_more(page, _done(page))
    row = page.get_by_test_id("progress-row")
    prefix = row.get_by_test_id("progress-prefix")
    expect(prefix).to_contain_text("rest")
    expect(prefix).to_contain_text(re.compile(r"\d+ of 200 done, 4 running, \d+ waiting"))
    # The scheduler assigns more tasks than there are threads: they wait at the workers.
    strip, progress, now = page.evaluate(COUNTS)
    assert strip == progress
    assert now == progress.partition(",")[0] == "4 running"
    row.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(prefix).to_be_hidden()
    # An update must not open it again.
    _wait_for_more(page, _done(page))
    expect(prefix).to_be_hidden()
    expect(page.get_by_test_id("progress")).to_have_count(0, timeout=3 * PATIENCE_MS)
    cluster.tell("forget")


def test_a_computation_that_no_worker_fits_is_stuck(page: Page, cluster: LiveCluster) -> None:
    cluster.tell("begin-impossible", 3)
    text = page.get_by_test_id("progress-text")
    expect(text).to_contain_text("Stuck")
    expect(text).to_contain_text("no worker fits 3 tasks: none offers GPU=1 (3) (0 of 3 tasks)")
    assert violations(page) == []


def test_progress_fits_a_phone(page: Page, cluster: LiveCluster) -> None:
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    expect(page.get_by_test_id("progress-prefix")).to_be_visible()
    page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=NARROW[0])
    assert violations(page) == []
    page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    cluster.tell("forget")
    expect(page.get_by_test_id("progress")).to_have_count(0)


def test_the_stack_of_a_running_task_shows_its_function_and_line(page: Page, cluster: LiveCluster) -> None:
    cluster.tell("begin", 3)
    tasks = page.get_by_test_id("running-task")
    expect(tasks).to_have_count(3)
    expect(tasks.first).to_contain_text("wait_until_let_go")
    frames = page.get_by_test_id("stack-frames")
    # A task is listed from its assignment on. On a busy machine its worker starts it seconds later.
    for _ in range(20):
        tasks.first.get_by_test_id("show-stack").click()
        expect(frames.or_(page.get_by_text("The task was not running"))).to_be_visible()
        if frames.count():
            break
        page.wait_for_timeout(1_000)
    lines, first = inspect.getsourcelines(wait_until_let_go)
    line = first + next(number for number, text in enumerate(lines) if "event.wait" in text)
    expect(frames.get_by_role("listitem").filter(has_text="wait_until_let_go")).to_contain_text(
        f"live_cluster.py:{line}"
    )
    assert violations(page) == []


def test_all_stacks_are_one_flame_graph_that_can_be_searched(page: Page, cluster: LiveCluster) -> None:
    button, answer = page.get_by_test_id("show-all-stacks"), page.get_by_test_id("stack-answer")
    # A second request within a few seconds is refused.
    for _ in range(10):
        button.click()
        expect(button).to_be_enabled()
        if page.get_by_test_id("running-now").get_by_role("alert").count() == 0:
            break
        page.wait_for_timeout(1_000)
    expect(answer).to_contain_text("Stacks of 3 tasks on 2 workers")
    expect(answer.get_by_test_id("flame-canvas")).to_be_visible()
    answer.get_by_test_id("stack-search").fill("wait_until_let_go")
    expect(answer).to_contain_text("“wait_until_let_go” matches 100 %")
    assert violations(page) == []
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    # The flame graph is drawn again for the new width.
    page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=NARROW[0])
    assert violations(page) == []
    page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    cluster.tell("let-go")
    expect(page.get_by_test_id("running-task")).to_have_count(0)
    answer.get_by_role("button", name="Hide").click()
    expect(page.get_by_test_id("running-now")).to_have_count(0)


def _done(page: Page) -> int:
    found = re.search(r"([\d,]+) of 200", page.get_by_test_id("progress-text").inner_text())
    assert found is not None
    return int(found[1])


def _wait_for_more(page: Page, done: int) -> None:
    page.wait_for_function(
        "done => parseInt(document.querySelector('[data-testid=progress-text]').innerText.match(/(\\d+) of/)[1]) > done",
        arg=done,
        timeout=PATIENCE_MS,
    )
