"""Keyboard access to tasks of the stream, values of charts and cells of the transfer matrix."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect
from tests.browser.support import ReportFile, Visit, eventually, go, hash_of, select_time, settled

TASK = re.compile(r"task ([\d,]+) of")


def announced(page: Page) -> int:
    """Return the number of the announced task, 0 if there is none."""
    found = TASK.search(page.get_by_test_id("stream-live").inner_text())
    return int(found[1]) if found else 0


def lanes(report: ReportFile) -> list[dict[str, Any]]:
    """Return the first and last task number of each thread with tasks, counted from one."""
    stream = report.report["stream"]
    action = report.column(stream["columns"]["action"])
    counts = [action[lane["first"] : lane["first"] + lane["count"]].count(0) for lane in stream["lanes"]]
    firsts = [sum(counts[:i]) + 1 for i in range(len(counts))]
    return [{"first": first, "last": first + n - 1} for first, n in zip(firsts, counts, strict=True) if n]


def test_arrow_keys_move_between_tasks_and_enter_opens_one(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#stream")
    canvas = page.get_by_test_id("stream-canvas")
    canvas.focus()
    assert page.locator(".tip").count() == 0
    first, second = lanes(real)[:2]

    page.keyboard.press("ArrowRight")
    eventually(page, lambda: announced(page), first["first"])
    expect(page.locator(".tip")).to_be_visible()
    # Press keys faster than the answers arrive.
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    eventually(page, lambda: announced(page), first["first"] + 3)
    page.keyboard.press("ArrowLeft")
    eventually(page, lambda: announced(page), first["first"] + 2)
    page.keyboard.press("ArrowDown")
    eventually(page, lambda: second["first"] <= announced(page) <= second["last"], True)
    expect(page.get_by_test_id("selection-text")).to_contain_text("Whole run")
    task = announced(page)
    prefix = page.locator(".tip h4").inner_text()
    assert page.get_by_test_id("stream-live").inner_text().startswith(prefix)

    page.keyboard.press("Enter")

    expect(page.get_by_test_id("task-detail")).to_contain_text(f"{task} of {real.report['stream']['tasks']}")
    assert f"item={task - 1}" in hash_of(page)


def test_the_tooltip_closes_with_escape_and_on_blur(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#stream")
    select_time(page, 0, 0.3)
    page.get_by_test_id("stream-canvas").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".tip")).to_be_visible()

    page.keyboard.press("Escape")
    expect(page.locator(".tip")).to_have_count(0)
    expect(page.get_by_test_id("selection-text")).not_to_contain_text("Whole run")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".tip")).to_be_visible()
    page.keyboard.press("Tab")

    expect(page.locator(".tip")).to_have_count(0)


def test_the_selection_follows_the_cursor(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#stream")
    select_time(page, 0, 0.25)
    before = page.get_by_test_id("selection-text").inner_text()
    page.get_by_test_id("stream-canvas").focus()
    page.keyboard.press("ArrowRight")
    eventually(page, lambda: announced(page) > 0, True)

    # Not every thread has a task at the start.
    at = announced(page)
    last = next(lane["last"] for lane in lanes(real) if lane["first"] <= at <= lane["last"])
    for _ in range(last - at):
        page.keyboard.press("ArrowRight")

    eventually(page, lambda: announced(page), last)
    expect(page.get_by_test_id("selection-text")).not_to_have_text(before, use_inner_text=True)
    expect(page.locator(".taskmark.cursor")).to_be_visible()


def test_arrow_keys_read_the_values_of_a_chart(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#memory")
    settled(page, "memory")
    readout = page.get_by_test_id("readout")
    page.locator(".uplot canvas").focus()
    expect(readout).to_have_text("")

    page.keyboard.press("End")
    expect(readout).to_contain_text("process memory")
    expect(readout).to_have_attribute("aria-live", "polite")
    last = readout.inner_text()
    page.keyboard.press("ArrowLeft")
    expect(readout).not_to_have_text(last, use_inner_text=True)
    page.keyboard.press("ArrowRight")
    expect(readout).to_have_text(last, use_inner_text=True)
    page.keyboard.press("ArrowRight")
    expect(readout).to_have_text(last, use_inner_text=True)
    page.keyboard.press("Tab")

    expect(readout).to_have_text("")
    expect(readout).to_have_attribute("aria-live", "off")


def test_arrow_keys_move_between_matrix_cells(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    go(page, "bandwidth")
    matrix = page.get_by_test_id("matrix")
    matrix.focus()
    seen = set()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        expect(matrix.locator("p")).to_contain_text(re.compile(r"\d transfers?"))
        seen.add(matrix.locator("p").inner_text())

    assert len(seen) > 1 and all(" to " in text for text in seen)


def test_group_heights_are_proportional_to_time(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#groups")
    nodes = page.get_by_test_id("group-node")
    groups = real.report["groups"]
    expect(nodes).to_have_count(len(groups))
    heights = nodes.locator("rect.box").evaluate_all("boxes => boxes.map(box => Number(box.getAttribute('height')))")
    times = [sum(group["durations_us"].values()) for group in groups]
    largest = times.index(max(times))
    assert heights[largest] == max(heights) > min(heights)
    for time, height in zip(times, heights, strict=True):
        # Proportional to the time, but tall enough for the label.
        assert height == max(min(heights), time / max(times) * max(heights))
    expect(page.get_by_test_id("view-groups")).to_contain_text("Taller: more time")

    nodes.nth(largest).focus()
    page.keyboard.press("Enter")

    expect(nodes.nth(largest)).to_have_attribute("aria-pressed", "true")
    expect(page.locator("tr.sel")).to_contain_text(groups[largest]["group"])
