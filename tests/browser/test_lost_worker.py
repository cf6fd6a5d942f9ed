"""The views of a run in which a worker was killed and restarted."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.support import ReportFile, Visit, go, write_report

from daskscope.testing import make_recording

T = 1_700_000_000_000_000
S = 1_000_000
MIB = 2**20
FIRST, SECOND = "tcp://10.0.0.1:1", "tcp://10.0.0.1:2"
GONE = {
    "end_us": T + 4 * S, "verdict": "vanished", "evidence": "the connection dropped", "lost_count": 2,
    "processing": ["load-1"], "processing_count": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def restarted(directory: Path) -> ReportFile:
    """Worker 2 was lost after 4 of 10 seconds and replaced; nothing failed, and only the client fetched results."""
    worker = {"name": "2", "nthreads": 1, "memory_limit": 1000 * MIB}
    task = {"key": "load-1", "prefix": "load", "group": "load", "computation": "c", "status": "ok"}
    fetched = {"source": SECOND, "destination": "tcp://10.0.0.9:9", "direction": "outgoing", "nbytes": 1280}
    tables = {
        "workers": [
            {**worker, "worker": FIRST, "server_id": "a", "start_us": T, **GONE},
            {**worker, "worker": SECOND, "server_id": "b", "start_us": T + 5 * S},
        ],
        "tasks": [
            {**task, "id": 0, "worker": FIRST, "start_us": T, "stop_us": T + S},
            {**task, "id": 1, "worker": FIRST, "start_us": T + S, "stop_us": T + 4 * S, "status": "killed"},
            {**task, "id": 2, "worker": SECOND, "start_us": T + 6 * S, "stop_us": T + 10 * S},
        ],
        "computations": [{"computation": "c", "start_us": T, "stop_us": T + 10 * S, "state": "done", "tasks": 2}],
        "samples": [
            {"time_us": T + S, "worker": FIRST, "memory": 80 * MIB},
            {"time_us": T + 7 * S, "worker": SECOND, "memory": 90 * MIB},
            {"time_us": T + 9 * S, "worker": SECOND, "memory": 95 * MIB},
        ],
        "processes": [{"time_us": T + 9 * S, "worker": SECOND, "wall_us": S, "peak_memory": 240 * MIB}],
        "transfers": [{**fetched, "start_us": T + 9 * S, "stop_us": T + 9 * S + 1000}],
    }
    return write_report(directory, "restarted", make_recording(tables))


def test_failures_say_what_was_lost_with_the_worker(visit: Visit, restarted: ReportFile) -> None:
    page = visit(restarted)
    shown = go(page, "errors")
    expect(shown).to_contain_text("No task failed. 1 task run was killed with worker 2. No result was recomputed.")
    (lost,) = page.get_by_test_id("lost-worker").all()
    cells = ["2", "0:03.0", "The connection dropped", "load-1", "2", "0 s"]
    assert [cell.inner_text() for cell in lost.get_by_role("cell").all()] == cells
    shown.get_by_role("button", name="Show workers").click()
    expect(page.get_by_test_id("view-workers")).to_be_visible()


def test_results_for_a_client_are_not_transfers_between_workers(visit: Visit, restarted: ReportFile) -> None:
    shown = go(visit(restarted), "bandwidth")
    expect(shown).to_contain_text("No transfers between workers. Clients fetched 1.25 KiB.")
    expect(shown.get_by_label("Worker to worker")).to_contain_text("No transfers between workers.")
    expect(shown.get_by_test_id("matrix")).to_have_count(0)
    assert "by tasks" not in shown.inner_text()


def test_memory_draws_the_peak_and_the_last_sample_until_the_loss(visit: Visit, restarted: ReportFile) -> None:
    shown = go(visit(restarted), "memory")
    expect(shown).to_contain_text("Peak 240 of 1,000 MiB on worker 2 (restarted), reached by 0:08.0.")
    lost, current = shown.locator(".mem").all()
    expect(lost).to_contain_text("80 MiB peak, lost")
    expect(current.locator(".n")).to_have_text("2 (restarted)")
    # Its only sample holds for three of nine or ten seconds.
    width = "e => e.getBBox().width / e.ownerSVGElement.viewBox.baseVal.width"
    assert lost.locator("path").nth(1).evaluate(width) == pytest.approx(0.32, abs=0.03)
    # The kernel saw a peak between two samples.
    expect(lost.get_by_test_id("peak-mark")).to_have_attribute("d", "")
    height = current.get_by_test_id("peak-mark").evaluate(
        "e => 1 - e.getBBox().y / e.ownerSVGElement.viewBox.baseVal.height"
    )
    assert height == pytest.approx(0.24 * 20 / 22, abs=0.01)
