"""The page of a run says how the run ended, or why it cannot be shown, before anything else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.support import sign_in
from tests.helpers.hosted import HostedServer, MovingClock

from daskscope.testing import make_frames

SECOND = 1_000_000
#: For each state: the pill, and how the headline begins.
STATES = {
    "finished": ("Finished", "Finished in 1 min 0 s. Threads spent"),
    "failed": ("Failed", "Failed after 1 min 0 s: ValueError: bad amount. It was raised in parse."),
    "worker-lost": (
        "Finished, 1 worker lost",
        "Finished in 1 min 0 s, but worker w-5 was lost. The connection dropped. No result was recomputed; 2 threads missing",
    ),
    "unfinished": ("Unfinished", "Unfinished after 1 min 0 s."),
    "interrupted": ("Interrupted", "Interrupted after 1 min 0 s."),
    "lost": ("Lost", "Probably not running: its last message came"),
    "empty": ("Finished", "Nothing ran."),
    "idle": ("Idle", "It has been idle for"),
    "stuck": ("Stuck", "3 tasks cannot run: no worker offers GPU=1"),
}


def tables(state: str, now: int) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a cluster of two threads that was up for a minute."""
    is_live = state in ("idle", "stuck")
    end = now if is_live or state == "lost" else now - 30 * SECOND
    start = end - 60 * SECOND
    row = {"cluster": state, "name": state, "start_us": start, "recording_us": start, "seen_us": end}
    # A cluster that was lost wrote no end.
    row |= {} if is_live or state == "lost" else {"end_us": end, "end_reason": "closed"}
    row |= {"idle_since_us": end - 20 * SECOND} if state == "idle" else {}
    row |= {"tasks_unrunnable": 3, "unrunnable_needs": '{"GPU=1": 3}', "workers": 1, "threads": 2} if is_live else {}
    row |= {"tasks_unrunnable": 0} if state == "idle" else {}
    worker = {"worker": "tcp://1", "server_id": f"{state}-w", "name": "w-5", "nthreads": 2, "start_us": start}
    if state == "worker-lost":
        worker |= {"end_us": end - 20 * SECOND, "verdict": "vanished", "evidence": "the connection dropped"}
    where = {"worker": "tcp://1", "prefix": "parse", "computation": "comp", "key": "parse-1"}
    status = "error" if state == "failed" else "ok"
    task = {**where, "id": 0, "start_us": start + SECOND, "stop_us": start + 31 * SECOND, "status": status}
    done = {"failed": "erred", "interrupted": "cancelled", "unfinished": "running", "lost": "running"}
    computation = {"computation": "comp", "state": done.get(state, "done"), "start_us": start, "tasks": 1}
    found: dict[str, list[dict[str, Any]]] = {"clusters": [row], "workers": [worker]}
    if state != "empty":
        found |= {"tasks": [task], "computations": [computation]}
    if state == "failed":
        error = {"time_us": end, "type": "ValueError", "message": "bad amount", "traceback": "Traceback"}
        found["exceptions"] = [{**where, **error, "fingerprint": "f", "count": 1}]
    return found


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    clock = MovingClock()
    with HostedServer(tmp_path_factory.mktemp("states"), login=True, clock=clock) as server:
        server.make_account("ours", olga="owner")
        token = server.make_token("olga", "ours")
        # What arrived long ago comes first.
        for state in sorted(STATES, key=lambda state: state != "lost"):
            assert server.send(*make_frames(tables(state, clock()), cluster=state), token=token).status == 200
            clock.move(seconds=120 if state == "lost" else 0)
        with browser.new_context(base_url=server.url, viewport={"width": 1440, "height": 900}) as context:
            sign_in(context, server, "olga")
            yield context.new_page()


@pytest.mark.parametrize("state", STATES)
def test_a_run_begins_with_its_outcome(page: Page, state: str) -> None:
    pill, headline = STATES[state]
    page.goto(f"/ours/clusters/{state}")
    expect(page.get_by_test_id("answer")).to_contain_text(headline)
    expect(page.locator(".title .pill")).to_contain_text(pill)
    # The error stands below the headline of a failure, and nowhere else.
    expect(page.get_by_test_id("top-failure")).to_have_count(int(state == "failed"))
    expect(page.get_by_role("button", name="Show workers")).to_have_count(int(state == "worker-lost"))
    # Two lines at this width, however much there is to say.
    lines = page.get_by_test_id("answer").evaluate("e => e.offsetHeight / parseFloat(getComputedStyle(e).lineHeight)")
    assert round(lines) <= 2
    over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert over <= 0


@pytest.mark.parametrize("path", ["clusters/none", "clusters/finished/computations/none", "errors/none", "reports/99"])
def test_what_does_not_exist_says_so_and_leads_on(page: Page, path: str) -> None:
    page.goto(f"/ours/{path}")
    missing = page.get_by_test_id("missing")
    expect(missing.get_by_role("heading")).to_contain_text("No ")
    missing.get_by_role("link", name="Runs").click()
    expect(page.get_by_test_id("page-runs")).to_be_visible()


def test_while_a_run_loads_nothing_is_claimed(page: Page) -> None:
    """Before the answer arrives the page has shapes, and no number."""
    page.route("**/api/v1/clusters/finished**", lambda route: None)
    page.goto("/ours/clusters/finished")
    loading = page.get_by_test_id("page-cluster")
    expect(loading.get_by_role("status", name="Loading")).to_be_visible()
    assert loading.inner_text().strip() == ""
    page.unroute_all(behavior="ignoreErrors")
