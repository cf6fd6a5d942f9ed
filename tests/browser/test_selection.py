"""One time selection for the whole page, by mouse, keys and buttons. All panels below the ruler follow."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.support import (
    TIMED,
    ReportFile,
    Visit,
    drag,
    eventually,
    go,
    rows,
    select_time,
    selection,
    settled,
    whole,
)


def seconds(page: Page) -> tuple[float, float]:
    """Return the selection from the URL. Copying the link updates the URL at once."""
    page.get_by_role("button", name="Copy link").click()
    found = re.search(r"[?&]t=([\d.]+)-([\d.]+)", page.url)
    assert found is not None, page.url
    return float(found[1]), float(found[2])


def length(report: ReportFile) -> float:
    return (report.report["stop_us"] - report.report["start_us"]) / 1e6


def tasks_before(report: ReportFile, share: float) -> int:
    """Count the executions in the first bins of the cube."""
    cube = report.report["counts"]
    bins = report.column(cube["columns"]["bin"])
    edge = round(share * length(report) * 1e6 / report.report["bins"]["width_us"])
    counts = report.column(cube["columns"]["count"])
    return int(sum(int(n) for n, bin_ in zip(counts, bins, strict=True) if bin_ < edge))


def test_a_drag_on_the_ruler_selects_and_everything_below_follows(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    all_tasks = real.report["totals"]["tasks"]
    assert selection(page) == (all_tasks, all_tasks)
    settled(page, "overview")
    prefixes = rows(page, "prefix-row")

    chosen = select_time(page, 0, 0.3)

    start, stop = seconds(page)
    assert start == 0 and stop == pytest.approx(0.3 * length(real), abs=length(real) / 100)
    assert chosen == (tasks_before(real, stop / length(real)), all_tasks)
    assert 0 < chosen.inside < all_tasks
    expect(page.get_by_test_id("selection-text")).to_contain_text(re.compile(r"0:00\.0+ to 0:0\d"))
    eventually(page, lambda: sum(int(row[1]) for row in rows(page, "prefix-row")), chosen.inside)
    selected = rows(page, "prefix-row")
    assert selected != prefixes and len(selected) < len(prefixes)

    page.keyboard.press("Escape")

    assert selection(page) == (all_tasks, all_tasks)
    eventually(page, lambda: rows(page, "prefix-row"), prefixes)


@pytest.mark.parametrize(
    ("view", "what"),
    [
        ("fine", "section[aria-label='All metrics'] tbody"),
        ("profile", "section[aria-label='Hottest lines (self time)'] tbody"),
        ("memory", "section[aria-label$='by worker'] tbody"),
        ("bandwidth", "[data-testid=view-bandwidth] .mt >> nth=0"),
        ("workers", "[role=region][aria-label='Events and log lines'] tbody"),
        ("workers", "section[aria-label=Workers] tbody"),
    ],
)
def test_other_views_follow_the_selection(visit: Visit, real: ReportFile, view: str, what: str) -> None:
    page = visit(real, f"#{view}")
    shown = page.locator(what)
    expect(shown).to_be_visible()
    before = shown.inner_text()

    # Memory only grows, so that its peaks differ at the start. All transfers may be in the middle, and none are at the start.
    # Samples of the profile are counted once a second: in a short run, all of them may be in one half.
    parts: dict[str, list[tuple[float, float]]] = {
        "memory": [(0, 0.2)],
        "bandwidth": [(0, 0.02)],
        "profile": [(0, 0.5), (0, 0.25), (0.5, 1)],
    }
    *others, last = parts.get(view, [(0.3, 0.7)])
    for part in others:
        select_time(page, *part)
        with suppress(AssertionError):
            expect(shown).not_to_have_text(before, use_inner_text=True, timeout=5_000)
            break
    else:
        select_time(page, *last)
        expect(shown).not_to_have_text(before, use_inner_text=True)
    whole(page)

    expect(shown).to_have_text(before, use_inner_text=True)


def test_errors_outside_the_selection_are_not_listed(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#errors")
    everything = rows(page, "error-row")
    assert len(everything) == len(real.report["errors"])

    select_time(page, 0, 0.05)

    expect(page.get_by_test_id("error-row")).to_have_count(0)
    expect(page.get_by_test_id("view-errors")).to_contain_text(f"0 of {len(everything)}")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("error-row")).to_have_count(len(everything))


def test_all_views_share_the_selection(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    chosen = select_time(page, 0.2, 0.6)
    for view in TIMED:
        go(page, view)
        assert selection(page) == chosen


def test_keys_zoom_and_pan(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    whole_run = length(real)

    def after(key: str) -> tuple[float, float]:
        before: Any = page.get_by_test_id("selection-text").inner_text()
        page.keyboard.press(key)
        expect(page.get_by_test_id("selection-text")).not_to_have_text(before, use_inner_text=True)
        return seconds(page)

    def near(value: float) -> Any:
        return pytest.approx(value, abs=whole_run / 100)

    assert after("w") == (near(0.1 * whole_run), near(0.9 * whole_run))
    start, stop = after("w")
    assert stop - start == near(0.64 * whole_run)
    assert after("a") == (near(start - 0.064 * whole_run), near(stop - 0.064 * whole_run))
    assert after("d") == (near(start), near(stop))
    assert after("s") == (near(0.1 * whole_run), near(0.9 * whole_run))
    page.get_by_test_id("ruler").focus()
    assert after("ArrowUp") == (near(start), near(stop))
    page.get_by_test_id("ruler").focus()
    assert after("ArrowRight")[0] == near(start + 0.064 * whole_run)
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("selection-text")).to_contain_text("Whole run")


def test_buttons_zoom_and_pan(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#profile")
    page.get_by_role("button", name="Zoom in (W)").click()
    first = seconds(page)
    page.get_by_role("button", name="Later (D)").click()
    assert seconds(page)[0] > first[0]
    page.get_by_role("button", name="Whole run (Esc)").click()
    expect(page.get_by_test_id("selection-text")).to_contain_text("Whole run")


def test_the_selection_can_be_moved_resized_and_cleared_on_the_ruler(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    ruler = page.get_by_test_id("ruler")
    select_time(page, 0.2, 0.4)
    start, stop = seconds(page)
    text = page.get_by_test_id("selection-text").inner_text()

    drag(page, ruler, 0.3, 0.6)
    expect(page.get_by_test_id("selection-text")).not_to_have_text(text, use_inner_text=True)
    moved = seconds(page)
    assert moved[0] == pytest.approx(start + 0.3 * length(real), abs=length(real) / 50)
    assert moved[1] - moved[0] == pytest.approx(stop - start, abs=length(real) / 100)

    drag(page, ruler, moved[1] / length(real), 0.95)
    assert seconds(page)[1] == pytest.approx(0.95 * length(real), abs=length(real) / 50)

    ruler.dblclick(position={"x": 10, "y": 30})
    expect(page.get_by_test_id("selection-text")).to_contain_text("Whole run")


def test_shortcuts_are_off_in_input_fields(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    page.get_by_test_id("filter-prefixes").fill("")
    page.get_by_test_id("filter-prefixes").press_sequentially("wasdt?g/")

    expect(page.get_by_test_id("selection-text")).to_contain_text("Whole run")
    expect(page.get_by_test_id("help")).to_be_hidden()
    expect(page.get_by_test_id("palette")).to_be_hidden()
