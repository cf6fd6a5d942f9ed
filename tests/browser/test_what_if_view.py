"""The page that predicts a computation: its inputs change the predictions, and the URL keeps them."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect
from tests.browser.accessibility import violations
from tests.helpers.eight_tasks import S, T, eight_task_rows
from tests.helpers.hosted import HostedServer

from daskscope.testing import make_frames

CHECK = "The replay of the recorded run takes 8.51 s; the run took 8.50 s."


def times(page: Page) -> list[str]:
    """Return the workers and the wall time of each prediction."""
    expect(page.locator("main[aria-busy=false]")).to_be_visible()
    rows = page.get_by_test_id("what-if-row").all()
    return [" ".join(row.locator("td").nth(column).inner_text() for column in (0, 2)) for row in rows]


def send(server: HostedServer, cluster: str, tables: dict[str, list[dict[str, Any]]]) -> None:
    tables["clusters"][0]["cluster"] = cluster
    token = server.make_token("olga", "ours")
    assert server.send(*make_frames(tables, cluster=cluster), token=token).status == 200


def test_the_inputs_change_the_predictions(eight_task_page: Page) -> None:
    page = eight_task_page
    page.goto("/ours/clusters/eight/computations/c")
    page.get_by_role("link", name="What if").click()

    expect(page.get_by_test_id("what-if-curve")).to_contain_text(CHECK)
    expect(page.get_by_test_id("what-if-curve").locator("canvas")).to_have_attribute(
        "aria-label", "8.51 s with 1 worker, 1.51 s with 8. Dashed: perfect scaling."
    )
    assert times(page) == ["1 8.51 s", "2 4.51 s", "4 2.51 s", "8 1.51 s"]

    page.get_by_test_id("what-if-workers").fill("3")
    expect(page.get_by_test_id("what-if-row")).to_have_count(3)
    page.get_by_test_id("what-if-prefix").select_option("load")
    expect(page.get_by_test_id("what-if-row").first).to_contain_text("4.51 s")
    assert times(page) == ["1 4.51 s", "2 2.51 s", "3 2.01 s"]

    page.get_by_test_id("what-if-threads").fill("2")
    expect(page.get_by_test_id("what-if-row").first).to_contain_text("2.51 s")
    page.reload()
    expect(page.get_by_test_id("what-if-row").first).to_contain_text("2.51 s")
    assert violations(page) == []


def test_chunks_of_another_size(eight_task_page: Page) -> None:
    page = eight_task_page
    page.goto("/ours/clusters/eight/computations/c/what-if?workers=8")
    assert times(page)[-1] == "8 1.51 s"
    page.get_by_test_id("what-if-chunks").select_option("twice as large")

    # Four tasks of two seconds: more than four workers have nothing to do.
    expect(page.get_by_test_id("what-if-row").last).to_contain_text("2.51 s")
    assert times(page)[2:] == ["4 2.51 s", "8 2.51 s"]
    expect(page.get_by_test_id("what-if-assumptions")).to_contain_text("2 neighbouring tasks of a group become one")
    expect(page).to_have_url(re.compile("chunks=2"))


def test_a_range_is_shaded_and_named(eight_task_page: Page, eight_task_server: HostedServer) -> None:
    # Native code, so that more threads than recorded are predicted as a range.
    sample = {
        "start_us": T, "stop_us": T + S, "kind": "compute", "source": "daskscope", "count": 10, "wall_us": S, "cpu_us": S,
        "worker": "tcp://10.0.0.1:1", "stack": ["work.py\tload\t3"],
    }  # fmt: skip
    profiles = [{**sample, "prefix": name} for name in ("load", "sum")]
    send(eight_task_server, "native", {**eight_task_rows(), "profiles": profiles})
    page = eight_task_page
    page.goto("/ours/clusters/native/computations/c/what-if?threads=2")

    curve, key = page.get_by_test_id("what-if-curve"), "Shaded: the range up to the longest wall time."
    expect(curve).to_contain_text(f"{CHECK} {key} Dashed: perfect scaling.")
    assert times(page)[0] == "1 4.51 s to 8.51 s"
    label = curve.locator("canvas").get_attribute("aria-label") or ""
    assert label.startswith("4.51 s to 8.51 s with 1 worker, ") and key in label

    page.get_by_test_id("what-if-threads").fill("1")
    expect(curve).not_to_contain_text("Shaded")
    assert times(page)[0] == "1 8.51 s"


def test_tasks_do_without_disk_and_stragglers(eight_task_page: Page, eight_task_server: HostedServer) -> None:
    tables = eight_task_rows()
    for task in tables["tasks"]:
        if task["prefix"] == "sum":
            task.update(start_us=T + 9 * S, stop_us=T + 9_500_000)
            task.update(interval_action=["disk-read"], interval_start_us=[T + 8 * S], interval_stop_us=[T + 9 * S])
            task["interval_source"] = [""]
    tables["computations"][0]["stop_us"] = T + 9_500_000
    tables["clusters"][0].update(seen_us=T + 10 * S, end_us=T + 10 * S)
    send(eight_task_server, "spilled", tables)
    page = eight_task_page
    page.goto("/ours/clusters/spilled/computations/c/what-if?workers=1")

    assert times(page) == ["1 9.51 s"]
    page.get_by_label("No spilling").check()
    expect(page.get_by_test_id("what-if-row").first).to_contain_text("8.51 s")
    page.get_by_label("No stragglers").check()
    page.wait_for_url("**spill=none&stragglers=none")
    page.reload()
    expect(page.get_by_label("No spilling")).to_be_checked()
    expect(page.get_by_label("No stragglers")).to_be_checked()
    # Eight tasks of a prefix are too few for stragglers.
    assert times(page) == ["1 8.51 s"]


def test_the_page_says_why_there_is_no_prediction(eight_task_page: Page, eight_task_server: HostedServer) -> None:
    tables = eight_task_rows()
    tables["tasks"] = [{**task, "status": "killed"} for task in tables["tasks"]]
    send(eight_task_server, "short", tables)
    page = eight_task_page
    page.goto("/ours/clusters/short/computations/c/what-if")

    expect(page.get_by_test_id("what-if-reason")).to_contain_text("No task of this computation has finished.")
