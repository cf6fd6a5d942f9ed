"""Measure how long each page of the web app takes to become usable, with a real server and a year of a team's history.

A page is usable when its heading and rows are visible, nothing is loading, and the main thread has then responded to a key.
Each visit has a new browser profile without a cache. The clock starts with the navigation. Each figure comes with the slowest
response of the server, and the time of scripts, styles and layout on the main thread.
"""

from __future__ import annotations

import http.client
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psutil

from benchmarks import synthetic
from benchmarks.history import CLUSTERS, COMPUTATIONS, USERS, History, group_name
from benchmarks.ingest import served
from benchmarks.report import CHROMIUM, FLAGS
from benchmarks.result import Result, at_most
from daskscope.model.recording import Strings, Table, object_array
from daskscope.model.states import SCOPES
from daskscope.model.tables import TABLES
from daskscope.server.services import open_services
from daskscope.server.settings import Settings
from daskscope.storage.people.accounts import set_member
from daskscope.storage.people.sessions import NewSession, open_session
from daskscope.storage.people.tokens import create_token
from daskscope.storage.people.users import create_user
from daskscope.testing import make_frames
from daskscope.wire.file import frames_of_table

BAR_S = 1.5
VISITS = 3
#: Tasks of the computation that has rows: the largest report that people open every day.
TASKS = 100_000
WORKED = "worked"
COMPUTATION = "worked-computation"
#: Search text: 111 of 10,000 clusters have it in their name.
SOUGHT = "-77"
WINDOW = {"width": 1600, "height": 900}
PATIENCE_MS = 60_000


@dataclass(frozen=True)
class Page:
    """The path of a page, and what must be visible."""

    path: str
    heading: str
    rows: str
    count: int = 1
    #: Whether the page has the viewer, which reports when it is drawn.
    viewer: bool = False


def pages(newest: str, shared: int) -> dict[str, Page]:
    """Return every page of the app, with the newest cluster and the given report."""
    worked = f"/local/clusters/{WORKED}"
    return {
        "home": Page("/local", "[data-testid=answer]", "[data-testid=cluster-row]", 100),
        "clusters": Page("/local/clusters", "h1", "[data-testid=cluster-row]", 100),
        "clusters of all time": Page("/local/clusters?since=all", "h1", "[data-testid=cluster-row]", 100),
        "a cluster": Page(f"/local/clusters/{newest}", "h1", "[data-testid=computation-row]", COMPUTATIONS),
        "the report of a cluster": Page(f"{worked}/report", "[data-testid=tab-report]", "[data-viewer]", viewer=True),
        "a computation": Page(f"{worked}/computations/{COMPUTATION}", "h1", "[data-viewer]", viewer=True),
        "errors": Page("/local/errors", "h1", "[data-testid=error-row]", 100),
        "an error": Page(f"/local/errors/{group_name(7)}", "h1", "[data-testid=page-error] tbody tr", 10),
        "reports": Page("/local/reports", "h1", "[data-testid=report-row]", 100),
        "a report": Page(f"/local/reports/{shared}", "[data-viewer]", "[data-viewer]", viewer=True),
        "usage": Page("/local/usage", "h1", "[data-testid=page-usage] tbody tr", 20),
        "usage of a year by cluster": Page(
            "/local/usage?by=cluster&since=365+days", "h1", "[data-testid=page-usage] tbody tr", 20
        ),
        "settings": Page("/local/settings", "h1", "[data-testid=member-row]", USERS),
    }


