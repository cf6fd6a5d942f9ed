"""The task stream: a click opens a task, a drag selects time, the table lists the same tasks."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.browser.support import PATIENCE_MS, ReportFile, Visit, drag, hash_of, number, rows, selection

#: The canvas as a data URL, and its number of opaque pixels.
PICTURE = "canvas => canvas.toDataURL()"
INKED = """canvas => {
    const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((alpha, i) => i % 4 === 3 && alpha > 250).length;
}"""


def click_a_task(page: Page) -> None:
    """Click into the lanes from the top down until a task opens."""
    canvas = page.get_by_test_id("stream-canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    detail = page.get_by_test_id("task-detail")
    for y in range(4, int(box["height"]), 5):
        for share in (0.1, 0.15, 0.2, 0.3, 0.5, 0.7):
            page.mouse.click(box["x"] + share * box["width"], box["y"] + y)
            # The answer comes from a worker; a click next to a bar has none.
            page.wait_for_timeout(60)
            if detail.count():
                return
    raise AssertionError("no click on the stream found a task")


def test_a_click_opens_the_task(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#stream")

    click_a_task(page)

    detail = page.get_by_test_id("task-detail")
    expect(detail.locator("dl")).to_be_visible(timeout=PATIENCE_MS)
    key = detail.locator("h2").inner_text()
    tasks = real.recording["tasks"]
    assert key in set(tasks["key"].tolist())
    facts = dict(zip(detail.locator("dt").all_inner_texts(), detail.locator("dd").all_inner_texts(), strict=True))
    row = tasks["key"].tolist().index(key)
    assert facts["Prefix"].strip() == tasks["prefix"][row]
    assert facts["Address"] in {w["worker"] for w in real.report["workers"]}
    for name in ("Started", "Stopped"):
        minutes, _, second = facts[name].partition(":")
        moment = int(minutes) * 60 + float(second)
        at = [(int(us) - real.report["start_us"]) / 1e6 for us, k in zip(
            tasks["start_us" if name == "Started" else "stop_us"].tolist(), tasks["key"].tolist(), strict=True
        ) if k == key]  # fmt: skip
        assert any(moment == pytest.approx(us, abs=0.01) for us in at), (key, name, facts[name], at)
    assert "item=" in hash_of(page)

    page.keyboard.press("Escape")
    expect(detail).to_have_count(0)


def test_the_open_task_is_connected_with_its_inputs_and_outputs(visit: Visit, real: ReportFile) -> None:
    """The recorded edges say how many lines there must be, and the lanes keep their place."""
    tasks, edges = real.recording["tasks"], real.recording["edges"]
    inputs, outputs = Counter(edges["task"].tolist()), Counter(edges["dependency"].tolist())
    keys = dict(zip(tasks["id"].tolist(), tasks["key"].tolist(), strict=True))
    # Of a task that ran once: the search finds every execution of a key.
    once = Counter(keys.values())
    ids = [i for i in keys if 0 < inputs[i] <= 12 and 0 < outputs[i] <= 12 and once[keys[i]] == 1]
    key = keys[ids[0]]
    page = visit(real, "#stream")
    canvas = page.get_by_test_id("stream-canvas")
    # A long answer has two lines, and the lanes are below it.
    expect(page.get_by_test_id("view-answer")).to_be_visible(timeout=PATIENCE_MS)
    before = canvas.bounding_box()

    page.get_by_test_id("find-task").fill(key)
    page.get_by_test_id("find-task").press("Enter")

    expect(page.get_by_test_id("task-detail").locator("h2")).to_have_text(key)
    expect(page.get_by_test_id("link-input")).to_have_count(inputs[ids[0]])
    expect(page.get_by_test_id("link-output")).to_have_count(outputs[ids[0]])
    assert canvas.bounding_box() == before


def test_next_and_previous_visit_all_matches_in_order_of_time(visit: Visit, real: ReportFile) -> None:
    tasks = real.recording["tasks"]
    ((prefix, _),) = Counter(tasks["prefix"].tolist()).most_common(1)
    matches = sorted(
        (int(start), key)
        for start, key in zip(tasks["start_us"].tolist(), tasks["key"].tolist(), strict=True)
        if prefix in key
    )
    page = visit(real, "#stream")
    field, found = page.get_by_test_id("find-task"), page.get_by_test_id("find-count")

    field.fill(prefix)
    expect(found).to_have_text(f"{len(matches):,}")
    expect(page.get_by_test_id("stream-highlight")).to_have_attribute("data-shown", str(len(matches)))
    field.press("Enter")
    expect(found).to_have_text(f"1 of {len(matches):,}")
    # The stream rounds times to ticks, so several may be the first.
    first = [re.escape(key) for start, key in matches if start - matches[0][0] <= 2 * real.report["stream"]["tick_us"]]
    expect(page.get_by_test_id("task-detail").locator("h2")).to_have_text(re.compile(f"^({'|'.join(first)})$"))
    page.get_by_role("button", name="Next match").click()
    expect(found).to_have_text(f"2 of {len(matches):,}")
    field.press("Shift+Enter")
    field.press("Shift+Enter")
    expect(found).to_have_text(f"{len(matches):,} of {len(matches):,}")
    # Two keys before the first task is open.
    field.evaluate("field => { field.form.requestSubmit(); field.form.requestSubmit(); }")
    expect(found).to_have_text(f"2 of {len(matches):,}")

    field.fill("no task is called this")
    expect(found).to_have_text("none")


def test_the_critical_path_stands_out(visit: Visit, real: ReportFile) -> None:
    path = real.report["critical_path"]
    page = visit(real, "#overview")
    page.get_by_role("button", name="Critical path").click()

    expect(page.get_by_test_id("path-foot")).to_contain_text(re.compile(rf"Critical path: {path['of']} tasks?,"))
    expect(page.get_by_test_id("stream-highlight")).to_have_attribute("data-shown", str(len(path["steps"])))
    page.reload()
    expect(page.get_by_test_id("path-foot")).to_be_visible(timeout=PATIENCE_MS)


def test_brackets_open_the_next_task(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#stream?item=0")
    expect(page.get_by_test_id("task-detail")).to_contain_text(f"1 of {real.report['stream']['tasks']}")

    page.keyboard.press("]")
    expect(page.get_by_test_id("task-detail")).to_contain_text(f"2 of {real.report['stream']['tasks']}")
    page.get_by_test_id("task-detail").get_by_role("button", name="Zoom to task").click()
    assert selection(page).inside < real.report["totals"]["tasks"]


def test_a_failed_task_links_to_its_error(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#stream")
    page.get_by_test_id("stream-as-table").click()
    page.get_by_test_id("filter-task-stream").fill("divide")
    expect(page.get_by_test_id("stream-row")).to_have_count(3)

    page.get_by_test_id("stream-row").first.click()

    expect(page.get_by_test_id("task-detail")).to_contain_text("ZeroDivisionError")
    page.get_by_test_id("task-detail").get_by_role("link", name="Traceback").click()
    expect(page.get_by_test_id("traceback")).to_contain_text("return number / 0")


def test_the_table_lists_the_tasks_of_the_selection(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#stream")
    page.get_by_test_id("stream-as-table").click()
    expect(page.get_by_test_id("stream-row").first).to_be_visible()
    # Every execution is drawn, including executions of killed workers.
    assert real.report["stream"]["tasks"] == real.report["stream"]["of"]
    assert "not shown" not in page.get_by_test_id("view-stream").inner_text()

    drag(page, page.get_by_test_id("stream-canvas"), 0.05, 0.2, at=0.95)

    expect(page.get_by_test_id("selection-text")).not_to_contain_text("Whole run")
    expect(page.get_by_test_id("stream-row").first).to_be_visible()
    keys = {row[0] for row in rows(page, "stream-row")}
    assert keys and keys <= set(real.recording["tasks"]["key"].tolist())


def test_the_wheel_zooms_only_with_control(visit: Visit, many: ReportFile) -> None:
    page = visit(many, "#stream")
    page.get_by_test_id("stream-canvas").hover(position={"x": 300, "y": 60})

    page.mouse.wheel(0, -200)
    expect(page.get_by_test_id("selection-text")).to_contain_text("Whole run")
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")

    expect(page.get_by_test_id("selection-text")).not_to_contain_text("Whole run")
    assert selection(page).inside < 20_000


def test_bars_have_many_colours(visit: Visit, many: ReportFile) -> None:
    page = visit(many, "#stream")
    canvas = page.get_by_test_id("stream-canvas")

    colours = canvas.evaluate(
        """canvas => {
            const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            const seen = new Map();
            for (let i = 0; i < data.length; i += 4) {
                const colour = data.slice(i, i + 3).join();
                if (data[i + 3] > 250) seen.set(colour, (seen.get(colour) ?? 0) + 1);
            }
            return [...seen.values()].filter(n => n > 50).length;
        }"""
    )

    assert colours > 10
    assert number(page.get_by_test_id("nav-workers").locator(".n").inner_text()) == 200


def test_the_page_draws_without_web_workers(context: BrowserContext, visit: Visit, real: ReportFile) -> None:
    with_worker = visit(real, "#stream")
    drawn = with_worker.get_by_test_id("stream-canvas").evaluate(PICTURE)
    context.add_init_script("delete window.Worker; delete window.OffscreenCanvas;")

    page = visit(real, "#stream")

    assert page.evaluate("[typeof Worker, typeof OffscreenCanvas]") == ["undefined", "undefined"]
    assert page.get_by_test_id("stream-canvas").evaluate(PICTURE) == drawn
    assert page.get_by_test_id("stream-canvas").evaluate(INKED) > 1_000
    click_a_task(page)
    expect(page.get_by_test_id("task-detail").locator("dl")).to_be_visible()


@pytest.mark.parametrize("when", ["setTimeout(fail, 1000)", "queueMicrotask(fail)"])
def test_the_page_draws_if_the_web_worker_fails(
    context: BrowserContext, visit: Visit, real: ReportFile, when: str
) -> None:
    # As with a content security policy that forbids blob workers: the worker fails with an error, perhaps before the page
    # has loaded the rows for it.
    context.add_init_script(
        f"""window.Worker = class {{
            constructor() {{ const fail = () => this.onerror?.({{message: "refused"}}); {when}; }}
            postMessage() {{}}
        }}"""
    )
    page = visit(real, "#stream")

    assert page.get_by_test_id("stream-canvas").evaluate(INKED) > 1_000
    click_a_task(page)


def test_lanes_of_a_small_cluster_fill_the_window(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#stream")
    canvas = page.get_by_test_id("stream-canvas")
    for height in (900, 1200):
        page.set_viewport_size({"width": 1440, "height": height})
        page.wait_for_function(
            "height => { const box = document.querySelector('[data-testid=stream-canvas]').getBoundingClientRect();"
            " return box.height > 0.4 * height && box.bottom < height; }",
            arg=height,
        )
    expect(canvas).to_be_visible()
