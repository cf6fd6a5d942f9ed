"""The view of coffea is there if coffea was used, and shows its events, rates and datasets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.support import NARROW, ReportFile, Visit, write_report
from tests.helpers.coffea_rows import S, tables

from daskscope.testing import make_recording


@pytest.fixture(scope="module")
def coffea(directory: Path) -> ReportFile:
    rows = tables(6)
    for number, row in enumerate(rows["chunks"]):
        # Two datasets, two sizes.
        row["dataset"] = "ttbar" if number % 2 else "<b>single top</b>"
        row["entry_stop"] = row["entry_start"] + (50_000 if number % 2 else 20_000)
    return write_report(directory, "coffea", make_recording(rows))


def metric(page: Page, name: str) -> Any:
    return expect(page.get_by_test_id(f"metric-{name}"))


def test_the_view_shows_what_python_computed(visit: Visit, coffea: ReportFile) -> None:
    page = visit(coffea, "#coffea")
    (run,) = coffea.report["coffea"]
    assert run["events"] == 210_000
    expect(page.get_by_test_id("coffea-headline")).to_have_text(run["headline"])
    assert run["headline"].startswith("210,000 events in 8.00 s (26.2 kHz). Your code took 90 % of the task time;")
    metric(page, "events").to_have_text("210,000")
    metric(page, "rate").to_have_text("26.2 kHz")
    metric(page, "useful").to_have_text("90 %")
    expect(page.locator(".scatter circle")).to_have_count(6)
    expect(page.get_by_text("A chunk takes 1.00 s, and 0 s per million events.")).to_be_visible()
    rows = page.locator("section[aria-label=Datasets] tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="ttbar")).to_contain_text("150,000")
    expect(page.get_by_test_id("coffea-columns").locator("li")).to_have_text(["Muon_pt", "nMuon"])


def test_names_are_text_and_never_markup(visit: Visit, coffea: ReportFile) -> None:
    page = visit(coffea, "#coffea")
    expect(page.get_by_text("<b>single top</b>")).to_be_visible()
    assert page.locator("td b").count() == 0


def test_the_view_is_in_the_navigation_only_if_coffea_was_used(
    visit: Visit, coffea: ReportFile, empty: ReportFile
) -> None:
    page = visit(coffea)
    page.get_by_test_id("nav-coffea").click()
    expect(page.get_by_test_id("coffea-headline")).to_be_visible()
    other = visit(empty, "#coffea")
    expect(other.get_by_text("No coffea run")).to_be_visible()
    expect(other.get_by_test_id("nav-coffea")).to_have_count(0)


def test_a_finding_links_to_the_view(visit: Visit, directory: Path) -> None:
    rows = tables(40)
    for row in rows["chunks"]:
        row["process_us"] = S // 10
    page = visit(write_report(directory, "coffea-opening", make_recording(rows)))
    page.get_by_text("besides your code").first.click()
    expect(page.get_by_text("besides your code").first).to_be_visible()


def test_the_view_fits_a_phone(visit: Visit, coffea: ReportFile) -> None:
    page = visit(coffea, "#coffea")
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    expect(page.get_by_test_id("coffea-headline")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]


def test_a_run_without_chunks_says_what_is_unknown(visit: Visit, directory: Path) -> None:
    recording = make_recording(tables(3))
    without = replace(recording, tables={name: t for name, t in recording.tables.items() if name != "chunks"})
    page = visit(write_report(directory, "coffea-old", without), "#coffea")
    expect(page.get_by_test_id("coffea-headline")).to_have_text("3 chunks in 5.00 s.")
    metric(page, "events").to_have_text("not recorded")
    expect(page.get_by_text("The recording has no events of chunks.")).to_be_visible()
