"""The page shows the same numbers as the analysis and ``daskscope show --json``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.support import ReportFile, Visit, rows

from daskscope import units
from daskscope.analysis.selection import since
from daskscope.analysis.summary import Summary, extent, summarise
from daskscope.model.states import VERDICT_TEXT


@pytest.fixture(scope="module")
def summary(real: ReportFile) -> Summary:
    """Summary of the time window of the report."""
    return summarise(since(real.recording, extent(real.recording)[0]))


def shown(real: ReportFile) -> dict[str, Any]:
    """Return the output of ``daskscope show --json``."""
    command = [sys.executable, "-c", "from daskscope.cli.main import main; main()", "show", "--json", str(real.source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def metric(page: Page, name: str) -> str:
    return " ".join(page.get_by_test_id(f"metric-{name}").inner_text().split())


def test_python_and_the_command_line_agree(real: ReportFile, summary: Summary) -> None:
    told = shown(real)
    # The command shows the whole recording: a killed worker may have its only sample just before the report begins.
    plain = json.loads(json.dumps(summarise(real.recording).to_dict()))
    for name in ("prefixes", "errors", "workers", "computations"):
        assert told[name] == plain[name], name
    assert [asdict(p)["total_us"] for p in summary.prefixes] == [p["total_us"] for p in real.report["prefixes"]]


def test_the_overview_shows_the_totals(visit: Visit, real: ReportFile, summary: Summary) -> None:
    page = visit(real)
    start, stop = extent(real.recording)
    failed = sum(error.count - error.retried for error in summary.errors)

    assert metric(page, "duration") == units.duration(stop - start)
    assert metric(page, "tasks") == units.count(sum(prefix.count for prefix in summary.prefixes))
    assert metric(page, "errors") == units.count(failed)
    # Tasks, not error groups.
    expect(page.get_by_test_id("nav-errors").locator(".n")).to_have_text(units.count(failed))
    assert metric(page, "threads") == "6 at peak"
    # Three, and the one that the nanny of the killed one may have started before the end.
    assert len(summary.workers) in (3, 4)
    note = page.get_by_test_id("metric-threads").locator("..")
    expect(note).to_contain_text(f"{len(summary.workers)} workers in total, 1 lost")
    assert metric(page, "transferred") == units.nbytes(real.report["totals"]["transferred"])
    answer = page.locator(".answer").inner_text()
    assert answer == f"{real.report['answer']['headline']} {real.report['answer']['reason']}"
    legend = [text.split("\n") for text in page.locator(".legend li").all_inner_texts()]
    assert [line[0].strip() for line in legend] == [share["label"] for share in real.report["split"]]
    for share, text in zip(real.report["split"], page.locator(".legend li").all_inner_texts(), strict=True):
        assert units.duration(share["us"]) in text
    assert sum(share["us"] for share in real.report["split"]) == real.report["totals"]["thread_us"]


def test_the_prefix_table_shows_the_summary(visit: Visit, real: ReportFile, summary: Summary) -> None:
    page = visit(real)
    expect(page.get_by_test_id("prefix-row").first).to_be_visible()
    heads = [head.strip() for head in page.get_by_role("region", name="By task prefix").locator("th").all_inner_texts()]
    told = {prefix["prefix"]: prefix for prefix in shown(real)["prefixes"]}
    found = {row[0]: dict(zip(heads, row, strict=True)) for row in rows(page, "prefix-row")}

    assert set(found) == set(told) == {prefix.prefix for prefix in summary.prefixes}
    cube = real.report["time_by_prefix"]
    for prefix in summary.prefixes:
        row, total = found[prefix.prefix], real.total(cube, "us", prefix=prefix.prefix)
        assert row["Task runs"] == units.count(prefix.count + prefix.killed)
        assert prefix.count == told[prefix.prefix]["count"]
        assert row["Total time"] == units.duration(total)
        assert row["Mean"] == units.duration(prefix.mean_us) == units.duration(told[prefix.prefix]["mean_us"])
        assert row["Median"] == units.duration(prefix.p50_us)
        assert row["p95"] == units.duration(prefix.p95_us)
        assert row["Max"] == units.duration(prefix.max_us)
        assert row["Output"] == units.nbytes(prefix.nbytes)
        assert row["Errors"] == units.count(prefix.errors)
        assert row.get("Recomputed", "0 s") == units.duration(prefix.recomputed_us)


def test_the_errors_view_shows_the_summary(visit: Visit, real: ReportFile, summary: Summary) -> None:
    page = visit(real, "#errors")
    told = shown(real)["errors"]

    assert [row[:5] for row in rows(page, "error-row")] == [
        [e.type, e.message, ", ".join(e.prefixes), units.count(e.count), units.count(e.retried)] for e in summary.errors
    ]
    assert [[e["type"], str(e["count"])] for e in told] == [[row[0], row[3]] for row in rows(page, "error-row")]
    expect(page.get_by_test_id("traceback")).to_contain_text("ZeroDivisionError: division by zero")
    assert metric(page, "executions") == units.count(summary.errors[0].count)


def test_the_workers_view_shows_the_summary(visit: Visit, real: ReportFile, summary: Summary) -> None:
    page = visit(real, "#workers")
    told = shown(real)["workers"]
    heads = [
        head.strip() for head in page.get_by_role("region", name="Workers", exact=True).locator("th").all_inner_texts()
    ]
    found = [dict(zip(heads, row, strict=True)) for row in rows(page, "worker-row")]

    assert len(found) == len(summary.workers) == len(told)
    busy = {worker["worker"]: worker["busy_share"] for worker in real.report["workers"]}
    # The one that the nanny of the killed one may have started before the end has its name.
    by_name = {(row["Worker"].removesuffix(" (restarted)"), row["Status"]): row for row in found}
    for worker in summary.workers:
        row = by_name[worker.name, VERDICT_TEXT.get(worker.verdict, worker.verdict) or "connected"]
        assert row["Task runs"] == units.count(worker.tasks)
        assert row["Busy while up"] == units.percent(busy[worker.worker])
        assert row["Threads"] == str(worker.threads)
        assert row["Peak memory"] == (units.nbytes(worker.peak_memory) if worker.peak_memory else "not recorded")
        assert row["Lost results"] == units.count(worker.lost_count)
    lost = next(worker for worker in summary.workers if worker.verdict)
    page.get_by_test_id("worker-row").filter(has_text=VERDICT_TEXT.get(lost.verdict, lost.verdict)).click(
        position={"x": 5, "y": 5}
    )
    expect(page.get_by_test_id("worker-detail")).to_contain_text(lost.evidence)
    expect(page.get_by_test_id("worker-detail")).to_contain_text(units.duration(lost.busy_us))


def test_findings_show_the_estimated_saving(visit: Visit, real: ReportFile) -> None:
    page = visit(real)
    if len(real.report["findings"]) > 3:
        page.get_by_role("button", name=re.compile("Show . more")).click()
    cards = page.get_by_test_id("finding")
    expect(cards).to_have_count(len(real.report["findings"]))
    # A failure or a lost worker is what the headline is about.
    found = sorted(real.report["findings"], key=lambda finding: finding["kind"] not in ("error", "lost worker"))
    gains = [finding["gain"] for finding in found]
    assert any(gains) and not all(gains)

    for gain, card in zip(gains, cards.all(), strict=True):
        said = "no estimate"
        if gain:
            whole = "the run" if gain["of"] == "run" else "thread time"
            said = f"up to {units.duration(gain['us'])} of {whole}{units.percent(gain['share'])}"
            low, high = units.duration(gain["wall_low_us"]), units.duration(gain["wall_high_us"])
            wall = f"; {low} to {high} of the run" if gain["of"] == "threads" and gain["wall_high_us"] else ""
            cost = (
                f"; up to {units.about_dollars(gain['cost_high']).removeprefix('about ')}" if gain["cost_high"] else ""
            )
            expect(card.get_by_test_id("gain")).to_have_attribute("title", f"Estimate: {gain['how']}{wall}{cost}.")
        expect(card.get_by_test_id("gain")).to_have_text(said)


def test_the_critical_path_shows_its_length(visit: Visit, real: ReportFile) -> None:
    page = visit(real, "#stream")
    path, run = real.report["critical_path"], real.report["totals"]["duration_us"]
    answer = page.get_by_test_id("path-answer")

    expect(answer).to_contain_text(f"{units.duration(path['length_us'])} of {units.duration(run)}")
    expect(answer).to_contain_text(f"{path['steps'][-1]['prefix']}, which stopped last")


def test_memory_without_samples_is_not_recorded(visit: Visit, empty: ReportFile, many: ReportFile) -> None:
    for report in (empty, many):
        assert report.report["totals"]["peak_memory"] == 0
        assert metric(visit(report), "memory") == "not recorded"