def run(clusters: int = CLUSTERS) -> list[Result]:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        caller = _fill(Path(name), clusters)
        print(f"    a year made in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        # Running clusters were last seen when the history was made, and send nothing.
        flags = ("--login", "--data", name, "--lost-after", "86400", "--keep-rows-days", "0", "--compact-after", "1")
        with served(*flags) as (address, process), sync_playwright() as playwright:
            url, memory = f"http://{address}", [_mib(process)]
            newest = json.loads(_ask(url, caller, "GET", "/api/v1/clusters?limit=1"))["items"][0]["id"]
            shared = _work(url, caller)
            memory.append(_mib(process))
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            look = partial(_visit, browser, url, caller)
            looked = {what: [look(page) for _ in range(VISITS)] for what, page in pages(newest, shared).items()}
            typed = [_typed(browser, url, caller) for _ in range(VISITS)]
            browser.close()
            memory.append(_mib(process))
    return [
        *(_result(what, visits) for what, visits in looked.items()),
        at_most(
            "from the last key of a search to its clusters",
            min(typed),
            BAR_S,
            " s",
            f"median {statistics.median(typed):.2f} s; {clusters:,} clusters; the page waits 0.2 s for another key",
        ),
        at_most("memory of the server with a year of history, idle", memory[0], 200, " MiB"),
        Result(
            "memory of the server after all pages",
            f"{memory[2]:.0f} MiB",
            note=f"{memory[1]:.0f} MiB once it had taken, compacted and rendered {TASKS:,} tasks",
        ),
    ]


def _mib(process: psutil.Process) -> float:
    return float(process.memory_info().rss / 2**20)


@dataclass(frozen=True)
class Visit:
    """One visit of a page: seconds until it was usable, and their breakdown."""

    usable: float
    shown: float
    #: Path, seconds and kB of the slowest response.
    asked: str
    answered: float
    size: float
    scripts: float
    layout: float


def _result(what: str, visits: list[Visit]) -> Result:
    best = min(visits, key=lambda visit: visit.usable)
    median = statistics.median(visit.usable for visit in visits)
    note = (
        f"median of {len(visits)} {median:.2f} s; shown after {best.shown:.2f} s; slowest answer {best.asked} "
        f"{best.answered * 1000:.0f} ms, {best.size:.0f} kB; scripts {best.scripts * 1000:.0f} ms, "
        f"styles and layout {best.layout * 1000:.0f} ms"
    )
    return at_most(f"app: {what}", best.usable, BAR_S, " s", note)


# ---------------------------------------------------------------- data


@dataclass(frozen=True)
class Caller:
    """An owner of the account, with a browser session and a token."""

    session: NewSession
    token: str


def _fill(directory: Path, clusters: int) -> Caller:
    services = open_services(Settings(data=str(directory)))
    try:
        now, account = services.archive.clock(), services.local_account
        History(services, now, clusters).fill()
        with services.archive.write() as tx:
            user = create_user(tx, "olga", "").id
            set_member(tx, account, user, "owner")
            _, token = create_token(tx, account=account, user=user, scopes=frozenset(SCOPES), label="benchmark")
            return Caller(open_session(tx, user, "benchmark"), token)
    finally:
        services.close()


def _work(url: str, caller: Caller) -> int:
    """Create a cluster that sent its rows, ended and was compacted and rendered; return the ID of a report of it."""
    recording = synthetic.recording(TASKS)
    tasks = recording["tasks"]
    all_of_one = Strings(np.zeros(tasks.rows, dtype=np.int32), object_array([COMPUTATION]))
    start, stop = int(tasks["start_us"].min()), int(tasks["stop_us"].max())
    life = {"start_us": start, "stop_us": stop, "seen_us": stop}
    rows: dict[str, list[dict[str, Any]]] = {
        "clusters": [{"cluster": WORKED, "name": WORKED, "start_us": start, "seen_us": stop, "end_us": stop}],
        "computations": [{"computation": COMPUTATION, "state": "done", "code": "x.sum().compute()", "tasks": TASKS, **life}],
    }  # fmt: skip
    frames = make_frames(rows, cluster=WORKED)
    for table in (recording["workers"], Table(TABLES["tasks"], {**tasks.columns, "computation": all_of_one})):
        frames += frames_of_table(table, cluster=WORKED, epoch=1, sequence=len(frames), kept=table.rows)
    for frame in frames:
        _ask(url, caller, "POST", "/api/v1/ingest", frame)
    path = f"/api/v1/clusters/{WORKED}/computations/{COMPUTATION}"
    for made in (f"/api/v1/clusters/{WORKED}/document/report.json", f"{path}/document/report.json"):
        _ask(url, caller, "GET", made)
    return int(json.loads(_ask(url, caller, "POST", f"{path}/share"))["id"])


def _ask(url: str, caller: Caller, method: str, path: str, body: bytes | None = None) -> bytes:
    parts = urlsplit(url)
    tx = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    tx.request(method, path, body, {"Authorization": f"Bearer {caller.token}"})
    response = tx.getresponse()
    text = response.read()
    tx.close()
    assert response.status in (200, 201), (path, text[:300])
    return text


# ---------------------------------------------------------------- measuring

#: Stores when the page was first shown, and when a key was handled.
LISTEN = """
addEventListener("keydown", () => requestAnimationFrame(() => { window.answered ??= performance.now(); }));
"""
#: True once heading and rows are visible and nothing is loading; the time is stored.
SHOWN = """([heading, rows, count, viewer]) => {
    const seen = (one) => one.getClientRects().length > 0;
    const there = [...document.querySelectorAll(heading)].some((one) => seen(one) && (viewer || one.textContent.trim() !== ""));
    const lines = [...document.querySelectorAll(rows)].filter(seen).length >= count;
    const drawn = !viewer || document.documentElement.dataset.ready === "1";
    if (!there || !lines || !drawn || document.querySelector("[aria-busy=true]")) return false;
    window.shown ??= performance.now();
    return true;
}"""
ANSWERS = """() => performance.getEntriesByType("resource").filter((one) => one.responseEnd > 0)
    .map((one) => [new URL(one.name).pathname, one.duration, one.transferSize])"""


def _profile(browser: Any, url: str, caller: Caller) -> Any:
    """Open a new browser profile with a session."""
    context = browser.new_context(viewport=WINDOW)
    cookie = f"daskscope_{urlsplit(url).port}"
    context.add_cookies([{"name": cookie, "value": caller.session.cookie, "url": url}])
    context.add_init_script(f"localStorage.setItem('daskscope-page:', '{caller.session.page}')")
    return context


def _visit(browser: Any, url: str, caller: Caller, wanted: Page) -> Visit:
    context = _profile(browser, url, caller)
    page = context.new_page()
    page.add_init_script(LISTEN)
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{url}{wanted.path}", wait_until="commit")
    arguments = [wanted.heading, wanted.rows, wanted.count, wanted.viewer]
    _wait(page, lambda: page.wait_for_function(SHOWN, arg=arguments, polling="raf", timeout=PATIENCE_MS), wanted.path)
    page.keyboard.press("Shift")
    page.wait_for_function("() => window.answered !== undefined", polling="raf", timeout=PATIENCE_MS)
    shown, answered = page.evaluate("[window.shown, window.answered]")
    asked, took, size = max(page.evaluate(ANSWERS), key=lambda one: one[1])
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    context.close()
    assert problems == [], (wanted.path, problems)
    layout = metrics["LayoutDuration"] + metrics["RecalcStyleDuration"]
    return Visit(
        answered / 1e3, shown / 1e3, asked, took / 1e3, size / 1e3, float(metrics["ScriptDuration"]), float(layout)
    )


def _wait(page: Any, action: Callable[[], Any], path: str) -> None:
    from playwright.sync_api import TimeoutError as PageTimeout

    try:
        action()
    except PageTimeout:
        raise AssertionError(f"{path} was not there in time: {page.locator('body').inner_text()[:500]}") from None


#: True once every row has the text in its name.
FOUND = """(text) => {
    const rows = [...document.querySelectorAll("[data-testid=cluster-row] a.name")];
    return rows.length > 0 && rows.every((one) => one.textContent.includes(text));
}"""


def _typed(browser: Any, url: str, caller: Caller) -> float:
    """Return the seconds from the last key until the list shows exactly the matching rows."""
    context = _profile(browser, url, caller)
    page = context.new_page()
    page.goto(f"{url}/local/clusters?since=all", wait_until="commit")
    page.get_by_test_id("cluster-row").first.wait_for(timeout=PATIENCE_MS)
    search = page.get_by_test_id("cluster-search")
    search.click()
    page.evaluate("addEventListener('keydown', () => { window.typed = performance.now(); }, true)")
    page.keyboard.type(SOUGHT, delay=60)
    page.wait_for_function(FOUND, arg=SOUGHT, polling="raf", timeout=PATIENCE_MS)
    took = float(page.evaluate("performance.now() - window.typed")) / 1e3
    context.close()
    return took
