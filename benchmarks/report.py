"""Compare the report with Dask's own in a browser: file size, time until the task stream is shown, redraw on zoom.

Dask's report has the same executions: they are added to the buffer of its TaskStreamPlugin, and Dask's own code writes the page.
How long the scheduler stalls while a report is made is measured on a scheduler in a separate process.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster, performance_report, wait

import daskscope
from benchmarks import synthetic
from benchmarks.result import Result, at_most
from daskscope.report.document import report_page

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
ZOOMS = 8
REPEATS = 3
#: Tasks submitted at a time while the scheduler is monitored.
BATCH = 10_000


def run() -> list[Result]:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        directory = Path(name)
        ours = {tasks: _daskscope_report(tasks, directory) for tasks in (100_000, 1_000_000, 5_000_000)}
        dask = _dask(100_000, directory)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        shown: dict[str, list[float]] = {"ours": [], "dask": []}
        zooms: dict[str, list[float]] = {"ours": [], "dask": []}
        for _ in range(REPEATS):
            for who, path, look in (("ours", ours[100_000], _measure_daskscope), ("dask", dask, _measure_dask)):
                first, redraws = look(browser, path)
                shown[who].append(first)
                zooms[who] += redraws
        million, _ = _measure_daskscope(browser, ours[1_000_000])
        five, five_zooms = _measure_daskscope(browser, ours[5_000_000])
        browser.close()
        sizes = {tasks: path.stat().st_size / 1e6 for tasks, path in ours.items()}
        dask_size = dask.stat().st_size / 1e6
    paint = {who: min(values) for who, values in shown.items()}
    redraw = {who: statistics.median(values) for who, values in zooms.items()}
    note = (
        f"first paint ours {paint['ours']:.2f} s, Dask {paint['dask']:.2f} s (minimum of {REPEATS}, interleaved); "
        f"redraw ours {redraw['ours']:.0f} ms, Dask {redraw['dask']:.0f} ms (median of {len(zooms['ours'])})"
    )
    return [
        at_most("report of 100,000 tasks", sizes[100_000], 1.5, " MB", f"Dask's inline report: {dask_size:.1f} MB"),
        at_most("time to task stream, of Dask's, 100,000 tasks", paint["ours"] / paint["dask"], 1 / 8, "×", note),
        at_most("median redraw on zoom, of Dask's, 100,000 tasks", redraw["ours"] / redraw["dask"], 1 / 30, "×"),
        at_most("report of 1,000,000 tasks", sizes[1_000_000], 13, " MB"),
        at_most("time to task stream, 1,000,000 tasks", million, 2, " s"),
        Result(
            "5,000,000 tasks open and pan",
            f"{five:.1f} s",
            note=f"{sizes[5_000_000]:.0f} MB, redraw median {statistics.median(five_zooms):.0f} ms",
        ),
        *_stall(),
    ]


def _daskscope_report(tasks: int, directory: Path) -> Path:
    path = directory / f"ours-{tasks}.html"
    before = time.perf_counter()
    path.write_bytes(report_page(synthetic.recording(tasks), title="synthetic"))
    print(f"    report of {tasks:,} tasks made in {time.perf_counter() - before:.1f} s", file=sys.stderr)
    return path


def _dask(tasks: int, directory: Path) -> Path:
    """Return Dask's own report of the same executions."""
    path = directory / "dask.html"
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False) as cluster, Client(cluster):
        from distributed.diagnostics.task_stream import TaskStreamPlugin

        with performance_report(str(path), mode="inline"):
            plugin = cluster.scheduler.plugins[TaskStreamPlugin.name]
            for record in _records(tasks, time.time()):
                plugin.buffer.append(record)
                plugin.index += 1
    return path


def _records(tasks: int, begin: float) -> Any:
    table = synthetic.recording(tasks)["tasks"]
    shift = begin - synthetic.START_US / 1e6
    names = ("key", "prefix", "worker", "thread", "start_us", "stop_us", "nbytes", "type")
    intervals = ("interval_start_us", "interval_stop_us")
    rows = zip(*(table[name].tolist() for name in (*names, *intervals)), strict=True)
    for key, _, worker, thread, start, stop, nbytes, kind, starts, stops in rows:
        moves = [("transfer", a, b) for a, b in zip(starts, stops, strict=True)]
        yield {
            "key": key,
            "worker": worker,
            "thread": thread,
            "nbytes": nbytes,
            "typename": kind,
            "status": "OK",
            "startstops": [
                {"action": action, "start": a / 1e6 + shift, "stop": b / 1e6 + shift}
                for action, a, b in (*moves, ("compute", start, stop))
            ],
        }


