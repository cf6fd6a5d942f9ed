"""How long every page of the web app takes until it can be used, with a year of a team's history behind a real server.

A page can be used when its own heading and its rows are on the screen, nothing on it is still loading, and the main thread has
answered a key that was pressed after that. Each visit is a browser profile of its own: nothing is cached. The clock starts with
the navigation. Beside each figure: the slowest answer of the server, and what scripts, styles and layout took of the main thread.
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
from daskscope.model.table import Strings, Table, object_array
from daskscope.model.tables import TABLES
from daskscope.server.identity import COOKIE
from daskscope.server.services import open_services
from daskscope.server.settings import Settings
from daskscope.storage.accounts import set_member
from daskscope.storage.sessions import open_session
from daskscope.storage.tokens import SCOPES, create_token
from daskscope.storage.users import create_user
from daskscope.testing.factories import make_frames
from daskscope.wire.rows import frames_of_table

BAR_S = 1.5
VISITS = 3
#: Of the computation that has rows: a report of so many takes the longest of what people look at every day.
TASKS = 100_000
WORKED = "worked"
COMPUTATION = "worked-computation"
#: What is typed into the search of 10,000 clusters: 111 have it in their name.
SOUGHT = "-77"
WINDOW = {"width": 1600, "height": 900}
PATIENCE_MS = 60_000


@dataclass(frozen=True)
class Page:
    """Where a page is, and what must be on the screen."""

    path: str
    heading: str
    rows: str
    count: int = 1
    #: It has the viewer on it, which says itself when it is drawn.
    viewer: bool = False


def pages(newest: str, shared: int) -> dict[str, Page]:
    """Every page of the app; of the clusters the newest, and of the reports that with this number."""
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
        # Its clusters that live were heard of when they were made, and nobody speaks for them.
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
            "the same after all pages",
            f"{memory[2]:.0f} MiB",
            note=f"{memory[1]:.0f} MiB once it had taken, compacted and rendered {TASKS:,} tasks",
        ),
    ]


def _mib(process: psutil.Process) -> float:
    return float(process.memory_info().rss / 2**20)


@dataclass(frozen=True)
class Visit:
    """One look at a page: seconds until it could be used, and where they went."""

    usable: float
    shown: float
    #: Of the slowest answer: what was asked, seconds, kB.
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


# ---------------------------------------------------------------- what there is to look at


@dataclass(frozen=True)
class Caller:
    """An owner of the account: a browser's session, and a token."""

    session: str
    token: str


def _fill(directory: Path, clusters: int) -> Caller:
    services = open_services(Settings(data=str(directory)))
    try:
        now, account = services.clock(), services.local_account
        History(services, now, clusters).fill()
        with services.database.write() as connection:
            user = create_user(connection, "olga", "", now).id
            set_member(connection, account, user, "owner", now)
            _, token = create_token(
                connection, account=account, user=user, scopes=frozenset(SCOPES), now_us=now, label="benchmark"
            )
            return Caller(open_session(connection, user, "benchmark", now), token)
    finally:
        services.close()


def _work(url: str, caller: Caller) -> int:
    """A cluster that sent its rows and ended, once it is compacted and rendered; the number of a report of it."""
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
    for made in (f"/api/v1/clusters/{WORKED}/view/report.json", f"{path}/view/report.json"):
        _ask(url, caller, "GET", made)
    return int(json.loads(_ask(url, caller, "POST", f"{path}/share"))["id"])


def _ask(url: str, caller: Caller, method: str, path: str, body: bytes | None = None) -> bytes:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    connection.request(method, path, body, {"Authorization": f"Bearer {caller.token}"})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    assert response.status in (200, 201), (path, text[:300])
    return text


# ---------------------------------------------------------------- looking

#: Remembers when it could first be said that the page is there, and when a key was answered.
LISTEN = """
addEventListener("keydown", () => requestAnimationFrame(() => { window.answered ??= performance.now(); }));
"""
#: True once heading and rows are on the screen and nothing is loading; the moment is kept.
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
    """A browser that was never here, but for its session."""
    context = browser.new_context(viewport=WINDOW)
    context.add_cookies([{"name": COOKIE, "value": caller.session, "url": url}])
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


#: True once every line has the text in its name.
FOUND = """(text) => {
    const rows = [...document.querySelectorAll("[data-testid=cluster-row] a.name")];
    return rows.length > 0 && rows.every((one) => one.textContent.includes(text));
}"""


def _typed(browser: Any, url: str, caller: Caller) -> float:
    """Seconds from the last key until the list has what was looked for, and nothing else."""
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
