"""Fixtures: browsers, and reports of a real run, of hostile data, of no data and of many tasks."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, ViewportSize, expect, sync_playwright

ROOT = Path(__file__).parents[2]
# These tests import from tests/unit and benchmarks/, from any working directory.
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks import synthetic  # noqa: E402
from tests.browser.support import (  # noqa: E402
    PATIENCE_MS,
    WIDE,
    ReportFile,
    Visit,
    Watch,
    nasty_tables,
    ready,
    sign_in,
    write_report,
)
from tests.helpers.eight_tasks import eight_task_rows  # noqa: E402
from tests.helpers.hosted import HostedServer  # noqa: E402
from tests.helpers.hostile import HOSTILE  # noqa: E402

from daskscope.testing import make_frames, make_recording  # noqa: E402
from daskscope.wire.file import read_recording  # noqa: E402

set_running_loop: Any = asyncio.events._set_running_loop
# Without a window, a new browser context takes 0.15 s of CPU time instead of 0.5 s, so prefer the headless build.
CHROMIUM = next((path for name in ("chromium-headless-shell", "chromium") if (path := shutil.which(name))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="session")
def chromium(chromium_home: None) -> Iterator[Browser]:
    """The browser of all tests of this process: to start one and its driver takes 2 s of CPU time, as long as eight tests."""
    if CHROMIUM is None:
        pytest.skip("NO BROWSER TESTS: chromium is missing; install it with: apt-get install chromium")
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        loop = asyncio.get_running_loop()
        try:
            launched = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        except Error as error:
            pytest.skip(f"NO BROWSER TESTS: {CHROMIUM} does not start: {error.message.splitlines()[0]}")
        yield launched
        set_running_loop(loop)
        launched.close()


@pytest.fixture(scope="module")
def browser(chromium: Browser) -> Iterator[Browser]:
    """A browser without contexts of other modules."""
    # asyncio.run in tests without a browser fails while a loop counts as running in this thread.
    set_running_loop(chromium._loop)
    yield chromium
    for context in chromium.contexts:
        context.close()
    set_running_loop(None)


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


def recorded_once(script: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the recording of the workload; of several test processes one makes it and the others wait for it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    source = shared / "real.daskscope"
    with (shared / "real.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not source.exists():
            made = shared / "real.part.daskscope"
            command = [sys.executable, str(script), str(made)]
            run = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
            assert run.returncode == 0, run.stderr[-3_000:]
            made.rename(source)
    return source


@pytest.fixture(scope="session")
def real(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> ReportFile:
    """A few seconds on a cluster: spans, a shuffle, failures, a retry, a custom metric, a lost worker."""
    script = Path(__file__).with_name("workload.py")
    source = recorded_once(script, tmp_path_factory)
    code = script.read_text().partition("def work(")[2]
    return write_report(
        directory, "real", read_recording(source), title="workload.py", code=f"def work({code}", source=source
    )


@pytest.fixture(scope="session")
def hostile(directory: Path) -> ReportFile:
    recording = make_recording(nasty_tables())
    return write_report(directory, "hostile", recording, title=HOSTILE, code=HOSTILE, failure=HOSTILE)


@pytest.fixture(scope="session")
def empty(directory: Path) -> ReportFile:
    return write_report(directory, "empty", make_recording({}))


@pytest.fixture(scope="session")
def many(directory: Path) -> ReportFile:
    return write_report(directory, "many", synthetic.recording(20_000))


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser without network access."""
    width, height = WIDE
    made = browser.new_context(
        viewport={"width": width, "height": height}, offline=True, reduced_motion="reduce", color_scheme="light"
    )
    made.set_default_timeout(PATIENCE_MS)
    made.grant_permissions(["clipboard-read", "clipboard-write"])
    yield made
    made.close()


@pytest.fixture
def visit(context: BrowserContext) -> Iterator[Visit]:
    """Open reports. The test fails if a page sends a request or logs an error."""
    watches: list[Watch] = []

    def visit(report: ReportFile, hash_: str = "") -> Page:
        watch = Watch(report.url)
        watches.append(watch)
        page = context.new_page()
        watch.attach(page)
        page.goto(report.url + hash_)
        return ready(page)

    yield visit
    assert [problem for watch in watches for problem in watch.problems] == []


@pytest.fixture
def eight_task_server(tmp_path: Path) -> Iterator[HostedServer]:
    """A server with one run of eight tasks, and the owner olga of the account ours."""
    with HostedServer(tmp_path, login=True) as server:
        server.make_account("ours", olga="owner")
        token = server.make_token("olga", "ours")
        assert server.send(*make_frames(eight_task_rows(), cluster="eight"), token=token).status == 200
        yield server


@pytest.fixture
def eight_task_page(browser: Browser, eight_task_server: HostedServer) -> Iterator[Page]:
    """A page in which olga is signed in."""
    width, height = WIDE
    viewport: ViewportSize = {"width": width, "height": height}
    with browser.new_context(viewport=viewport, reduced_motion="reduce", base_url=eight_task_server.url) as context:
        sign_in(context, eight_task_server, "olga")
        yield context.new_page()


@pytest.fixture(scope="session", autouse=True)
def chromium_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give Chromium a home directory if the real one is read-only."""
    with pytest.MonkeyPatch.context() as patch:
        if not os.access(Path.home(), os.W_OK):
            patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield
