"""The app with a real cluster and default settings: changes appear soon and without a reload."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.live_cluster import LiveCluster
from tests.helpers.hosted import PASSWORD, HostedServer

#: Maximum delay of a live page, in seconds.
SOON_S = 5.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    with HostedServer(tmp_path_factory.mktemp("live"), login=True, jobs=True) as server:
        server.make_account("ours", olga="owner")
        server.make_user("newcomer")
        yield server


@pytest.fixture(scope="module")
def page(browser: Browser, server: HostedServer) -> Iterator[Page]:
    """One page for all tests. It is never reloaded."""
    with browser.new_context(viewport={"width": 1280, "height": 900}, base_url=server.url) as context:
        yield context.new_page()


@pytest.fixture(scope="module")
def token(page: Page) -> str:
    """Sign in, add a member and create a token."""
    page.goto("/ours/settings")
    page.locator("[name=user]").fill("olga")
    page.locator("[name=password]").fill(PASSWORD)
    page.get_by_role("button").click()
    page.get_by_test_id("member-name").fill("newcomer")
    page.get_by_test_id("add-member").click()
    expect(page.get_by_test_id("member-row").filter(has_text="newcomer")).to_be_visible()
    page.get_by_test_id("token-label").fill("for a notebook")
    page.get_by_test_id("make-token").click()
    return page.get_by_test_id("token-secret").inner_text()


@pytest.fixture(scope="module")
def cluster(
    page: Page, server: HostedServer, token: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveCluster]:
    page.get_by_test_id("nav-runs").click()
    expect(page.get_by_text("No runs")).to_be_visible()
    with LiveCluster(server.url, token, "a notebook") as cluster:
        yield cluster


def test_a_cluster_registered_with_a_new_token_appears(page: Page, cluster: LiveCluster) -> None:
    row = page.get_by_test_id("run-row").filter(has_text="a notebook")
    expect(row).to_be_visible()
    expect(row).to_contain_text("olga")
    row.get_by_role("link", name="a notebook").click()
    expect(page.get_by_test_id("metric-workers")).to_contain_text("2 4 threads")
    page.evaluate("window.theSame = true")


def test_tasks_are_counted_soon_after_they_finish(page: Page, cluster: LiveCluster) -> None:
    lags = []
    for count in (40, 41, 42):
        cluster.tell("run", 40 if count == 40 else 1)
        finished = time.monotonic()
        expect(page.get_by_test_id("metric-tasks")).to_have_text(str(count))
        lags.append(time.monotonic() - finished)
    # The minimum, because other load on the machine delays some.
    assert min(lags) < SOON_S, lags


def test_the_explanation_follows_the_cluster(page: Page, cluster: LiveCluster) -> None:
    why = page.get_by_test_id("answer")
    expect(why).to_contain_text("idle")
    cluster.tell("begin", 7)
    expect(why).to_contain_text(re.compile("7 tasks|4 .*running|Running: . of 7"))
    cluster.tell("let-go")
    expect(why).to_contain_text("idle")
    cluster.tell("hold", 3)
    expect(why).to_contain_text("Connected clients hold results")
    expect(page.get_by_text("holds 3 results")).to_be_visible()
    cluster.tell("let-go")


def test_failures_are_two_clicks_from_home(page: Page, cluster: LiveCluster) -> None:
    cluster.tell("fail", 2)
    expect(page.get_by_test_id("metric-errors")).to_have_text("2")
    page.get_by_role("banner").get_by_test_id("nav-errors").click()
    page.get_by_test_id("error-row").filter(has_text="ZeroDivisionError").get_by_role("link").click()
    expect(page.get_by_test_id("traceback")).to_contain_text("return number / 0")
    expect(page.get_by_test_id("page-error")).to_contain_text(
        re.compile(r"It ended \d computations? \(1 run\)\. 2 failed, none retried\.")
    )
    page.get_by_test_id("nav-runs").click()
    page.get_by_role("link", name="a notebook").click()


def test_a_killed_worker_is_reported(page: Page, cluster: LiveCluster) -> None:
    cluster.tell("kill")
    expect(page.get_by_text("3 in total")).to_be_visible()
    page.get_by_test_id("nav-workers").click()
    expect(page.get_by_test_id("view-workers")).to_contain_text(re.compile("memory kill|lost"))
    page.get_by_test_id("nav-overview").click()


def test_the_end_of_the_cluster_appears_without_a_reload(page: Page, cluster: LiveCluster) -> None:
    cluster.__exit__(None, None, None)
    expect(page.get_by_test_id("answer")).to_contain_text(
        re.compile(
            r"1 of \d computations failed: ZeroDivisionError: division by zero\. It was raised 2 times in divide"
        )
    )
    expect(page.get_by_test_id("close-cluster")).to_have_count(0)
    assert page.evaluate("window.theSame"), "the page was reloaded"
    page.get_by_test_id("computations").get_by_role("link").first.click()
    expect(page.get_by_test_id("page-computation")).to_be_visible()