def _measure_daskscope(browser: Any, path: Path) -> tuple[float, list[float]]:
    page = browser.new_page(viewport={"width": 1600, "height": 900})
    page.goto(f"{path.as_uri()}#stream", wait_until="commit")
    page.wait_for_function("performance.getEntriesByName('daskscope-stream-drawn').length > 0", timeout=60_000)
    first = page.evaluate("performance.getEntriesByName('daskscope-stream-drawn')[0].startTime") / 1e3
    page.wait_for_timeout(500)
    page.evaluate("performance.clearMeasures('daskscope-redraw')")
    for zoom in range(ZOOMS):
        page.keyboard.press("w" if zoom < ZOOMS // 2 else "d")
        page.wait_for_function(
            f"performance.getEntriesByName('daskscope-redraw').length > {zoom}", timeout=10_000, polling=20
        )
    redraws = page.evaluate("performance.getEntriesByName('daskscope-redraw').map(e => e.duration)")
    page.close()
    return first, redraws


FIND_PLOT = """() => {
    const tabs = Bokeh.documents[0].roots()[0];
    const walk = (m) => m.x_range ? m : (m.children ?? []).map((c) => walk(c.model ?? c[0] ?? c)).find(Boolean);
    return walk(tabs.tabs[1].child);
}"""


def _measure_dask(browser: Any, path: Path) -> tuple[float, list[float]]:
    page = browser.new_page(viewport={"width": 1600, "height": 900})
    page.goto(path.as_uri(), wait_until="commit")
    page.wait_for_function(
        "window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle", timeout=120_000, polling=20
    )
    page.evaluate("Bokeh.documents[0].roots()[0].active = 1")
    page.evaluate(f"() => {{ window.plot = ({FIND_PLOT})(); }}")
    page.wait_for_function("Bokeh.documents[0].is_idle", timeout=120_000, polling=20)
    first = (
        page.evaluate(
            "() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(performance.now()))))"
        )
        / 1e3
    )
    redraws = []
    for _ in range(ZOOMS):
        redraws.append(
            page.evaluate(
                """() => new Promise((done) => {
                    const r = window.plot.x_range, length = r.end - r.start, asked = performance.now();
                    r.setv({ start: r.start + length * 0.1, end: r.end - length * 0.1 });
                    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - asked)));
                })"""
            )
        )
    page.close()
    return first, redraws


def _stall(tasks: int = 100_000) -> list[Result]:
    """Measure how long the scheduler did not respond while each of two reports of the same tasks was made."""
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    worker_command = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "2", "--no-dashboard"]
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "scheduler.json"
        processes = [
            subprocess.Popen(
                [*one, "--scheduler-file", str(file)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
            for one in (command, worker_command)
        ]
        try:
            while not file.exists():
                time.sleep(0.1)
            with Client(scheduler_file=str(file)) as client:
                client.wait_for_workers(1)
                ours, theirs = _longest_turns(client, tasks, Path(name))
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait(20)
    note = f"Dask's own report of the same {tasks:,} tasks: {theirs:,.0f} ms"
    return [at_most("longest turn of the scheduler while the report is made", ours, 20, " ms", note)]


def _longest_turns(client: Client, tasks: int, directory: Path) -> tuple[float, float]:
    """Run tasks inside both reports, then leave one after the other and monitor the event loop."""
    ours = daskscope.performance_report(directory / "ours.html", client=client)
    theirs = performance_report(str(directory / "dask.html"))
    ours.__enter__()
    theirs.__enter__()
    for _ in range(tasks // BATCH):
        wait(client.map(abs, range(BATCH), pure=False))
    time.sleep(5)
    client.run_on_scheduler(_watch)
    theirs.__exit__(None, None, None)
    dask_turn: float = client.run_on_scheduler(_stop)
    time.sleep(5)
    client.run_on_scheduler(_watch)
    ours.__exit__(None, None, None)
    our_turn: float = client.run_on_scheduler(_stop)
    return our_turn, dask_turn


def _watch(dask_scheduler: Any) -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    dask_scheduler.longest_turn = 0.0

    async def ticks() -> None:
        last = loop.time()
        while True:
            await asyncio.sleep(0.001)
            now = loop.time()
            dask_scheduler.longest_turn = max(dask_scheduler.longest_turn, now - last - 0.001)
            last = now

    dask_scheduler.watching = loop.create_task(ticks())


def _stop(dask_scheduler: Any) -> float:
    dask_scheduler.watching.cancel()
    return float(dask_scheduler.longest_turn * 1e3)
