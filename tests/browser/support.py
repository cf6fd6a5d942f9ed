"""Helpers of the browser tests: report files, watched pages and user actions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

from playwright.sync_api import BrowserContext, Dialog, Locator, Page, Request, expect
from tests.helpers.hosted import HostedServer
from tests.helpers.hostile import HOSTILE, T, hostile_tables

from daskscope.analysis.summary import extent
from daskscope.model.recording import Recording
from daskscope.model.tables import TABLES
from daskscope.report.blocks import decode
from daskscope.report.document import build
from daskscope.report.html import render
from daskscope.report.schema import Block, Cube, Report

VIEWS = ("overview", "stream", "profile", "fine", "memory", "bandwidth", "workers", "groups", "errors")
#: Views that follow the selected time.
TIMED = ("overview", "stream", "profile", "fine", "memory", "bandwidth", "workers", "errors")
#: Long, for slow and shared machines.
PATIENCE_MS = 60_000
WIDE = (1280, 900)
NARROW = (390, 844)

Visit = Callable[..., Page]


def sign_in(context: BrowserContext, server: HostedServer, user: str) -> str:
    """Sign a user in, as the sign-in page does, and return the value of the session cookie."""
    cookie = server.make_session(user)
    context.add_cookies([{"name": server.cookie_name, "value": cookie, "url": server.url, "httpOnly": True}])
    page = context.new_page()
    # A page of the same origin without the app, which would take 0.1 s of CPU time to start.
    page.goto(f"{server.url}/healthz")
    page.evaluate("secret => localStorage.setItem('daskscope-page:', secret)", server.page_secrets[cookie])
    page.close()
    return cookie


@dataclass(frozen=True)
class ReportFile:
    """A report on disk and its data."""

    path: Path
    recording: Recording
    report: Report
    blocks: dict[str, bytes]
    #: The file of the recording, if there is one.
    source: Path | None = None

    @property
    def url(self) -> str:
        return self.path.as_uri()

    def column(self, block: Block) -> list[Any]:
        return [*decode(block, self.blocks[block["block"]])]

    def total(self, cube: Cube, measure: str, **where: str) -> float:
        """Sum a measure over all bins of the rows with these keys."""
        # A prefix whose tasks took no time has no rows.
        if any(text not in cube["keys"][name] for name, text in where.items()):
            return 0.0
        codes = {name: cube["keys"][name].index(text) for name, text in where.items()}
        columns = {name: self.column(cube["columns"][name]) for name in where}
        values = self.column(cube["columns"][measure])
        inside = [all(columns[name][row] == code for name, code in codes.items()) for row in range(cube["rows"])]
        return float(sum(float(value) for value, kept in zip(values, inside, strict=True) if kept))


def write_report(
    directory: Path, name: str, recording: Recording, *, title: str = "", source: Path | None = None, **texts: str
) -> ReportFile:
    start, stop = extent(recording)
    report, blocks = build(recording, start, stop, title=title or name, **texts)
    path = directory / f"{name}.html"
    path.write_text(render(report, blocks), encoding="utf-8")
    return ReportFile(path, recording, report, blocks, source)


@dataclass
class Watch:
    """Collects what a page must not do: send requests, log errors, throw, open dialogs."""

    url: str
    problems: list[str] = field(default_factory=list)

    def attach(self, page: Page) -> None:
        page.on("request", self.requested)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        page.on("console", self.said)
        page.on("dialog", self.asked)
        page.add_init_script("window.alert = (text) => console.error('alert ' + text)")

    def requested(self, request: Request) -> None:
        # The page creates blobs itself, for the task stream worker and exported tables.
        if request.url.partition("#")[0] != self.url and not request.url.startswith("blob:"):
            self.problems.append(f"request: {request.url[:200]}")

    def said(self, message: Any) -> None:
        if message.type in ("error", "warning", "assert"):
            self.problems.append(f"console: {message.text}")

    def asked(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()


def ready(page: Page) -> Page:
    """Wait for the first paint."""
    page.wait_for_function("document.documentElement.dataset.ready === '1'", timeout=PATIENCE_MS)
    return page


def go(page: Page, view: str) -> Locator:
    """Open a view through the navigation and wait until it has loaded."""
    page.get_by_test_id(f"nav-{view}").click()
    return settled(page, view)


def settled(page: Page, view: str) -> Locator:
    shown = page.get_by_test_id(f"view-{view}")
    expect(shown).to_be_visible(timeout=PATIENCE_MS)
    expect(shown.locator("[aria-busy=true]")).to_have_count(0, timeout=PATIENCE_MS)
    return shown


class Counted(NamedTuple):
    """The numbers of “7 of 12 task runs”."""

    inside: int
    of: int


def selection(page: Page) -> Counted:
    found = re.search(r"([\d,]+) of ([\d,]+) task runs", page.get_by_test_id("selection-text").inner_text())
    assert found is not None
    return Counted(number(found[1]), number(found[2]))


def number(text: str) -> int:
    return int(text.strip().replace(",", ""))


def drag(page: Page, target: Locator, start: float, stop: float, at: float = 0.5) -> None:
    """Drag with the mouse between two positions, given as shares of the width."""
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    assert box is not None
    y = box["y"] + at * box["height"]
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    for step in (0.25, 0.5, 0.75, 1.0):
        page.mouse.move(box["x"] + (start + step * (stop - start)) * box["width"], y)
    page.mouse.up()


def select_time(page: Page, start: float, stop: float) -> Counted:
    """Clear the selection and select a part of the run on the ruler."""
    whole(page)
    drag(page, page.get_by_test_id("ruler"), start, stop)
    expect(page.get_by_test_id("selection-text")).not_to_contain_text("Whole run")
    return selection(page)


def whole(page: Page) -> None:
    page.get_by_role("button", name="Whole run (Esc)").click()
    expect(page.get_by_test_id("selection-text")).to_contain_text("Whole run")


def choose(page: Page, testid: str, *options: str) -> None:
    """Check options of a multiple choice, and close it."""
    button = page.get_by_test_id(testid)
    button.click()
    for option in options:
        page.locator(".colmenu fieldset").get_by_label(option, exact=True).check()
    page.keyboard.press("Escape")
    expect(button).to_be_focused()


def eventually(page: Page, get: Callable[[], object], want: object) -> None:
    """Poll until `get` returns `want`."""
    for _ in range(PATIENCE_MS // 50):
        if get() == want:
            return
        page.wait_for_timeout(50)
    assert get() == want


def rows(page: Page, testid: str) -> list[list[str]]:
    """Return the cell texts of the rows of a table."""
    found = page.get_by_test_id(testid)
    cells = "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    return cast(list[list[str]], found.evaluate_all(cells))


def hash_of(page: Page) -> str:
    return cast(str, page.evaluate("location.hash"))


def data_images(page: Page) -> int:
    """Count elements that only injected data could create."""
    return page.locator("img, iframe, object, embed, [onerror], [onload], a[href^='javascript:']").count()


#: Hostile texts: attributes, templates, prototypes, text direction, length, unpaired surrogates.
NASTY = (
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "{{constructor.constructor('alert(1)')()}}",
    "__proto__",
    "constructor",
    "a\nb\r\n<b>c</b>",
    "\u202egnp.exe\u202c\u0000\u0007",
    "x" * 3_000,
    "\ud800 half",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
)


def nasty_tables() -> dict[str, list[dict[str, Any]]]:
    """Return tables with hostile texts in every text column."""
    tables = {name: [_row(name, text, i) for i, text in enumerate((HOSTILE, *NASTY))] for name in TABLES}
    for name, made in hostile_tables().items():
        tables[name] = made + tables[name][1:]
    tables["edges"] = [{"task": 1, "dependency": 0, "seen_us": T + 1}, {"task": 2, "dependency": 1, "seen_us": T + 2}]
    return tables


def _row(table: str, text: str, i: int) -> dict[str, Any]:
    kinds: dict[str, Any] = {"str": text, "str[]": [text], "time": T + 1_000 * i, "time[]": [T + 1_000 * i], "int": 1}
    row = {column.name: kinds[column.kind] for column in TABLES[table].columns if column.kind in kinds}
    stop = {"stop_us": T + 1_000 * i + 900} if "stop_us" in row else {}
    fixed: dict[str, dict[str, Any]] = {
        "clusters": {"cluster": "c", "recording_us": T, "end_us": T + 10**6},
        "workers": {"server_id": f"s{i}", "end_us": T + 10**6, "nthreads": 1 + i % 2, "start_us": T},
        "tasks": {
            "id": i,
            "status": ("ok", "error", "retried", "killed")[i % 4],
            "interval_stop_us": [T + 1_000 * i + 5],
        },
        "computations": {"computation": f"x{i}", "state": "done"},
        "groups": {"computation": f"x{i}", "dependencies": [text, HOSTILE]},
        "exceptions": {"fingerprint": f"f{i}"},
        "profiles": {"kind": "compute", "stack": [f"{text}\t{text}\t1", "a.py\tf\t2"], "count": 3},
        "windows": {"kind": "other"},
    }
    return {**row, **stop, **fixed.get(table, {})}
