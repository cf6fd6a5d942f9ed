"""Tables: sort, filter, choose columns, export."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from playwright.sync_api import Locator, Page, expect
from tests.browser.support import ReportFile, Visit, rows


def exported(page: Page, panel: Locator, kind: str) -> str:
    download = panel.get_by_role("button", name=f"Download {kind}")
    if not download.is_visible():
        panel.get_by_role("button", name="Options").click()
    with page.expect_download() as waiting:
        download.click()
    return Path(waiting.value.path()).read_text(encoding="utf-8")


def test_a_column_header_sorts_in_both_directions(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    panel = page.get_by_role("region", name="By task prefix")
    counts = sorted((prefix["count"] for prefix in real.report["prefixes"]), reverse=True)
    names = sorted(prefix["prefix"] for prefix in real.report["prefixes"])

    head = panel.get_by_role("columnheader", name="Task runs")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    assert [int(row[1]) for row in rows(page, "prefix-row")] == counts
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert [int(row[1]) for row in rows(page, "prefix-row")] == counts[::-1]
    panel.get_by_role("columnheader", name="Prefix").get_by_role("button").click()
    expect(head).not_to_have_attribute("aria-sort", "ascending")
    assert sorted(row[0] for row in rows(page, "prefix-row")) == names
    assert rows(page, "prefix-row")[0][0].lower() == min(name.lower() for name in names)


def test_a_filter_shows_matching_rows_and_their_number(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    panel = page.get_by_role("region", name="By task prefix")
    of = len(real.report["prefixes"])
    expect(panel).to_contain_text(f"{of} of {of}")

    page.get_by_test_id("filter-prefixes").fill("SPIN")
    expect(page.get_by_test_id("prefix-row")).to_have_count(1)
    expect(panel).to_contain_text(f"1 of {of}")
    page.get_by_test_id("filter-prefixes").fill("nothing like this")
    expect(panel).to_contain_text("No rows match “nothing like this”")
    panel.get_by_role("button", name="Clear filter").click()
    expect(page.get_by_test_id("prefix-row")).to_have_count(of)


def test_a_phone_shows_the_first_rows_of_a_long_table(visit: Visit, many: ReportFile) -> None:
    page = visit(many)
    page.set_viewport_size({"width": 390, "height": 800})
    of = len(many.report["prefixes"])
    assert of > 6
    shown = page.locator("[data-testid=prefix-row]:visible")
    expect(shown).to_have_count(6)
    page.get_by_role("button", name=f"Show all {of}", exact=True).first.click()
    expect(shown).to_have_count(of)
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(page.get_by_role("button", name=f"Show all {of}", exact=True)).to_have_count(0)


def test_csv_contains_the_visible_rows(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    panel = page.get_by_role("region", name="By task prefix")

    table = list(csv.DictReader(io.StringIO(exported(page, panel, "CSV"))))

    assert [row["Prefix"] for row in table] == [row[0] for row in rows(page, "prefix-row")]
    by_name = {prefix["prefix"]: prefix for prefix in real.report["prefixes"]}
    for row in table:
        prefix = by_name[row["Prefix"]]
        assert (int(row["Task runs"]), int(row["Median"]), int(row["Output"]), int(row["Errors"])) == (
            prefix["count"], prefix["p50_us"], prefix["nbytes"], prefix["errors"]
        )  # fmt: skip
    page.get_by_test_id("filter-prefixes").fill("spin")
    expect(page.get_by_test_id("prefix-row")).to_have_count(1)
    assert [row["prefix"] for row in json.loads(exported(page, panel, "JSON"))] == ["spin"]


def test_csv_contains_no_formulas(visit: Visit, hostile: ReportFile) -> None:
    page = visit(hostile)

    table = list(csv.reader(io.StringIO(exported(page, page.get_by_role("region", name="By task prefix"), "CSV"))))

    assert not [cell for row in table[1:] for cell in row if cell[:1] in ("=", "@", "+")]


def test_columns_can_be_hidden(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    panel = page.get_by_role("region", name="By task prefix")
    panel.get_by_role("button", name="Options").click()
    panel.get_by_label("Recomputed").uncheck()

    expect(panel.get_by_role("columnheader", name="Recomputed")).to_have_count(0)
    assert "Recomputed" not in exported(page, panel, "CSV").splitlines()[0]
